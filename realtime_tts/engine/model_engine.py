"""What the engines over a `SpeechModel` share: description, requests, and rows of text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from realtime_tts.checkpoint import fingerprint
from realtime_tts.engine.interface import Engine, EngineInfo, Execution, UtteranceSpec
from realtime_tts.engine.made_codes import Codes
from realtime_tts.engine.spoken_as import SpokenAs, no_voices
from realtime_tts.engine.torch_setup import name_of
from realtime_tts.errors import CheckpointError, RequestError
from realtime_tts.languages import AUTO
from realtime_tts.model import PromptBuilder, PromptSpec, SpeechModel, VoiceLookup
from realtime_tts.model.alignment import TextView
from realtime_tts.text.tokenizer import Qwen2Tokenizer

_POSITIONS_PER_TOKEN = 4.6
"""Positions per text token: its own in the full-text layout, and frames of the slowest voices."""


@dataclass(slots=True)
class Row:
    """One utterance: its text, where the talker is in it, and how far its sound is.

    `frames` were made, the first `sounded` of them have been through the codec. `slot` is -1 until
    its prefill; `prompt` positions come before that of frame 0. `spoken` [frames, 16]: frames that
    another engine made, kept until the prefill. `unheard`: samples of a silent start, until they
    leave with those of the next frame. The text's own tokens are at position `text_first`
    and following, and in `ids` from `text_from` on, after those of a transcript. `token`: the token
    that was spoken last.
    """

    spec: UtteranceSpec
    prompt_spec: PromptSpec
    ids: list[int] = field(default_factory=list)
    finished: bool = False
    slot: int = -1
    prompt: int = 0
    fed: int = 0
    eos_fed: bool = False
    frames: int = 0
    sounded: int = 0
    spoken: Tensor | None = None
    unheard: NDArray[np.float32] | None = None
    text_first: int = 0
    text_from: int = 0
    token: int = 0

    @property
    def view(self) -> TextView:
        """The text that the talker may be speaking: what it was given so far."""
        return TextView.of(self.text_first, max(0, self.fed - self.text_from), self.token)

    @property
    def pending(self) -> int:
        """Number of frames that have not been through the codec."""
        return self.frames - self.sounded

    @property
    def positions(self) -> int:
        """Number of positions whose keys and values exist."""
        return self.prompt + self.frames


_SHORT_PROMPT = 64
"""Positions of a prompt with a short text, as for warming up."""


class ModelEngine(Engine):
    """The half of `Engine` that computes nothing.

    The constructor raises CheckpointError for a tokenizer that is not the model's, and for more
    frames than fit into an utterance.
    """

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
        rows, where = model.config.talker.text_vocab, model.folder or name
        if tokenizer.largest_id >= rows:
            raise CheckpointError(
                f"{where}: vocab.json has ids up to {tokenizer.largest_id}, but config.json "
                f"says that text_vocab_size is {rows}: take both from one checkpoint"
            )
        self.model = model
        self._prompts: PromptBuilder = model.prompt_builder(tokenizer.encode)
        self._spoken_as = SpokenAs(model.config, self._prompts, tokenizer.encode, voices)
        self._rows: dict[str, Row] = {}
        self._max_frames = model.max_frames if max_frames is None else max_frames
        self._name = name
        self._fingerprint = fingerprint(model.folder) if model.folder else ""
        self._slots = slots
        self._positions = model.config.talker.transformer.max_positions
        """The most positions that one utterance may have."""
        if self._max_frames + _SHORT_PROMPT > self._positions:
            raise CheckpointError(
                f"{where}: {self._max_frames} frames and a prompt do not fit into the "
                f"{self._positions} positions that an utterance may have (max_position_embeddings "
                "of config.json): give fewer --max-frames"
            )
        self._row_buckets: tuple[int, ...] = ()
        """See `EngineInfo.row_buckets`."""

    @property
    def info(self) -> EngineInfo:
        config = self.model.config
        return EngineInfo(
            model=self._name,
            variant=config.variant.value,
            voices=config.speakers,
            languages=(AUTO, *config.languages),
            default_voice=self._spoken_as.default_voice,
            default_sampling=self.model.default_sampling,
            slots=self._slots,
            max_frames=self._max_frames,
            samples_per_frame=config.codec.samples_per_frame,
            codes_per_frame=config.talker.code_groups,
            codebook_size=config.codec.codebook_size,
            fingerprint=self._fingerprint,
            random_weights=self.model.config.random_weights,
            row_buckets=self._row_buckets,
            voice_family=config.family,
            voice_numbers=config.talker.transformer.hidden,
            text_normalization=config.text_normalization,
            instructions=config.follows_instructions,
            safe_tokens=int(config.safe_positions / _POSITIONS_PER_TOKEN),
            executions=(self.execution,),
        )

    @property
    def execution(self) -> Execution:
        """What the engine computes with."""
        device = self.model.talker.device
        return Execution(
            device=str(device),
            dtype=name_of(self.model.talker.dtype),
            gpu=torch.cuda.get_device_name(device) if device.type == "cuda" else "",
        )

    @property
    def sample_ids(self) -> Sequence[int]:
        """Token ids of a short text, for warming up and measuring."""
        return self._prompts.sample_ids

    def check(self, spec: UtteranceSpec) -> None:
        self._spoken_as.check(spec)

    def prompt_tokens(self, spec: UtteranceSpec) -> int:
        return self._prompts.prompt_length(self._spoken_as.prompt_spec(spec))

    def text_needed(self, spec: UtteranceSpec) -> int:
        return self._prompts.text_needed(self._spoken_as.prompt_spec(spec))

    def open(self, utterance_id: str, spec: UtteranceSpec, spoken: Codes | None = None) -> None:
        assert utterance_id not in self._rows, f"utterance {utterance_id!r} is open already"
        # Now, and not at the prefill: the voice may be deleted while the utterance waits.
        row = self._rows[utterance_id] = Row(spec, self._spoken_as.prompt_spec(spec))
        if spoken is not None:
            row.frames = row.sounded = len(spoken)
            row.spoken = torch.from_numpy(spoken.astype(np.int64)).to(self.model.talker.device)

    def append(self, utterance_id: str, ids: Sequence[int]) -> None:
        self._rows[utterance_id].ids.extend(ids)

    def finish(self, utterance_id: str) -> None:
        self._rows[utterance_id].finished = True

    # For subclasses.

    def _next_text_id(self, row: Row) -> int:
        """Return the text id of a row's next frame: a token, end of text once, then padding."""
        if row.fed < len(row.ids):
            row.fed += 1
            return row.ids[row.fed - 1]
        assert row.finished, "a row without its next text token was planned"
        control = self.model.config.text
        if row.eos_fed:
            return control.tts_pad
        row.eos_fed = True
        return control.tts_eos

    def _is_over(self, utterance_id: str) -> bool:
        """Return whether an utterance has as many frames as it may have, before its prefill: then
        another engine made them all."""
        return self._rows[utterance_id].frames >= self._max_frames

    def _check_length(self, row: Row, prompt: int) -> None:
        """Raise RequestError if `prompt` positions and the frames do not fit into an utterance."""
        positions = self._positions
        if prompt + self._max_frames > positions:
            raise RequestError(
                f"the text has {len(row.ids)} tokens; with its prompt and {self._max_frames} "
                f"frames it does not fit into the {positions} positions there are: send less text"
            )
