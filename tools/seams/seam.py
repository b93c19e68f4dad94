"""Measures a seam: the errors of words near it, its pause, and its jumps of pitch and level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isnan, nan

import numpy as np
from numpy.typing import NDArray

from tools.demo_voice.recognise import TimedWord
from tools.demo_voice.words import normalise
from tools.seams.hearing import PlacedWord, place
from tools.seams.speak import Turn
from tools.seams.speaker import SAMPLE_RATE
from tools.seams.tracks import HOP, Tracks

NEAR_SECONDS = 1.0
_VOICED_FRAMES = 15
_REACH_SECONDS = 0.6
_FROM_SEAM_SECONDS = 0.4


@dataclass(frozen=True, slots=True)
class Seam:
    """The figures of one seam. `words`, `errors`: counts within a second of it. `pause`: seconds of
    silence around it. `pitch` (semitones), `level` (dB): jumps from the last voiced 150 ms before
    it to the first after it. `fall`: semitones from the median pitch of the piece before it to that
    piece's last 150 ms. NaN where there is nothing to measure."""

    kind: str
    words: int
    errors: int
    pause: float
    pitch: float
    level: float
    fall: float


@dataclass(frozen=True, slots=True)
class Judged:
    """The figures of one turn. `jumps`: pitch and level between words away from seams. `pieces`:
    each piece in comparison with the text spoken whole."""

    voice: str
    kind: str
    words: int
    errors: int
    seams: tuple[Seam, ...]
    jumps: tuple[tuple[float, float], ...]
    pieces: tuple[PieceChange, ...]
    ended: bool


@dataclass(frozen=True, slots=True)
class PieceChange:
    """A piece in comparison with the same piece of the text spoken whole: the seconds of both, and
    by how many semitones its median pitch is higher."""

    seconds: float
    whole_seconds: float
    pitch: float


@dataclass(frozen=True, slots=True)
class Whole:
    """A text spoken whole: the edges of its pieces in seconds, and the pieces' median pitches."""

    edges: tuple[float, ...]
    pitches: tuple[float, ...]

    @classmethod
    def of(cls, turn: Turn, heard: Sequence[TimedWord], tracks: Tracks) -> Whole:
        edges = (0.0, *boundaries(turn.pieces, heard), turn.ends[-1] / SAMPLE_RATE)
        return cls(edges, tuple(_middle(tracks.pitch, *span) for span in pairwise(edges)))


def boundaries(pieces: Sequence[str], heard: Sequence[TimedWord]) -> list[float]:
    """Return the seconds at which the pieces of a text spoken whole meet, or NaN where a word
    beside the seam was not recognised."""
    placed = place("".join(pieces), heard)
    spans = {word.index: word for word in placed if word.index is not None}
    found, count = [], 0
    for piece in pieces[:-1]:
        count += len(normalise(piece))
        before, after = spans[count - 1].end, spans[count].begin
        found.append(nan if before is None or after is None else (before + after) / 2)
    return found


def judge(
    turn: Turn, heard: Sequence[TimedWord], tracks: Tracks, whole: Whole, *, cut: bool
) -> Judged:
    """Measure a turn, in comparison with the same text spoken whole."""
    placed = place("".join(turn.pieces), heard)
    ends = tuple(end / SAMPLE_RATE for end in turn.ends)
    edges = (0.0, *ends) if cut else whole.edges
    spans, seams = list(pairwise(edges)), edges[1:-1]
    changes = zip(spans, pairwise(whole.edges), whole.pitches, strict=True)
    return Judged(
        turn.voice,
        turn.kind,
        sum(word.index is not None for word in placed),
        sum(word.errors for word in placed),
        tuple(
            _seam(turn.kind, second, before, placed, tracks)
            for second, before in zip(seams, spans, strict=False)
            if not isnan(second)
        ),
        tuple(_inner_jumps(placed, seams, tracks)),
        tuple(
            PieceChange(span[1] - span[0], other[1] - other[0], _middle(tracks.pitch, *span) - old)
            for span, other, old in changes
        ),
        all(turn.ended),
    )


def _seam(
    kind: str,
    second: float,
    before: tuple[float, float],
    placed: Sequence[PlacedWord],
    tracks: Tracks,
) -> Seam:
    near = [word for word in placed if abs(word.seconds - second) <= NEAR_SECONDS]
    pause = _pause(second, tracks)
    middle = (pause[0] + pause[1]) / 2 if pause[1] > pause[0] else second
    last, first = _beside(middle, tracks)
    pitch, level = _jump(last, first, tracks)
    return Seam(
        kind,
        sum(word.index is not None for word in near),
        sum(word.errors for word in near),
        pause[1] - pause[0],
        pitch,
        level,
        _median(tracks.pitch[last]) - _middle(tracks.pitch, *before),
    )


def _pause(second: float, tracks: Tracks) -> tuple[float, float]:
    """Return begin and end of the silence nearest to a moment, within 150 ms; equal if none."""
    silent, centre = tracks.silent, round(second / HOP)
    near = [at for at in range(centre - 15, centre + 16) if 0 <= at < len(silent) and silent[at]]
    if not near:
        return second, second
    begin = end = min(near, key=lambda at: abs(at - centre))
    while begin > 0 and silent[begin - 1]:
        begin -= 1
    while end < len(silent) and silent[end]:
        end += 1
    return begin * HOP, end * HOP


def _beside(second: float, tracks: Tracks) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the last voiced frames before a moment and the first after it."""
    centre, reach = round(second / HOP), round(_REACH_SECONDS / HOP)
    voiced = np.flatnonzero(~np.isnan(tracks.pitch))
    before = voiced[(voiced < centre) & (voiced >= centre - reach)]
    after = voiced[(voiced >= centre) & (voiced < centre + reach)]
    return before[-_VOICED_FRAMES:], after[:_VOICED_FRAMES]


def _jump(
    before: NDArray[np.int64], after: NDArray[np.int64], tracks: Tracks
) -> tuple[float, float]:
    if len(before) < 5 or len(after) < 5:
        return nan, nan
    return (
        _median(tracks.pitch[after]) - _median(tracks.pitch[before]),
        float(tracks.level[after].mean() - tracks.level[before].mean()),
    )


def _inner_jumps(
    placed: Sequence[PlacedWord], seams: Sequence[float], tracks: Tracks
) -> list[tuple[float, float]]:
    """Return the jumps between correctly recognised neighbouring words, away from seams."""
    found = []
    for one, other in pairwise(placed):
        if one.errors or other.errors or one.end is None or other.begin is None:
            continue
        second = (one.end + other.begin) / 2
        if any(abs(second - seam) < _FROM_SEAM_SECONDS for seam in seams):
            continue
        jump = _jump(*_beside(second, tracks), tracks)
        if not isnan(jump[0]):
            found.append(jump)
    return found


def _middle(values: NDArray[np.float64], begin: float, end: float) -> float:
    if isnan(begin) or isnan(end):
        return nan
    return _median(values[round(begin / HOP) : round(end / HOP)])


def _median(values: NDArray[np.float64]) -> float:
    known = values[~np.isnan(values)]
    return float(np.median(known)) if len(known) else nan
