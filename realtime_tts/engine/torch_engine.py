"""TorchEngine: carries out plans with the model's modules, on slots.

One step is prefills, then one talker pass over all decoding rows, then one frame for all rows
together (first codes, code predictor), then the codec for the rows whose frames become sound. Eager
torch, on any device; on a CPU rows never influence each other, bit for bit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from realtime_tts.engine.interface import (
    MeasuredStep,
    Progress,
    RowError,
    StepOutput,
    UtteranceSpec,
)
from realtime_tts.engine.made_codes import packed, packed_number
from realtime_tts.engine.model_engine import ModelEngine, Row
from realtime_tts.engine.spoken_as import no_voices
from realtime_tts.engine.warm_up import warm_up
from realtime_tts.errors import NumericsError, RequestError
from realtime_tts.model import ReferenceSound, SpeechModel, Variant, VoiceLookup
from realtime_tts.model.alignment import AlignmentHeads, RowAlignment
from realtime_tts.model.silent_start import SilentStart
from realtime_tts.sampling import checked
from realtime_tts.text.tokenizer import Qwen2Tokenizer
from tts_scheduler import CodecRun, Decode, Prefill, StepPlan

_REPLAYED_AT_ONCE = 32
"""Frames of another engine that one pass of the talker replays."""


class TorchEngine(ModelEngine):
    """An `Engine` over one `SpeechModel` in plain torch. Use from one thread at a time."""

    def __init__(
        self,
        model: SpeechModel,
        tokenizer: Qwen2Tokenizer,
        *,
        name: str,
        slots: int,
        max_frames: int | None = None,
        voices: VoiceLookup = no_voices,
    ) -> None:
        super().__init__(
            model, tokenizer, name=name, slots=slots, max_frames=max_frames, voices=voices
        )
        self._state = model.new_state(slots=slots)
        self._references = ReferenceSound(model.codec, self._state.codec)
        hidden = model.config.talker.transformer.hidden
        talker = model.talker
        self._embeddings = torch.zeros(slots, hidden, device=talker.device, dtype=talker.dtype)
        self._codes: defaultdict[str, list[Tensor]] = defaultdict(list)
        """Codes [16] of each utterance's pending frames."""
        shape = model.config.talker.transformer
        self._heads = AlignmentHeads(model.config.alignment_heads, shape)
        clones = model.config.variant is Variant.BASE  # a clone begins with its reference's sound
        self._silent_start = SilentStart(() if clones else model.config.silent_start, model.codec)

    def silent_start(self, spec: UtteranceSpec) -> int:
        known = len(self._silent_start)
        return known if spec.trim_silence == "on" and known < self._max_frames else 0

    def warm_up(self, progress: Progress) -> list[MeasuredStep]:
        # On a GPU, libraries choose and load their kernels when they first see a size.
        rehearse = self.model.talker.device.type != "cpu"
        return warm_up(self, self.sample_ids, self._slots, progress, rehearse=rehearse)

    def close(self, utterance_id: str) -> None:
        row = self._rows.pop(utterance_id, None)
        self._codes.pop(utterance_id, None)
        if row is not None and row.slot >= 0:
            self._state.clear(row.slot)

    @torch.inference_mode()
    def step(self, plan: StepPlan) -> StepOutput:
        output = StepOutput()
        hidden: list[Tensor] = []
        ids: list[str] = []
        for prefill in plan.prefills:
            if self._is_over(prefill.id):
                output.ended[prefill.id] = "max_length"
                continue
            try:
                hidden.append(self._prefill(prefill, output)[None])
            except RequestError as error:
                output.failed[prefill.id] = RowError(error.code, str(error))
            else:
                ids.append(prefill.id)
        if plan.decodes:
            hidden.append(self._decode(plan.decodes))
            ids += [decode.id for decode in plan.decodes]
        if ids:
            self._make_frames(torch.cat(hidden), ids, output)
        self._run_codec(plan.codec, output)
        return output

    # The stages of a step.

    def _prefill(self, plan: Prefill, output: StepOutput) -> Tensor:
        """Run a row's prompt and first text; return the hidden state [H] for its first frame."""
        row = self._rows[plan.id]
        layout, sampling = plan.layout.value, checked(row.spec.sampling)
        prompt = self._prompts.prompt(row.prompt_spec, row.ids, layout, finished=row.finished)
        self._check_length(row, len(prompt.inputs))
        row.slot, row.fed, row.eos_fed = plan.slot, prompt.text_used, prompt.eos_used
        row.ids[:0] = prompt.carried
        row.text_from = len(prompt.carried)
        row.text_first = self._prompts.text_position(row.prompt_spec)
        self._state.begin(plan.slot, sampling, row.spec.seed)
        self._references.begin(plan.slot, row.prompt_spec.reference, row.spoken)
        hidden = self.model.talker.prefill(prompt.inputs, plan.slot, self._state.kv)
        if plan.silent_start:
            return self._start_silently(row, plan.id, output)
        spoken, row.spoken = row.spoken, None
        return hidden if spoken is None else self._replay(row, spoken)

    def _start_silently(self, row: Row, id: str, output: StepOutput) -> Tensor:
        """Run the silent start behind the prompt, as if its frames had just been made; return the
        hidden state [H] that the next frame is made from."""
        start = self._silent_start
        start.begin(row.slot, self._state.codec)
        self._state.sampling.resume(row.slot, start.codes[:, 0])
        row.frames = row.sounded = len(start)
        row.unheard = start.samples
        output.codes[id] = packed(start.codes.short().cpu().numpy())
        tokens = b""
        for embedding in self._prompts.frames(start.codes):
            tokens += packed_number(row.token)
            text = self._prompts.text([self._next_text_id(row)])
            hidden = self._talk(embedding[None] + text, [row])[0]
        if self._heads:
            output.tokens[id] = tokens
        return hidden

    def _replay(self, row: Row, spoken: Tensor) -> Tensor:
        """Run frames that another engine made [k, 16] behind the prompt; return the hidden state
        [H] that the next one is made from.

        The decode steps are repeated, many to a pass. A prefill would not do: its attention sums in
        another order, and after one different code all later ones would differ.
        """
        self._state.sampling.resume(row.slot, spoken[:, 0])
        text = self._prompts.text([self._next_text_id(row) for _ in spoken])
        inputs = self._prompts.frames(spoken) + text
        for start in range(0, len(inputs) - 1, _REPLAYED_AT_ONCE):
            part = inputs[start : min(start + _REPLAYED_AT_ONCE, len(inputs) - 1)]
            self.model.talker.decode(part, [row.slot] * len(part), self._state.kv)
        return self._talk(inputs[-1:], [row])[0]

    def _decode(self, plans: Sequence[Decode]) -> Tensor:
        """Return the talker's next hidden states [B, H]; each row takes one text token."""
        rows = [self._rows[plan.id] for plan in plans]
        text = self._prompts.text([self._next_text_id(row) for row in rows])
        return self._talk(self._embeddings[[row.slot for row in rows]] + text, rows)

    def _talk(self, inputs: Tensor, rows: Sequence[Row]) -> Tensor:
        """Return the hidden states [B, H] that the rows' next frames are made from; record which
        text token each of them speaks."""
        slots, cache = [row.slot for row in rows], self._state.kv
        if not self._heads:
            return self.model.talker.decode(inputs, slots, cache)
        alignment = RowAlignment(self._heads, cache, slots, [row.view for row in rows])
        hidden = self.model.talker.decode(inputs, slots, cache, alignment.observe)
        for row, token in zip(rows, alignment.tokens(), strict=True):
            row.token = token
        return hidden

    def _make_frames(self, hidden: Tensor, ids: Sequence[str], output: StepOutput) -> None:
        rows = [self._rows[id] for id in ids]
        slots = [row.slot for row in rows]
        frame = self.model.frame(hidden, slots, self._state)
        self._embeddings[slots] = frame.embedding
        ended, failed = frame.ended.tolist(), frame.failed.tolist()
        codes = frame.codes.short().cpu().numpy()
        for index, (id, row) in enumerate(zip(ids, rows, strict=True)):
            if failed[index]:
                output.failed[id] = RowError(NumericsError.code, "the model made NaN or Inf logits")
            elif ended[index]:
                output.ended[id] = "complete"
            else:
                row.frames += 1
                self._codes[id].append(frame.codes[index])
                output.frames[id] = int(codes[index, 0])
                output.codes[id] = output.codes.get(id, b"") + packed(codes[index])
                if self._heads:
                    output.tokens[id] = output.tokens.get(id, b"") + packed_number(row.token)
                if row.frames >= self._max_frames:
                    output.ended[id] = "max_length"

    def _run_codec(self, runs: Sequence[CodecRun], output: StepOutput) -> None:
        """Decode frames into samples; rows with equally many frames share a call."""
        wanted = {run.id: run.frames for run in runs if run.id not in output.failed}
        wanted |= {id: self._rows[id].pending for id in output.ended}
        groups: defaultdict[int, list[str]] = defaultdict(list)
        for id, frames in wanted.items():
            frames = min(frames, self._rows[id].pending)
            if frames > 0:
                groups[frames].append(id)
        for frames, ids in groups.items():
            codes = torch.stack([torch.stack(self._codes[id][:frames]) for id in ids])
            slots = [self._rows[id].slot for id in ids]
            samples = self.model.codec.decode(codes, slots, self._state.codec).cpu().numpy()
            for id, row_samples in zip(ids, samples, strict=True):
                del self._codes[id][:frames]
                row = self._rows[id]
                row.sounded += frames
                if row.unheard is not None:
                    row_samples, row.unheard = np.concatenate((row.unheard, row_samples)), None
                output.samples[id] = row_samples
