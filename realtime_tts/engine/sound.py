"""The sound of a step in blocks, and the silence that speech begins with, which is cut off.

One array operation handles many rows: a row at a time, 64 rows of four frames cost 0.7 ms to
quantise and as much again to look for silence.

Checkpoints begin with about 0.1 s of silence. It is cut off where sound leaves the engine, so that
nothing after that counts it: packets, positions, word times and the scheduler's model of the
listener count what is heard.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from realtime_tts.audio.pcm import FULL_SCALE, quantised
from realtime_tts.audio.speed import AS_MADE, Speed
from realtime_tts.engine.interface import BlockSamples, SoundBlock, StepOutput


def all_sound(output: StepOutput) -> list[SoundBlock]:
    """Return all sound of a step as blocks; single rows share a block by their length."""
    blocks = list(output.blocks)
    groups: defaultdict[int, list[str]] = defaultdict(list)
    for id, samples in output.samples.items():
        groups[len(samples)].append(id)
    for ids in groups.values():
        blocks.append(SoundBlock(ids, np.stack([output.samples[id] for id in ids])))
    for block in blocks:
        rows = len(block.samples)
        assert rows == len(block.ids), f"{rows} rows of sound for {len(block.ids)} utterances"
    return blocks


def sample_counts(blocks: Iterable[SoundBlock]) -> dict[str, int]:
    """Return the number of samples of each utterance."""
    return {id: block.samples.shape[1] for block in blocks for id in block.ids}


def pcm_rows(block: SoundBlock) -> Iterator[bytes]:
    """Return the rows of a block as s16le, in the order of its ids."""
    samples = block.samples
    pcm: NDArray[np.int16]
    if samples.dtype == np.int16:
        pcm = samples.astype("<i2", copy=False)
    else:
        pcm = quantised(samples.astype(np.float32, copy=False))
    return (row.tobytes() for row in pcm)


_PEAK_DBFS, _LEVEL_DBFS = -50.0, -55.0
_WINDOW_SECONDS = 0.005
_ATTACK_SECONDS = 0.005
"""Seconds kept before the first sound found: it begins more softly than that."""
_MOST_SECONDS = 1.0
"""Silence that lasts longer than this is not cut off: it is not the beginning of speech."""
_LEAST_SECONDS = 0.04
_LEAST_STEPS = 3.0
"""A first packet shorter than `_LEAST_SECONDS`, or than this many steps, would leave a gap."""
_NOWHERE = np.iinfo(np.intp).max


def onsets(samples: BlockSamples, sample_rate: int) -> list[int]:
    """Return the index of the first audible sample of each row of `samples` [rows, n], float or
    PCM; -1 for none.

    Audible are samples beyond -50 dBFS, and those beyond -55 dBFS in 5 ms that are as loud as that
    on average.
    """
    scale = FULL_SCALE if samples.dtype == np.int16 else 1.0
    limit = int if samples.dtype == np.int16 else float  # numpy compares integers sooner
    peak, level = (scale * 10 ** (dbfs / 20) for dbfs in (_PEAK_DBFS, _LEVEL_DBFS))
    rows, length = samples.shape
    heights = np.abs(samples)  # PCM has no -32,768, which has no absolute value (`quantised`)
    near = heights > limit(level)
    if not near.any():  # most steps before the first sound
        return [-1] * rows
    first = _first(heights > limit(peak))
    # The softer sign only counts before that, so few samples have to become floats.
    size = round(_WINDOW_SECONDS * sample_rate)
    count = min(int(first.max()) // size + 1, length // size)
    windows = heights[:, : count * size].astype(np.float32).reshape(rows, count, size)
    loud = np.einsum("rwn,rwn->rw", windows, windows) > size * level**2
    soft = near[:, : count * size].reshape(windows.shape) & loud[:, :, None]
    first = np.minimum(first, _first(soft.reshape(rows, count * size)))
    return [index if index < length else -1 for index in first.tolist()]


def _first(heard: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Return the index of the first True of each row, or one that is too large."""
    if not heard.shape[1]:
        return np.full(len(heard), _NOWHERE)
    return np.where(heard.any(1), heard.argmax(1), _NOWHERE)


@dataclass(slots=True)
class _Held:
    """Sound of an utterance that is held back; `start`: its first audible sample, if any."""

    speed: Speed
    parts: list[NDArray[Any]] = field(default_factory=list)
    length: int = 0
    start: int | None = None

    def sound(self, id: str) -> SoundBlock:
        samples = self.parts[0] if len(self.parts) == 1 else np.concatenate(self.parts)
        return SoundBlock((id,), samples[None, self.start or 0 :])


class LeadingSilence:
    """Holds back the sound of utterances until it is audible, and cuts off the silence before."""

    def __init__(self, sample_rate: int) -> None:
        self._rate = sample_rate
        self._held: dict[str, _Held] = {}

    def begin(self, id: str, speed: Speed = AS_MADE) -> None:
        """Add a new utterance, whose leading silence has to be cut off."""
        self._held[id] = _Held(speed)

    def end(self, id: str) -> None:
        """Drop what is held back of an utterance, because it is over. Idempotent."""
        self._held.pop(id, None)

    def cut_from(
        self, blocks: Sequence[SoundBlock], ended: Collection[str], seconds: float
    ) -> list[SoundBlock]:
        """Return the sound to pass on from a step that took `seconds`. For utterances in `ended`
        that is all that was held back, silence too if there was nothing else."""
        if not self._held:
            return list(blocks)
        given = [part for block in blocks for part in self._of_block(block, seconds)]
        for id in self._held.keys() & ended:
            if (held := self._held.pop(id)).parts:
                given.append(held.sound(id))
        return given

    def _of_block(self, block: SoundBlock, seconds: float) -> list[SoundBlock]:
        held, samples = self._held, block.samples
        attack, most = round(_ATTACK_SECONDS * self._rate), _MOST_SECONDS * self._rate
        rows = [number for number, id in enumerate(block.ids) if id in held]
        if not rows:
            return [block]
        given = []
        new = samples if len(rows) == len(samples) else samples[rows]  # the latter is a copy
        for number, onset in zip(rows, onsets(new, self._rate), strict=True):
            id = block.ids[number]
            each = held[id]
            if onset >= 0 and each.start is None:
                begins = each.length + onset
                each.start = max(0, begins - attack) if begins < most else 0
            each.parts.append(samples[number])
            each.length += samples.shape[1]
            if self._is_enough(each, seconds):
                given.append(held.pop(id).sound(id))
        others = sorted(set(range(len(block.ids))) - set(rows))
        if others:
            given.append(SoundBlock([block.ids[n] for n in others], samples[others]))
        return given

    def _is_enough(self, held: _Held, seconds: float) -> bool:
        if held.start is None:
            return held.length >= _MOST_SECONDS * self._rate
        enough = max(_LEAST_SECONDS, _LEAST_STEPS * seconds) * held.speed.rate(self._rate)
        return held.length - held.start >= enough + held.speed.lookahead
