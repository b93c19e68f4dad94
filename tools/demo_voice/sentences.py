"""Writes the training texts of the demo voice, one per line.

    python -m tools.demo_voice.sentences --out build/demo_voice/sentences.txt --count 1200000

Real sentences, new ones made from them, and a grammar of everyday language; `sources` lists the
packages it reads and their licences, `mix` the shares. The same seed gives the same file.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from random import Random

from tools.demo_voice import sources
from tools.demo_voice.held_out import Guard, evaluation_texts
from tools.demo_voice.lexicon import Lexicon, frequent_words
from tools.demo_voice.mix import BUCKETS, Corpus, Mixer

VOCABULARY = 60_000
_MOST_DEFINITIONS = 60_000  # real, but all of one style
_MODEL_WEIGHTS = {
    "examples": 0.42,
    "definitions": 0.18,
    "fortunes": 0.34,
    "bible": 0.04,
    "alice": 0.02,
}


def read_corpus(places: sources.Places, lexicon: Lexicon, rng: Random) -> Corpus:
    """The real texts. Raises SourceMissing, naming the package, if one is not installed."""
    definitions = sources.wordnet_definitions(places, rng)
    texts = {
        "examples": sources.wordnet_examples(places),
        "definitions": rng.sample(definitions, min(_MOST_DEFINITIONS, len(definitions))),
        "fortunes": sources.fortunes(places),
        "bible": sources.bible(places, rng),
        "alice": sources.alice(places),
    }
    return Corpus(
        {name: [text for text in found if lexicon.knows(text)] for name, found in texts.items()},
        _MODEL_WEIGHTS,
    )


def make(
    places: sources.Places, ranked: Sequence[str], count: int, seed: int
) -> list[tuple[str, str]]:
    """`count` pairs of maker and text, in random order. `ranked`: words, most frequent first."""
    rng = Random(seed)
    lexicon = Lexicon(places, ranked)
    corpus = read_corpus(places, lexicon, rng)
    guard = Guard(evaluation_texts())
    lines = list(islice(Mixer(corpus, lexicon, guard, rng).lines(), count))
    rng.shuffle(lines)
    return lines


def write(path: Path, lines: Sequence[str]) -> None:
    """Write all lines or nothing: readers never see half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_text("\n".join(lines) + "\n", encoding="utf-8")
    os.replace(unfinished, path)


def report(lines: Sequence[tuple[str, str]]) -> str:
    """What the file holds: number of lines and words, shares by maker and by length."""
    lengths = [len(text.split()) for _, text in lines]
    makers = Counter(maker for maker, _ in lines)
    digits = sum(any(char.isdigit() for char in text) for _, text in lines)
    parts = [f"{len(lines)} lines, {sum(lengths) / len(lengths):.2f} words on average"]
    parts += [f"{maker}: {number / len(lines):.1%}" for maker, number in makers.most_common()]
    parts.append(f"with digits: {digits / len(lines):.1%}")
    for fewest, most, _, _ in BUCKETS:
        share = sum(fewest <= length <= most for length in lengths) / len(lines)
        parts.append(f"{fewest} to {most} words: {share:.1%}")
    return "\n".join(parts)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Write the training texts of the demo voice.")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--count", type=int, default=1_200_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    try:
        lines = make(sources.Places(), frequent_words(VOCABULARY), arguments.count, arguments.seed)
    except sources.SourceMissing as error:
        sys.exit(str(error))
    write(arguments.out, [text for _, text in lines])
    sys.stdout.write(report(lines) + "\n")


if __name__ == "__main__":
    main()
