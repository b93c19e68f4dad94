"""Writes the figures of all ways as a Markdown table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from tools.demo_voice.durations import LONGEST, SHORTEST
from tools.demo_voice.report import table
from tools.seams.seam import Judged, PieceChange, Seam

_SLACK_SECONDS = 0.5
_HEAD = (
    "way",
    "words wrong",
    "… by voice",
    "near sentence seams",
    "near cuts in a clause",
    "pitch jump, sentence / clause",
    "level jump, dB",
    "fall before the seam",
    "pause, ms, sentence",
    "… clause",
    "pace",
    "pitch against whole",
    "early",
    "runaway",
)


@dataclass(frozen=True, slots=True)
class Measured:
    way: str
    turns: Sequence[Judged]

    @property
    def seams(self) -> list[Seam]:
        return [seam for turn in self.turns for seam in turn.seams]


def markdown(ways: Sequence[Measured]) -> str:
    """Return a table with a line for each way, and the jumps inside sentences for comparison.
    Jumps are given as the median and the 90th percentile of their sizes."""
    lines = list(table(_HEAD, [_row(each) for each in ways]))
    inner = [jump for each in ways for turn in each.turns for jump in turn.jumps]
    pitch = _sizes(jump[0] for jump in inner)
    level = _sizes(jump[1] for jump in inner)
    lines.append(f"Between words away from seams: pitch {pitch} semitones, level {level} dB.")
    return "\n".join(lines) + "\n"


def _row(each: Measured) -> tuple[str, ...]:
    turns, seams = each.turns, each.seams
    voices = dict.fromkeys(turn.voice for turn in turns)
    pieces = [piece for turn in turns for piece in turn.pieces]
    sentence = [seam for seam in seams if seam.kind == "sentence"]
    clause = [seam for seam in seams if seam.kind == "clause"]
    known = [piece for piece in pieces if not np.isnan(piece.whole_seconds)]
    pace = sum(piece.seconds for piece in known) / sum(piece.whole_seconds for piece in known)
    higher = np.array([piece.pitch for piece in pieces])
    return (
        each.way,
        _rate(turns),
        " / ".join(_rate([turn for turn in turns if turn.voice == voice]) for voice in voices),
        _rate(sentence),
        _rate(clause),
        f"{_sizes(s.pitch for s in sentence)} / {_sizes(s.pitch for s in clause)}",
        f"{_sizes(s.level for s in sentence)} / {_sizes(s.level for s in clause)}",
        f"{_middle(s.fall for s in sentence)} / {_middle(s.fall for s in clause)}",
        _milliseconds(s.pause for s in sentence),
        _milliseconds(s.pause for s in clause),
        f"{pace:.2f}",
        f"{np.nanmean(higher):+.2f} ± {np.nanstd(higher):.2f}",
        str(_count(known, lambda piece: piece.seconds < SHORTEST * piece.whole_seconds - 0.2)),
        str(
            _count(
                known,
                lambda piece: piece.seconds > LONGEST * piece.whole_seconds + _SLACK_SECONDS,
            )
            + sum(not turn.ended for turn in turns)
        ),
    )


def _rate(counted: Sequence[Judged] | Sequence[Seam]) -> str:
    words = sum(each.words for each in counted)
    return f"{sum(each.errors for each in counted) / words:.3f}" if words else "-"


def _sizes(values: Iterable[float]) -> str:
    sizes = np.abs(np.array([value for value in values if not np.isnan(value)]))
    return f"{np.median(sizes):.1f}, {np.percentile(sizes, 90):.1f}" if len(sizes) else "-"


def _middle(values: Iterable[float]) -> str:
    known = [value for value in values if not np.isnan(value)]
    return f"{np.median(known):+.1f}" if known else "-"


def _milliseconds(values: Iterable[float]) -> str:
    known = [1000 * value for value in values]
    return f"{np.median(known):.0f}, {np.percentile(known, 90):.0f}" if known else "-"


def _count(pieces: Sequence[PieceChange], wrong: Callable[[PieceChange], bool]) -> int:
    return sum(wrong(piece) for piece in pieces)
