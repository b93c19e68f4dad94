"""A fake engine: tones at a chosen speed, without torch.

It keeps every promise of `Engine`: a frame per 80 ms, one text token per frame while text is
still coming, an end when the text is spoken. Server, client and adapter tests run on it, and
`realtime-tts serve --engine fake` lets anyone try the protocol.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from realtime_tts.engine.interface import (
    Engine,
    EngineInfo,
    MeasuredStep,
    Progress,
    Samples,
    StepOutput,
    UtteranceSpec,
    check_spec,
    no_voice,
)
from realtime_tts.engine.made_codes import Codes, packed, packed_number
from realtime_tts.sampling import Sampling
from tts_scheduler import CodecRun, Decode, Layout, Prefill, StepPlan

VOICES = {"alto": 330.0, "bass": 110.0, "soprano": 660.0, "tenor": 220.0}
"""Fake voices by name, with the frequency of their tone in hertz."""

_DEFAULT_VOICE = "tenor"
_AMPLITUDE = 0.3
_RATE, _FRAME_SAMPLES = 24_000, 1_920  # as `EngineInfo` has them
_BOOKS = np.arange(16, dtype=np.int16)
_WARM_UP_ROWS = (1, 2, 4, 8, 16, 32, 64)


@dataclass(frozen=True, slots=True)
class FakeEngineConfig:
    """`step_seconds` is how long a step takes; speech of one text token lasts `frames_per_token`
    frames, and the first `silence` samples are silent. `aligned`: it reports which token each frame
    speaks, as checkpoints with alignment heads do."""

    slots: int = 256
    step_seconds: float = 0.002
    frames_per_token: int = 3
    silence: int = 0
    max_frames: int = 2_000
    safe_tokens: int = 0
    languages: tuple[str, ...] = ("auto", "english")
    aligned: bool = False


@dataclass(slots=True)
class _Row:
    frequency: float
    seed: int
    tokens: int = 0
    finished: bool = False
    frames: int = 0
    pending: int = 0
    sample: int = 0  # position in the tone, so that it is continuous across codec runs


class FakeEngine(Engine):
    """An `Engine` that makes tones. The frequency identifies the voice; the phase is continuous."""

    def __init__(
        self,
        config: FakeEngineConfig | None = None,
        registered: Callable[[str], bool] = no_voice,
    ) -> None:
        self.config = config or FakeEngineConfig()
        self._registered = registered
        self._rows: dict[str, _Row] = {}
        self._info = EngineInfo(
            model="fake",
            variant="fake",
            voices=tuple(VOICES),
            languages=self.config.languages,
            default_voice=_DEFAULT_VOICE,
            default_sampling=Sampling(),
            slots=self.config.slots,
            max_frames=self.config.max_frames,
            voice_family="fake",
            instructions=True,
            safe_tokens=self.config.safe_tokens,
        )

    @property
    def info(self) -> EngineInfo:
        return self._info

    @property
    def open_utterances(self) -> int:
        """Number of utterances not yet closed, for tests that look for leaks."""
        return len(self._rows)

    def warm_up(self, progress: Progress) -> list[MeasuredStep]:
        """Return steps of the configured duration, without running any."""
        progress("warm-up", 1, 1)
        plans = [_warm_up_plan(rows, frames) for rows in _WARM_UP_ROWS for frames in range(3)]
        return [MeasuredStep(plan, self.config.step_seconds) for plan in plans]

    def check(self, spec: UtteranceSpec) -> None:
        check_spec(self.info, spec, self._registered)

    def prompt_tokens(self, spec: UtteranceSpec) -> int:
        return 9

    def text_needed(self, spec: UtteranceSpec) -> int:
        return 1

    def open(self, utterance_id: str, spec: UtteranceSpec, spoken: Codes | None = None) -> None:
        voice = (spec.voice or _DEFAULT_VOICE).lower()
        # A registered voice has a tone of its own, too: between 700 and 999 Hz.
        row = _Row(VOICES.get(voice, 700.0 + zlib.crc32(voice.encode()) % 300), spec.seed)
        if spoken is not None:
            row.frames, row.sample = len(spoken), len(spoken) * _FRAME_SAMPLES
        self._rows[utterance_id] = row

    def append(self, utterance_id: str, ids: Sequence[int]) -> None:
        self._rows[utterance_id].tokens += len(ids)

    def finish(self, utterance_id: str) -> None:
        self._rows[utterance_id].finished = True

    def step(self, plan: StepPlan) -> StepOutput:
        if self.config.step_seconds > 0:
            time.sleep(self.config.step_seconds)
        output = StepOutput()
        for prefill in plan.prefills:
            self._make_frame(prefill.id, output)
        for decode in plan.decodes:
            self._make_frame(decode.id, output)
        for run in plan.codec:
            if run.id not in output.ended and run.id not in output.failed:
                self._run_codec(run.id, run.frames, output)
        return output

    def close(self, utterance_id: str) -> None:
        self._rows.pop(utterance_id, None)

    def _is_over(self, id: str) -> bool:
        row = self._rows[id]
        return row.finished and row.frames >= self.config.frames_per_token * row.tokens

    def _make_frame(self, id: str, output: StepOutput) -> None:
        row = self._rows[id]
        over = self._is_over(id)
        if over or row.frames >= self.config.max_frames:
            output.ended[id] = "complete" if over else "max_length"
            self._run_codec(id, row.pending, output)
            return
        row.frames += 1
        row.pending += 1
        first = zlib.crc32(f"{row.seed}:{row.frames}".encode()) % 2_048
        output.frames[id] = first
        output.codes[id] = packed((first + _BOOKS) % 2_048)
        if self.config.aligned:
            token = (row.frames - 1) // self.config.frames_per_token
            output.tokens[id] = packed_number(min(token, max(0, row.tokens - 1)))

    def _run_codec(self, id: str, frames: int, output: StepOutput) -> None:
        row = self._rows[id]
        frames = min(frames, row.pending)
        if frames == 0:
            return
        row.pending -= frames
        output.samples[id] = self._tone(row, frames * _FRAME_SAMPLES)

    def _tone(self, row: _Row, count: int) -> Samples:
        positions = np.arange(row.sample, row.sample + count, dtype=np.float64)
        row.sample += count
        positions = np.maximum(0, positions - self.config.silence)
        phase = 2 * np.pi * row.frequency / _RATE * positions
        return (_AMPLITUDE * np.sin(phase)).astype(np.float32)


def _warm_up_plan(rows: int, frames: int) -> StepPlan:
    """Return a plan of the warm-up: prefills if `frames` is 0, else decodes of frame number
    `frames`, with codec runs if it is even."""
    slots = [(f"warm-up-{slot}", slot) for slot in range(rows)]
    if not frames:
        return StepPlan(tuple(Prefill(id, slot, 9, 2, Layout.STREAMING) for id, slot in slots))
    decodes = tuple(Decode(id, slot, frames) for id, slot in slots)
    heard = frames % 2 == 0
    return StepPlan((), decodes, tuple(CodecRun(id, slot, 2) for id, slot in slots if heard))
