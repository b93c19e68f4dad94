"""What is spoken: held-out sentences joined or cut into pieces, with a seam between two pieces."""

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
    """`pieces`: joined by nothing, they are the text. `kind`: where its seams are, between
    sentences or in the middle of a clause."""

    pieces: tuple[str, ...]
    kind: str

    @property
    def text(self) -> str:
        return "".join(self.pieces)


def sentences() -> list[str]:
    """The held-out sentences of both sets, in turn: an everyday one, a harder one."""
    both = [read_texts(_FOLDER / name) for name in ("held_out.txt", "held_out_harder.txt")]
    return [sentence for pair in zip(*both, strict=True) for sentence in pair]


def vocabulary() -> frozenset[str]:
    """What the recogniser may hear: the words of all evaluation texts, three times those spoken."""
    return frozenset(re.findall("[a-z']+", " ".join(evaluation_texts()).lower()))


def pieced_texts() -> list[PiecedText]:
    """24 texts of two sentences, 12 of three, 24 sentences cut at a word in the middle."""
    found = sentences()
    long = [s for s in reversed(found) if len(s.split()) >= _FEWEST_WORDS][:_CUT]
    rest = [s for s in found if s not in long]
    pairs = [rest[at : at + 2] for at in range(0, 2 * _PAIRS, 2)]
    begin, end = 2 * _PAIRS, 2 * _PAIRS + 3 * _TRIPLES
    triples = [rest[at : at + 3] for at in range(begin, end, 3)]
    whole = [PiecedText(spaced(group), "sentence") for group in (*pairs, *triples)]
    return [*whole, *(PiecedText(cut(sentence), "clause") for sentence in long)]


def spaced(group: Sequence[str]) -> tuple[str, ...]:
    """Texts as pieces of one: all but the first begin with a space."""
    return (group[0], *(" " + text for text in group[1:]))


def cut(sentence: str) -> tuple[str, str]:
    """A sentence in two, before the word in its middle."""
    words = sentence.split()
    middle = len(words) // 2
    return " ".join(words[:middle]), " " + " ".join(words[middle:])
