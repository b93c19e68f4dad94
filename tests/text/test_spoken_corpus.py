"""tests/data/spoken: what a careful native speaker reads aloud, line by line.

A file for each language: a source, what is said, and, where we are known to say something else,
the reason. Lines that begin with "# " name the kind of those that follow.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import NamedTuple

import pytest

from realtime_tts.text.languages import language_for
from realtime_tts.text.normalizer import SpeechNormalizer
from realtime_tts.text.spans import Piece

DATA = Path(__file__).parents[1] / "data" / "spoken"
NAMES = sorted(path.stem for path in DATA.glob("*.tsv"))
AT_LEAST = 1_000
KNOWN_WRONG = {"english": 10, "german": 4, "french": 1}
"""How many lines have a reason. May only shrink."""


class Line(NamedTuple):
    kind: str
    text: str
    said: str
    reason: str


def lines_of(name: str) -> list[Line]:
    lines, kind = [], ""
    for row in (DATA / f"{name}.tsv").read_text("utf-8").splitlines():
        if row.startswith("# "):
            kind = row[2:]
            continue
        text, said, *reason = row.split("\t")
        lines.append(Line(kind, text, said, *reason) if reason else Line(kind, text, said, ""))
    return lines


def spoken(name: str, parts: list[str]) -> str:
    normalizer = SpeechNormalizer(language_for(name))
    pieces, at = [], 0
    for part in parts:
        pieces += normalizer.feed([Piece(part, at, at + len(part))], 0.0)
        at += len(part)
    pieces += normalizer.flush()
    return "".join(piece.text for piece in pieces if isinstance(piece, Piece))


def random_cut(text: str, chance: random.Random) -> list[str]:
    cuts = sorted(chance.sample(range(1, len(text)), min(len(text) - 1, chance.randint(1, 6))))
    return [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]


def judged(lines: list[Line]) -> dict[str, list[Line]]:
    kinds: dict[str, list[Line]] = {}
    for line in lines:
        kinds.setdefault(line.kind, []).append(line)
    return kinds


KINDS = [(name, kind) for name in NAMES for kind in judged(lines_of(name))]


@pytest.mark.parametrize(("name", "kind"), KINDS)
def test_each_line_is_said_as_a_native_speaker_reads_it(name: str, kind: str) -> None:
    lines = [line for line in judged(lines_of(name))[kind] if not line.reason]
    said = {line.text: spoken(name, [line.text]) for line in lines}
    assert said == {line.text: line.said for line in lines}


@pytest.mark.parametrize("name", NAMES)
def test_a_line_is_said_alike_however_it_is_cut(name: str) -> None:
    chance = random.Random(19)
    for line in lines_of(name):
        whole = spoken(name, [line.text])
        for parts in (list(line.text), *(random_cut(line.text, chance) for _ in range(2))):
            assert spoken(name, parts) == whole, parts


@pytest.mark.parametrize("name", NAMES)
def test_what_is_known_to_be_wrong_is_wrong_and_never_more(name: str) -> None:
    known = [line for line in lines_of(name) if line.reason]
    mended = [line.text for line in known if spoken(name, [line.text]) == line.said]
    assert not mended, "take the reason away from these lines"
    assert len(known) <= KNOWN_WRONG.get(name, 0)


@pytest.mark.parametrize("name", NAMES)
def test_a_corpus_is_as_large_as_we_say_and_has_no_line_twice(name: str) -> None:
    texts = [line.text for line in lines_of(name)]
    assert len(texts) >= AT_LEAST
    assert len(texts) == len(set(texts))
