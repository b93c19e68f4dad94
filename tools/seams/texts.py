"""The texts: held-out sentences, joined or cut into pieces, with a seam between two pieces."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.demo_voice.held_out import evaluation_texts
from tools.demo_voice.recognise import read_texts

_FOLDER = Path(__file__).parents[1] / "demo_voice"
_PAIRS, _TRIPLES, _CUT, _FEWEST_WORDS = 24, 12, 24, 9


@dataclass(frozen=True, slots=True)
class PiecedText:
    """A text in pieces. `pieces`: concatenated, they are the text. `kind`: where its seams are,
    between sentences or in the middle of a clause."""

    pieces: tuple[str, ...]
    kind: str

    @property
    def text(self) -> str:
        return "".join(self.pieces)


def sentences() -> list[str]:
    """Return the held-out sentences of both sets, alternating between everyday and harder ones."""
    both = [read_texts(_FOLDER / name) for name in ("held_out.txt", "held_out_harder.txt")]
    return [sentence for pair in zip(*both, strict=True) for sentence in pair]


def vocabulary() -> frozenset[str]:
    """Return the recogniser's words: those of all evaluation texts, three times those spoken."""
    return frozenset(re.findall("[a-z']+", " ".join(evaluation_texts()).lower()))


def pieced_texts() -> list[PiecedText]:
    """Return 24 texts of two sentences, 12 of three, and 24 sentences cut in the middle."""
    found = sentences()
    long = [s for s in reversed(found) if len(s.split()) >= _FEWEST_WORDS][:_CUT]
    rest = [s for s in found if s not in long]
    pairs = [rest[at : at + 2] for at in range(0, 2 * _PAIRS, 2)]
    begin, end = 2 * _PAIRS, 2 * _PAIRS + 3 * _TRIPLES
    triples = [rest[at : at + 3] for at in range(begin, end, 3)]
    whole = [PiecedText(spaced(group), "sentence") for group in (*pairs, *triples)]
    return [*whole, *(PiecedText(cut(sentence), "clause") for sentence in long)]


def spaced(group: Sequence[str]) -> tuple[str, ...]:
    """Make pieces of one text: all except the first begin with a space."""
    return (group[0], *(" " + text for text in group[1:]))


def cut(sentence: str) -> tuple[str, str]:
    """Cut a sentence before the word in its middle."""
    words = sentence.split()
    middle = len(words) // 2
    return " ".join(words[:middle]), " " + " ".join(words[middle:])
