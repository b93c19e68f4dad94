"""Real English text from Debian packages: what the sentences of the demo voice are made from.

| package | what is taken | licence |
| --- | --- | --- |
| wordnet-base | glosses and quoted examples of WordNet 3.0 | WordNet licence (any use) |
| fortunes, fortunes-min | quotations and sayings of fortune-mod; no lyrics or scripts | BSD |
| bible-kjv | verses of the King James Version, 1611 | public domain |
| flite (documentation) | two chapters of Alice in Wonderland | public domain |
| wamerican-large | the SCOWL list of American words | SCOWL (any use) |

Word frequencies are those of the package wordfreq (Apache-2.0; data CC BY-SA 4.0), used as ranks
only. No text of these sources is part of this repository: they are read where Debian installs them.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tools.demo_voice.cleaning import clean, sentence_case, sentences_of, with_articles

_POS_FILES = ("data.noun", "data.verb", "data.adj", "data.adv")
_QUOTED = re.compile(r'"([^"]*)"')
_USED_FORTUNES = (
    "art computers cookie education food fortunes goedel humorists kids law literature love magic "
    "medicine miscellaneous news paradoxum people pets platitudes politics riddles science "
    "sports tao wisdom work"
).split()
_VERSES = 12_000
_VERSE = re.compile(r"^\S+:\d+ (.*)$")


class SourceMissing(Exception):
    """A source is not installed. The message names what to install."""


@dataclass(frozen=True, slots=True)
class Places:
    """Where the sources lie; the defaults are Debian's."""

    wordnet: Path = Path("/usr/share/wordnet")
    fortunes: Path = Path("/usr/share/games/fortunes")
    words: Path = Path("/usr/share/dict/american-english-large")
    alice: Path = Path("/usr/share/doc/flite/examples/alice")
    bible: str = "bible"


def lines_of(path: Path, package: str) -> list[str]:
    """The lines of one source file. Raises SourceMissing, naming `package`, if it is not there."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        raise SourceMissing(f"{path} is missing: apt-get install {package}") from None


def spelling_list(places: Places) -> set[str]:
    """The words of the American word list, names with their capital."""
    return {word for word in lines_of(places.words, "wamerican-large") if word.isalpha()}


def _synsets(places: Places) -> Iterator[tuple[str, str, str]]:
    """(first lemma, part of speech, gloss) of every WordNet synset."""
    for name in _POS_FILES:
        for line in lines_of(places.wordnet / name, "wordnet-base"):
            if not line.startswith("  "):
                head, _, gloss = line.partition(" | ")
                fields = head.split()
                lemma = fields[4].split("(")[0].replace("_", " ")
                yield lemma, fields[2], gloss.strip()


def wordnet_examples(places: Places) -> list[str]:
    """The example sentences and phrases, as they stand there: mostly without case and full stop."""
    found = (quoted for _, _, gloss in _synsets(places) for quoted in _QUOTED.findall(gloss))
    return [text for example in found if (text := clean(example)) and " " in text]


def wordnet_definitions(places: Places, rng: Random) -> list[str]:
    """The definitions, as sentences about their lemma or as they are."""
    texts = []
    for lemma, pos, gloss in _synsets(places):
        meaning = clean(_QUOTED.sub("", gloss).split(";")[0])
        if meaning and " " in meaning and "'" not in lemma:
            text = clean(_about(lemma, pos, meaning, rng))
            if text:
                texts.append(text)
    return texts


def _about(lemma: str, pos: str, meaning: str, rng: Random) -> str:
    style = rng.random()
    if style < 0.45:
        return sentence_case(meaning) + "."
    if style < 0.55:
        return meaning
    if style < 0.65:
        return f"{sentence_case(lemma)}: {meaning}."
    if pos == "n":
        article = "" if lemma[0].isupper() or lemma.endswith("s") else "A "
        return with_articles(sentence_case(f"{article}{lemma} is {meaning}."))
    if pos == "v":
        return f"To {lemma} {rng.choice(('means', 'is'))} to {meaning}."
    return f"{rng.choice(('The word', 'Here', 'In this case'))} {lemma} means {meaning}."


def fortunes(places: Places) -> list[str]:
    """Sentences of the fortune files that hold prose, without attributions and dialogues."""
    texts = []
    for name in _USED_FORTUNES:
        lines = lines_of(places.fortunes / name, "fortunes fortunes-min")
        for entry in "\n".join(lines).split("\n%\n"):
            prose = entry.split("\n\t\t--")[0]
            if "\n\n" not in prose and "   " not in prose.replace("\t", " "):
                texts += [text for part in sentences_of(prose) if (text := clean(part))]
    return texts


def bible(places: Places, rng: Random) -> list[str]:
    """A sample of verses, cut at colons: archaic, but rich in names and rhythm."""
    try:
        run = subprocess.run(
            [places.bible, "-f", "Gen1:1-Rev22:21"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=True,
        )
    except (FileNotFoundError, subprocess.CalledProcessError) as error:
        raise SourceMissing(f"no Bible text ({error}): apt-get install bible-kjv") from None
    verses = [match[1] for line in run.stdout.splitlines() if (match := _VERSE.match(line))]
    parts = [part for verse in verses for part in re.split(r"(?<=[:;.?!]) ", verse)]
    chosen = rng.sample(parts, min(_VERSES, len(parts)))
    return [text for part in chosen if (text := clean(part.rstrip(":;"))) and " " in text]


def alice(places: Places) -> list[str]:
    """Sentences of the two chapters of Alice in Wonderland that come with flite."""
    prose = " ".join(lines_of(places.alice, "flite"))
    return [text for part in sentences_of(prose) if (text := clean(part))]
