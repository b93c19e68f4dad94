"""TorchEngine: carries out plans with the model's modules, on slots.

One step is prefills, then one talker pass over all decoding rows, then one frame for all rows
together (first codes, code predictor), then the codec for the rows whose frames become sound.
Eager torch, on any device; on a CPU rows never influence each other, bit for bit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import torch
from torch import Tensor

from realtime_tts.engine.interface import (
    EngineInfo,
    MeasuredStep,
    Progress,
    RowError,
    SamplerSettings,
    SamplingSettings,
    StepOutput,
    UtteranceSpec,
)
from realtime_tts.engine.spoken_as import SpokenAs, no_voices
from realtime_tts.engine.torch_setup import prepare_torch
from realtime_tts.engine.warm_up import warm_up
from realtime_tts.errors import NumericsError, RequestError
from realtime_tts.model import (
    PromptBuilder,
    PromptSpec,
    ReferenceSound,
    Sampling,
    SpeechModel,
    VoiceLookup,
    find_checkpoint,
    load_model,
)
from realtime_tts.text.tokenizer import Qwen2Tokenizer
from tts_scheduler import CodecRun, Decode, Prefill, StepPlan


@dataclass(slots=True)
class _Row:
    """One utterance: its text, where the talker is in it, and frames not yet sound."""

    spec: UtteranceSpec
    prompt: PromptSpec
    ids: list[int] = field(default_factory=list)
    finished: bool = False
    slot: int = -1
    frames: int = 0
    fed: int = 0
    eos_fed: bool = False
    pending: list[Tensor] = field(default_factory=list)
    """Codes [16] of frames that have not been through the codec."""


class TorchEngine:
    """An `Engine` over one `SpeechModel`. Use from one thread at a time."""

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
        self._model = model
        self._prompts: PromptBuilder = model.prompt_builder(tokenizer.encode)
        self._spoken_as = SpokenAs(model.config, self._prompts, tokenizer.encode, voices)
        self._state = model.new_state(slots=slots)
        self._references = ReferenceSound(model.codec, self._state.codec)
        hidden = model.config.talker.transformer.hidden
        talker = model.talker
        self._embeddings = torch.zeros(slots, hidden, device=talker.device, dtype=talker.dtype)
        self._rows: dict[str, _Row] = {}
        self._max_frames = model.max_frames if max_frames is None else max_frames
        self._name = name
        self._slots = slots

    @classmethod
    def load(
        cls,
        checkpoint: str,
        *,
        name: str,
        slots: int,
        device: str,
        dtype: str,
        threads: int | None,
        max_frames: int | None,
        progress: Progress,
        voices: VoiceLookup = no_voices,
    ) -> Self:
        """Find (and if need be download) a checkpoint and load it.

        Raises CheckpointError for what cannot be found, read or served, ConfigError for a device
        that is not there.
        """
        prepare_torch(device, threads)
        folder = find_checkpoint(checkpoint, progress)
        loaded = load_model(folder, device=device, dtype=getattr(torch, dtype), progress=progress)
        tokenizer = Qwen2Tokenizer.from_folder(folder)
        return cls(loaded, tokenizer, name=name, slots=slots, max_frames=max_frames, voices=voices)

    @property
    def info(self) -> EngineInfo:
        config = self._model.config
        return EngineInfo(
            model=self._name,
            variant=config.variant.value,
            voices=config.speakers,
            languages=("auto", *config.languages),
            default_voice=self._spoken_as.default_voice,
            default_sampling=_sampling_settings(self._model.default_sampling),
            slots=self._slots,
            max_frames=self._max_frames,
            samples_per_frame=config.codec.samples_per_frame,
            random_weights=self._model.random_weights,
        )

    @property
    def model(self) -> SpeechModel:
        return self._model

    @property
    def sample_ids(self) -> Sequence[int]:
        """Ids of a short text, for warming up and measuring."""
        return self._prompts.sample_ids

    def warm_up(self, progress: Progress) -> list[MeasuredStep]:
        return warm_up(self, self.sample_ids, self._slots, progress)

    def check(self, spec: UtteranceSpec) -> None:
        self._spoken_as.check(spec)

    def prompt_tokens(self, spec: UtteranceSpec) -> int:
        return self._prompts.prompt_length(self._spoken_as.prompt_spec(spec))

    def text_needed(self, spec: UtteranceSpec) -> int:
        return self._prompts.text_needed(self._spoken_as.prompt_spec(spec))

    def open(self, utterance_id: str, spec: UtteranceSpec) -> None:
        assert utterance_id not in self._rows, f"utterance {utterance_id!r} is open already"
        # Now, and not at the prefill: the voice may be deleted while the utterance waits.
        self._rows[utterance_id] = _Row(spec, self._spoken_as.prompt_spec(spec))

    def append(self, utterance_id: str, ids: Sequence[int]) -> None:
        self._rows[utterance_id].ids.extend(ids)

    def finish(self, utterance_id: str) -> None:
        self._rows[utterance_id].finished = True

    def close(self, utterance_id: str) -> None:
        row = self._rows.pop(utterance_id, None)
        if row is not None and row.slot >= 0:
            self._state.clear(row.slot)

    @torch.inference_mode()
    def step(self, plan: StepPlan) -> StepOutput:
        output = StepOutput()
        hidden: list[Tensor] = []
        ids: list[str] = []
        for prefill in plan.prefills:
            try:
                hidden.append(self._prefill(prefill)[None])
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

    def _prefill(self, plan: Prefill) -> Tensor:
        """Prompt and first text of a row -> hidden state [H] its frame 0 is made from."""
        row = self._rows[plan.id]
        layout = plan.layout.value
        prompt = self._prompts.prompt(row.prompt, row.ids, layout, finished=row.finished)
        positions = self._model.config.talker.transformer.max_positions
        if len(prompt.inputs) + self._max_frames > positions:
            raise RequestError(
                f"the text has {len(row.ids)} tokens; with its prompt and {self._max_frames} "
                f"frames it does not fit into the model's {positions} positions: send less text"
            )
        row.slot, row.fed, row.eos_fed = plan.slot, prompt.text_used, prompt.eos_used
        row.ids[:0] = prompt.carried
        self._state.begin(plan.slot, _sampling(row.spec.sampling), row.spec.seed)
        self._references.begin(plan.slot, row.prompt.reference)
        return self._model.talker.prefill(prompt.inputs, plan.slot, self._state.kv)

    def _decode(self, plans: Sequence[Decode]) -> Tensor:
        """The talker's next hidden states [B, H]; each row eats one text token."""
        slots = [decode.slot for decode in plans]
        text = self._prompts.text([self._next_text_id(self._rows[plan.id]) for plan in plans])
        inputs = self._embeddings[slots] + text
        return self._model.talker.decode(inputs, slots, self._state.kv)

    def _next_text_id(self, row: _Row) -> int:
        """The text id of a row's next frame: a token, end of text once, then padding."""
        if row.fed < len(row.ids):
            row.fed += 1
            return row.ids[row.fed - 1]
        assert row.finished, "a row without its next text token was planned"
        control = self._model.config.text
        if row.eos_fed:
            return control.tts_pad
        row.eos_fed = True
        return control.tts_eos

    def _make_frames(self, hidden: Tensor, ids: Sequence[str], output: StepOutput) -> None:
        rows = [self._rows[id] for id in ids]
        slots = [row.slot for row in rows]
        frame = self._model.frame(hidden, slots, self._state)
        self._embeddings[slots] = frame.embedding
        ended, failed = frame.ended.tolist(), frame.failed.tolist()
        first_codes = frame.codes[:, 0].tolist()
        for index, (id, row) in enumerate(zip(ids, rows, strict=True)):
            if failed[index]:
                output.failed[id] = RowError(NumericsError.code, "the model made NaN or Inf logits")
            elif ended[index]:
                output.ended[id] = "complete"
            else:
                row.frames += 1
                row.pending.append(frame.codes[index])
                output.frames[id] = first_codes[index]
                if row.frames >= self._max_frames:
                    output.ended[id] = "max_length"

    def _run_codec(self, runs: Sequence[CodecRun], output: StepOutput) -> None:
        """Frames to samples; rows with equally many frames share a call."""
        wanted = {run.id: run.frames for run in runs if run.id not in output.failed}
        wanted |= {id: len(self._rows[id].pending) for id in output.ended}
        groups: defaultdict[int, list[str]] = defaultdict(list)
        for id, frames in wanted.items():
            frames = min(frames, len(self._rows[id].pending))
            if frames > 0:
                groups[frames].append(id)
        for frames, ids in groups.items():
            rows = [self._rows[id] for id in ids]
            codes = torch.stack([torch.stack(row.pending[:frames]) for row in rows])
            slots = [row.slot for row in rows]
            samples = self._model.codec.decode(codes, slots, self._state.codec).cpu().numpy()
            for row, id, row_samples in zip(rows, ids, samples, strict=True):
                del row.pending[:frames]
                output.samples[id] = row_samples


def _sampling(settings: SamplingSettings) -> Sampling:
    talker, predictor = settings.talker, settings.predictor
    return Sampling(
        temperature=talker.temperature,
        top_k=talker.top_k,
        top_p=talker.top_p,
        repetition_penalty=settings.repetition_penalty,
        predictor_temperature=predictor.temperature,
        predictor_top_k=predictor.top_k,
        predictor_top_p=predictor.top_p,
    )


def _sampling_settings(sampling: Sampling) -> SamplingSettings:
    return SamplingSettings(
        talker=SamplerSettings(sampling.temperature, sampling.top_k, sampling.top_p),
        predictor=SamplerSettings(
            sampling.predictor_temperature, sampling.predictor_top_k, sampling.predictor_top_p
        ),
        repetition_penalty=sampling.repetition_penalty,
    )
