"""CapturedEngine: carries out plans with captured programs; what a GPU gets.

An utterance begins as an ordinary row: its prompt, but for the last position, is put into the store
(the head of the prompt from a cache, a full text by a prefill program), and its first frame is
made together with everybody else's. A step is queued as a whole (`_launch`) and then read
(`_read`); the codec runs are queued before anybody knows which rows ended, and what they made of a
frame that is none is cut off. A step is read at its end, before the next one is launched; why,
ARCHITECTURE.md says. The two halves share nothing but a `_Flight`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from realtime_tts.engine.captured_sound import StepSound
from realtime_tts.engine.captured_steps import CapturedSteps, Filling
from realtime_tts.engine.interface import MeasuredStep, Progress, RowError, StepOutput
from realtime_tts.engine.model_engine import ModelEngine
from realtime_tts.engine.opening import Opening, PrefixCache
from realtime_tts.engine.room import Room
from realtime_tts.engine.spoken_as import no_voices
from realtime_tts.engine.warm_up import warm_up
from realtime_tts.errors import ConfigError, NumericsError, RequestError
from realtime_tts.model import PromptSpec, ReferenceSound, SpeechModel, VoiceLookup
from realtime_tts.model.frame_step import RING, decoded
from realtime_tts.model.pages import PAGE_SIZE
from realtime_tts.model.slot_sampling import is_wide
from realtime_tts.model.slot_store import new_store
from realtime_tts.text.tokenizer import Qwen2Tokenizer
from tts_scheduler import CodecRun, Decode, Prefill, StepPlan

_HEAD_POSITIONS = 2048
"""Positions of prompt heads that are kept: about two hundred voices, or a few long instructions."""

_ROOM_TO_SPEAK = 25
"""Positions, for every row that speaks, that a start leaves free: two seconds."""


@dataclass(slots=True)
class _Flight:
    """A step that was queued; `ids` in the order of its rows."""

    output: StepOutput
    sound: StepSound
    ids: list[str] = field(default_factory=list)


class CapturedEngine(ModelEngine):
    """An `Engine` over one `SpeechModel`. Use from one thread at a time.

    `kv_positions`: keys and values of all utterances together. `capture`: None means on CUDA; a CPU
    runs the same programs uncaptured, which is for tests: `TorchEngine` is faster there. Raises
    ConfigError if there is no room for one longest turn.
    """

    def __init__(
        self,
        model: SpeechModel,
        tokenizer: Qwen2Tokenizer,
        *,
        name: str,
        slots: int,
        kv_positions: int,
        max_frames: int | None = None,
        capture: bool | None = None,
        voices: VoiceLookup = no_voices,
    ) -> None:
        super().__init__(
            model, tokenizer, name=name, slots=slots, max_frames=max_frames, voices=voices
        )
        self._device, shape = model.talker.device, model.config.talker.transformer
        self._captured = self._device.type == "cuda" if capture is None else capture
        self._positions = min(self._positions, kv_positions // PAGE_SIZE * PAGE_SIZE)
        if kv_positions < (needed := min(self._max_frames + 64, shape.max_positions)):
            raise ConfigError(
                f"the memory for keys and values holds {kv_positions} positions; one turn of "
                f"{self._max_frames} frames takes {needed}: give more memory or fewer frames"
            )
        with self._on_device():
            dtype = model.talker.dtype
            store = new_store(shape, slots, kv_positions, self._device, dtype)
            self._steps = CapturedSteps(model, self._prompts, slots, store, capture=self._captured)
        self._references = ReferenceSound(model.slot_codec, self._steps.codec_step.state)
        self._row_buckets = self._steps.row_buckets
        self.room = Room(store)
        self.heads = PrefixCache(_HEAD_POSITIONS)
        self._wide: set[str] = set()

    @property
    def steps(self) -> CapturedSteps:
        return self._steps

    @torch.inference_mode()
    def warm_up(self, progress: Progress) -> list[MeasuredStep]:
        with self._on_device():
            if self._captured:
                self._steps.capture(progress)
            for voice in self._model.config.speakers:
                self._warm_head(PromptSpec(speaker=voice))
            most = min(self._slots, self.room.store.free_positions // (64 + _ROOM_TO_SPEAK))
            rows = [*(count for count in self._row_buckets if count < most), most]
            return warm_up(self, self.sample_ids, most, progress, rows)

    @torch.inference_mode()
    def close(self, utterance_id: str) -> None:
        row = self._rows.pop(utterance_id, None)
        self._wide.discard(utterance_id)
        if row is not None:
            with self._on_device():
                self.room.forget(utterance_id, row.slot)

    @torch.inference_mode()
    def step(self, plan: StepPlan) -> StepOutput:
        with self._on_device():
            return self._read(self._launch(plan))

    # Queue a step.

    def _launch(self, plan: StepPlan) -> _Flight:
        flight = _Flight(StepOutput(), StepSound(self._steps, self._rows))
        going = [decode.id for decode in plan.decodes if self._make_room(decode)]
        openings = [o for prefill in plan.prefills if (o := self._admit(prefill, flight.output))]
        if plan.rows > len(flight.output.failed) and not (going or openings):
            going, openings = self._make_way(plan, flight.output)
        self.room.store.upload()
        for id in going:
            self.room.bring_back(id, self._rows[id].slot)
        self._open_all(openings)
        flight.ids = [*(opening.id for opening in openings), *going]
        if flight.ids:
            rows = [self._rows[id] for id in flight.ids]
            assert all(row.pending < RING for row in rows), "too many frames wait for the codec"
            text = [self._next_text_id(row) for row in rows]
            wide = not self._wide.isdisjoint(flight.ids)
            self._steps.make_frames([row.slot for row in rows], text, wide)
        self._launch_codec(plan.codec, flight)
        return flight

    def _admit(self, plan: Prefill, output: StepOutput) -> Opening | None:
        """Room for a row that begins; None if it cannot, or not now."""
        row = self._rows[plan.id]
        try:
            opening = Opening.of(plan.id, row, plan.layout, self._prompts)
            self._check_length(row, opening.positions)
        except RequestError as error:
            output.failed[plan.id] = RowError(error.code, str(error))
            return None
        speaking = sum(other.slot >= 0 for other in self._rows.values()) - len(self.room.aside)
        needed = opening.positions
        if speaking and self.room.store.free_positions < needed + _ROOM_TO_SPEAK * speaking:
            return None
        if not self.room.take(plan.slot, needed):
            return None
        opening.begin(plan.slot, self._prompts)
        if is_wide(opening.row.spec.sampling):
            self._wide.add(plan.id)
        return opening

    def _warm_head(self, head: PromptSpec) -> None:
        """Keep a voice's head before anybody speaks; slot 0 is free."""
        self.room.store.reserve(0, self._prompts.head_length(head))
        self.room.store.upload()
        self.heads.put(head, self._steps.fill_head(self._prompts.head(head), 0))
        self.room.store.clear(0)

    def _make_room(self, plan: Decode) -> bool:
        """Memory for a row's next frame, and for all its positions if they were set aside."""
        row = self._rows[plan.id]
        return self.room.take(row.slot, row.prompt + row.frames + 1)

    def _make_way(self, plan: StepPlan, output: StepOutput) -> tuple[list[str], list[Opening]]:
        """Nobody planned has memory: set rows aside, until somebody has. Nobody is lost.

        First those not in the plan, which are held or far ahead, the longest first; then planned
        ones, the least urgent first.
        """
        planned = [decode.id for decode in plan.decodes]
        others = [id for id, row in self._rows.items() if row.slot >= 0 and id not in planned]
        others.sort(key=lambda id: -self._rows[id].prompt - self._rows[id].frames)
        for victim in (*others, *reversed(planned[1:])):
            if victim in self.room.aside:
                continue
            row = self._rows[victim]
            self.room.set_aside(victim, row.slot, row.prompt + row.frames)
            for decode in plan.decodes:
                if decode.id not in self.room.aside and self._make_room(decode):
                    return [decode.id], []
            if not plan.decodes:
                for prefill in plan.prefills:
                    if prefill.id not in output.failed and (o := self._admit(prefill, output)):
                        return [], [o]
        return [], []

    def _open_all(self, openings: Sequence[Opening]) -> None:
        """Prompts into the store, all but their last positions."""
        if not openings:
            return
        by_head: dict[PromptSpec, list[int]] = {}
        for opening in openings:
            by_head.setdefault(opening.head, []).append(opening.row.slot)
        for head, slots in by_head.items():
            kv = self.heads.get(head)
            if kv is None:
                kv = self._steps.fill_head(self._prompts.head(head), slots.pop())
                self.heads.put(head, kv)
            if slots:
                self.room.store.copy_prefix(slots, kv)
        self._steps.fill(
            [Filling(o.row.slot, o.head_length, o.ids) for o in openings if o.ids],
        )
        for o in openings:
            if o.vectors is not None:
                self._steps.fill_vectors(o.vectors, o.row.slot, o.head_length)
        self._steps.begin([opening.start for opening in openings])
        for o in openings:
            self._references.begin(o.row.slot, o.head.reference)

    def _launch_codec(self, runs: Sequence[CodecRun], flight: _Flight) -> None:
        coming = frozenset(flight.ids)
        wanted: dict[str, int] = {}
        for run in runs:
            if run.id in flight.output.failed:
                continue
            row = self._rows[run.id]
            wanted[run.id] = min(run.frames, row.pending + (run.id in coming))
        flight.sound.give(wanted)

    # Read it.

    def _read(self, flight: _Flight) -> StepOutput:
        output, steps = flight.output, self._steps
        if flight.ids or flight.sound:
            steps.wait()
        for id, number in zip(flight.ids, steps.outputs(len(flight.ids)), strict=True):
            self._note_frame(id, number, output)
        rest = {id: self._rows[id].pending for id in output.ended if self._rows[id].pending > 0}
        if rest:
            flight.sound.give(rest)
            steps.wait()
        flight.sound.take(output)
        steps.reset()
        return output

    def _note_frame(self, id: str, number: int, output: StepOutput) -> None:
        first, ended, failed = decoded(number)
        row = self._rows[id]
        if failed:
            output.failed[id] = RowError(NumericsError.code, "the model made NaN or Inf logits")
        elif ended:
            output.ended[id] = "complete"
        else:
            row.frames += 1
            output.frames[id] = first
            if row.frames >= self._max_frames:
                output.ended[id] = "max_length"

    def _on_device(self) -> contextlib.AbstractContextManager[None]:
        """Streams, events and graphs are those of the thread's current device."""
        if self._device.type == "cuda":
            return torch.cuda.device(self._device)
        return contextlib.nullcontext()
