"""CapturedEngine: carries out plans with captured programs, as engines on a GPU do.

An utterance begins with its prompt in the KV cache: its prefix comes from a cache of prompt
prefixes, a full text through a prefill program. Its first frame is drawn together with the frames
of all other rows. The plan says which slot has which pages, and which rows are swapped out to host
memory and in again. A step is queued as a whole (`_launch`) and then read (`_read`). Its codec runs
are queued before it is known which rows ended, so samples of what was no frame are cut off. A step
is read completely before the next one is launched (docs/decisions/0007). The two halves share
nothing but a `_QueuedStep`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec
import torch
from torch import Tensor

from realtime_tts.engine.captured_sound import StepSound
from realtime_tts.engine.captured_steps import CapturedSteps
from realtime_tts.engine.filling import Filling
from realtime_tts.engine.interface import (
    Execution,
    MeasuredStep,
    Progress,
    RowError,
    StepOutput,
)
from realtime_tts.engine.made_codes import packed_number, packed_rows
from realtime_tts.engine.model_engine import ModelEngine
from realtime_tts.engine.opening import Opening
from realtime_tts.engine.prefix_cache import PrefixCache, prefix_positions
from realtime_tts.engine.spoken_as import no_voices
from realtime_tts.engine.warm_up import warm_up
from realtime_tts.errors import ConfigError, NumericsError, RequestError
from realtime_tts.kernels import triton_available
from realtime_tts.model import PromptSpec, ReferenceSound, SpeechModel, VoiceLookup
from realtime_tts.model.alignment import TextView
from realtime_tts.model.frame_step import RING, decoded
from realtime_tts.model.paged_cache import (
    PAGE_SIZE,
    PagedKVCache,
    TableEntries,
    position_bytes,
)
from realtime_tts.model.slot_sampling import is_wide
from realtime_tts.text.tokenizer import Qwen2Tokenizer
from tts_scheduler import CodecRun, KVCacheSize, Prefill, StepPlan

LONGEST_PROMPT = 64
"""Positions that are reserved for a prompt beside the frames of the longest turn."""

_WARM_UP_POSITIONS = 96
"""The most positions that a row takes while the engine warms up."""


_NO_VIEW = TextView(0, 0)
"""The empty view of a row whose text no alignment head watches."""


@dataclass(slots=True)
class _QueuedStep:
    """A step that was queued. `ids` are in the order of its rows."""

    output: StepOutput
    sound: StepSound
    ids: list[str] = field(default_factory=list)
    skipped: list[int] = field(default_factory=list)
    """For each row, the number of text tokens before its view."""


class CapturedEngine(ModelEngine):
    """An `Engine` that runs one `SpeechModel` as captured programs. Use from one thread at a time.

    `kv_positions`: positions for the keys and values of all utterances together, which plans
    assign. `capture`: None means on CUDA only; a CPU runs the same programs uncaptured, which is
    for tests, because `TorchEngine` is faster there. Raises ConfigError if the longest turn does
    not fit.
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
        self._aligned = bool(model.config.alignment_heads)
        self._captured = self._device.type == "cuda" if capture is None else capture
        self._positions = min(self._positions, kv_positions // PAGE_SIZE * PAGE_SIZE)
        if kv_positions < (needed := min(self._max_frames + LONGEST_PROMPT, shape.max_positions)):
            raise ConfigError(
                f"the memory for keys and values holds {kv_positions} positions; one turn of "
                f"{self._max_frames} frames takes {needed}: give more memory or fewer frames"
            )
        with self._on_device():
            dtype = model.talker.dtype
            pages = kv_positions // PAGE_SIZE
            store = PagedKVCache(
                shape,
                slots,
                pages,
                self._device,
                dtype,
                prefix_positions=prefix_positions(kv_positions),
            )
            self.steps = CapturedSteps(model, self._prompts, slots, store, capture=self._captured)
        self._references = ReferenceSound(model.slot_codec, self.steps.codec_step.state)
        self._row_buckets = self.steps.row_buckets
        self.store = store
        self._position_bytes = position_bytes(shape, dtype)
        self.swapped: dict[str, Tensor] = {}
        """Keys and values of rows that are swapped out, in host memory, by utterance id."""
        self.prefixes = PrefixCache(store.prefixes)
        self._wide: set[str] = set()

    @property
    def execution(self) -> Execution:
        return msgspec.structs.replace(
            super().execution,
            programs="captured" if self._captured else "eager",
            kernels="triton" if self._device.type == "cuda" and triton_available() else "torch",
            predictor="persistent" if self.steps.frame_step.persistent_predictor else "separate",
            talker="persistent" if self.steps.frame_step.persistent_talker else "separate",
            kv_bytes=self.store.positions * self._position_bytes,
        )

    @property
    def kv_cache(self) -> KVCacheSize:
        pages = self.store.positions // PAGE_SIZE
        return KVCacheSize(pages, PAGE_SIZE, self._positions, self._max_frames)

    @torch.inference_mode()
    def warm_up(self, progress: Progress) -> list[MeasuredStep]:
        with self._on_device():
            if self._captured:
                self.steps.capture(progress)
            for voice in self.model.config.speakers:
                self._warm_prefix(PromptSpec(speaker=voice))
            most = min(self._slots, self.store.positions // _WARM_UP_POSITIONS)
            rows = [*(count for count in self._row_buckets if count < most), most]
            return warm_up(self, self.sample_ids, most, progress, rows)

    @torch.inference_mode()
    def close(self, utterance_id: str) -> None:
        row = self._rows.pop(utterance_id, None)
        self._wide.discard(utterance_id)
        self.swapped.pop(utterance_id, None)
        if row is not None and row.slot >= 0:
            with self._on_device():
                self.store.clear(row.slot)

    @torch.inference_mode()
    def step(self, plan: StepPlan) -> StepOutput:
        with self._on_device():
            return self._read(self._launch(plan))

    # Queue a step.

    def _launch(self, plan: StepPlan) -> _QueuedStep:
        queued = _QueuedStep(StepOutput(), StepSound(self.steps, self._rows))
        for prefill in plan.prefills:  # at once: `close` clears them, even if the step fails
            self._rows[prefill.id].slot = prefill.slot
        openings = [o for prefill in plan.prefills if (o := self._opening(prefill, queued.output))]
        openings.sort(key=lambda opening: opening.talks)
        self._open_all(openings, self._swap(plan))
        queued.ids = [opening.id for opening in openings] + [decode.id for decode in plan.decodes]
        if queued.ids:
            talking = sum(opening.talks for opening in openings) + len(plan.decodes)
            rows = [self._rows[id] for id in queued.ids]
            capacity = self.store.capacity
            for row in rows:
                assert row.pending < RING, "too many frames wait for the codec"
                assert row.positions < capacity(row.slot), "a row without a page"
            talkers = rows[len(rows) - talking :]
            text = [self._next_text_id(row) for row in talkers]
            views = [row.view for row in talkers] if self._aligned else [_NO_VIEW] * talking
            queued.skipped = [*[0] * (len(rows) - talking), *[view.skipped for view in views]]
            wide = not self._wide.isdisjoint(queued.ids)
            self.steps.make_frames([row.slot for row in rows], text, views, wide)
        self._launch_codec(plan.codec, queued)
        return queued

    def _swap(self, plan: StepPlan) -> Sequence[TableEntries]:
        """Swap rows as the plan says. Returns the changes of block tables that are still to make:
        all, unless a row came back, which needed them."""
        store = self.store
        for out in plan.swap_outs:
            self.swapped[out.id] = store.read(out.slot, self._rows[out.id].positions).cpu()
            store.clear(out.slot)
        entries = [(each.slot, each.first, each.pages) for each in plan.reservations]
        if not plan.swap_ins:
            return entries
        store.upload(entries)
        for back in plan.swap_ins:
            store.copy_prefix([back.slot], self.swapped.pop(back.id))
        return []

    def _opening(self, plan: Prefill, output: StepOutput) -> Opening | None:
        """Return how a row begins, or None, with the reason in `output`, if it does not."""
        row = self._rows[plan.id]
        if self._is_over(plan.id):
            output.ended[plan.id] = "max_length"
            return None
        try:
            opening = Opening.of(plan.id, row, plan.layout, self._prompts)
            self._check_length(row, opening.positions)
        except RequestError as error:
            output.failed[plan.id] = RowError(error.code, str(error))
            return None
        opening.begin(self._prompts)
        if is_wide(opening.row.spec.sampling):
            self._wide.add(plan.id)
        return opening

    def _warm_prefix(self, prefix: PromptSpec) -> None:
        """Cache a voice's prefix before the first turn, while slot 0 and all pages are free."""
        pages = -(-self._prompts.prefix_length(prefix) // PAGE_SIZE)
        self.store.upload([(0, 0, range(1, pages + 1))])
        keys_values = self.steps.prompt_step.fill_prefix(self._prompts.prefix(prefix), 0)
        self.prefixes.put(prefix, keys_values)
        self.store.clear(0)

    def _open_all(self, openings: Sequence[Opening], entries: Sequence[TableEntries]) -> None:
        """Make changes of block tables, and begin utterances. The program that begins them makes
        the changes, too, if it can. A prompt that is known whole runs through the talker here."""
        spans = [self.prefixes.get(opening.prefix) for opening in openings]
        missing = [o for o, span in zip(openings, spans, strict=True) if span is None]
        pages = sum(len(each) for _, _, each in entries)
        if missing or pages > self.steps.entries_with(len(openings)):
            self.store.upload(entries)
            entries = ()
        if not openings:
            return
        computed = self._compute_prefixes(missing)
        starts = [o.start(span or range(0)) for o, span in zip(openings, spans, strict=True)]
        self.steps.begin(starts, self.store.added(entries))
        for prefix, keys_values in computed.items():  # they may take the place of one used above
            self.prefixes.put(prefix, keys_values)
        self.steps.fill(
            [Filling(o.row.slot, o.prefix_length, o.ids) for o in openings if o.ids],
        )
        for o in openings:
            if o.vectors is not None:
                self.steps.prompt_step.fill_vectors(o.vectors, o.row.slot, o.prefix_length)
        for o in openings:
            self._references.begin(o.row.slot, o.prefix.reference, o.row.spoken)
            if o.row.spoken is not None:
                self._replay(o, o.row.spoken)

    def _compute_prefixes(self, openings: Sequence[Opening]) -> dict[PromptSpec, Tensor]:
        """Compute prefixes that are not kept, each once, in the slots of all that begin with it."""
        by_prefix: dict[PromptSpec, list[int]] = {}
        for opening in openings:
            by_prefix.setdefault(opening.prefix, []).append(opening.row.slot)
        computed = {}
        for prefix, (first, *others) in by_prefix.items():
            vectors = self._prompts.prefix(prefix)
            computed[prefix] = self.steps.prompt_step.fill_prefix(vectors, first)
            if others:
                self.store.copy_prefix(others, computed[prefix])
        return computed

    def _replay(self, opening: Opening, spoken: Tensor) -> None:
        """Append frames that another engine made [k, 16] to the prompt; the talker continues with
        what follows the last one."""
        row, frames = opening.row, self._prompts.frames(spoken)
        row.spoken = None
        inputs = frames[:-1] if opening.whole else torch.cat((self._prompts.bos, frames[:-1]))
        if len(inputs):
            text = self._prompts.text([self._next_text_id(row) for _ in inputs])
            start = row.prompt + opening.whole
            self.steps.prompt_step.fill_vectors(inputs + text, row.slot, start)
        self.steps.frame_step.resume(row.slot, spoken, frames[-1])

    def _launch_codec(self, runs: Sequence[CodecRun], queued: _QueuedStep) -> None:
        coming = frozenset(queued.ids)
        there: dict[str, int] = {}
        wanted: dict[str, int] = {}
        for run in runs:
            if run.id in queued.output.failed:
                continue
            row = self._rows[run.id]
            if run.frames <= row.pending:
                there[run.id] = run.frames
            else:
                wanted[run.id] = row.pending + (run.id in coming)
        queued.sound.queue(there, coming=False)
        queued.sound.queue(wanted)

    # Read it.

    def _read(self, queued: _QueuedStep) -> StepOutput:
        output, steps = queued.output, self.steps
        if queued.ids:
            steps.wait_for_frames()
        codes, tokens, ended, failed = decoded(steps.outputs(len(queued.ids)))
        firsts, made = codes[:, 0].tolist(), packed_rows(codes)
        tokens = [skipped + token for skipped, token in zip(queued.skipped, tokens, strict=True)]
        for id, first, frame, token, over, bad in zip(
            queued.ids, firsts, made, tokens, ended, failed, strict=True
        ):
            if bad:
                output.failed[id] = RowError(NumericsError.code, "the model made NaN or Inf logits")
            elif over:
                output.ended[id] = "complete"
            else:
                self._note_frame(id, first, frame, token, output)
        rest = {id: self._rows[id].pending for id in output.ended if self._rows[id].pending > 0}
        queued.sound.queue(rest)
        steps.wait()
        queued.sound.collect(output)
        steps.reset()
        return output

    def _note_frame(
        self, id: str, first: int, codes: bytes, token: int, output: StepOutput
    ) -> None:
        row = self._rows[id]
        row.frames += 1
        if self._aligned:
            row.token, output.tokens[id] = token, packed_number(token)
        output.frames[id], output.codes[id] = first, codes
        if row.frames >= self._max_frames:
            output.ended[id] = "max_length"

    def _on_device(self) -> contextlib.AbstractContextManager[None]:
        """Return a context that makes the model's device the thread's current one, because streams,
        events and graphs belong to that."""
        if self._device.type == "cuda":
            return torch.cuda.device(self._device)
        return contextlib.nullcontext()
