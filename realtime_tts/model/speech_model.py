"""A whole checkpoint: talker, code predictor and codec, and the state they keep by slot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from realtime_tts.checkpoint import Progress, find_checkpoint, ignore_progress
from realtime_tts.kernels.kept_frames import CodeTables, DrawnCodes
from realtime_tts.model.code_predictor import Choices, CodePredictor, Predict
from realtime_tts.model.codec import CodecDecoder
from realtime_tts.model.codec_gemm import GemmCodecDecoder
from realtime_tts.model.codec_state import CodecState
from realtime_tts.model.config import ModelConfig
from realtime_tts.model.config_files import read_config
from realtime_tts.model.prompt import PromptBuilder
from realtime_tts.model.sampling import SamplingState
from realtime_tts.model.state import KVCache
from realtime_tts.model.talker import Talker
from realtime_tts.model.weights import Weights
from realtime_tts.sampling import Sampling

FirstCodes = Callable[[Tensor], tuple[Tensor, Tensor, Choices]]
"""Draws codes [B] from first-code logits [B, vocab]; also returns which rows [B] had NaN or Inf,
and how the other codes are chosen."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame for each row of a batch.

    codes [B, 16] int64; embedding [B, H], the sum of their embeddings (add the text vector to get
    the talker's next input); ended [B] bool: the first code was end of speech, there is no frame;
    failed [B] bool: NaN or Inf in this row's logits, its codes mean nothing.
    """

    codes: Tensor
    embedding: Tensor
    ended: Tensor
    failed: Tensor


@dataclass(frozen=True, slots=True)
class SpeechState:
    """Everything kept between steps, by slot."""

    kv: KVCache
    sampling: SamplingState
    codec: CodecState

    def begin(self, slot: int, sampling: Sampling, seed: int) -> None:
        """Clear a slot for a new utterance. The seed may be any integer."""
        self.clear(slot)
        self.sampling.begin(slot, sampling, seed)

    def clear(self, slot: int) -> None:
        """Clear the slot's state. Idempotent."""
        self.kv.clear(slot)
        self.sampling.clear(slot)
        self.codec.reset([slot])


class SpeechModel:
    """The parts of one loaded checkpoint. See the package docstring for how to use them. `folder`:
    the checkpoint's; None for weights that were made and not read."""

    def __init__(
        self,
        folder: Path | None,
        config: ModelConfig,
        talker: Talker,
        predictor: CodePredictor,
        codec: CodecDecoder,
        slot_codec: GemmCodecDecoder | None = None,
    ) -> None:
        self.folder, self.config = folder, config
        self.talker, self.predictor, self.codec = talker, predictor, codec
        self.code_tables = CodeTables(
            talker.codec_embedding, predictor.embedding, config.talker.eos_id
        )
        self.slot_codec: CodecDecoder | GemmCodecDecoder = slot_codec or codec
        """The codec for captured steps: on a GPU the one made for it."""

    @property
    def slot_codec_dtype(self) -> torch.dtype:
        """The precision in which `slot_codec` computes; the plain codec has only float32."""
        codec = self.slot_codec
        return codec.dtype if isinstance(codec, GemmCodecDecoder) else torch.float32

    @property
    def default_sampling(self) -> Sampling:
        """The sampling that the checkpoint's generation_config.json recommends."""
        return self.config.generation.sampling

    @property
    def max_frames(self) -> int:
        """The frames that max_new_tokens of the checkpoint allows: the last token becomes none."""
        return self.config.generation.max_new_tokens - 1

    def prompt_builder(self, encode: Callable[[str], Sequence[int]]) -> PromptBuilder:
        """Return a prompt builder. `encode`: token ids of plain text, without any special token."""
        return PromptBuilder(self.config, self.talker, self.code_tables, encode)

    def new_state(self, slots: int) -> SpeechState:
        """Return the state of `slots` slots, before their first utterance."""
        return SpeechState(
            kv=self.talker.new_cache(slots),
            sampling=SamplingState(self.config, slots, self.talker.device),
            codec=self.codec.new_state(slots),
        )

    @torch.inference_mode()
    def frame(self, hidden: Tensor, slots: Sequence[int], state: SpeechState) -> Frame:
        """Return the next frame of each slot, given the talker's outputs [B, H] for them."""
        sampling = state.sampling

        def first_codes(logits: Tensor) -> tuple[Tensor, Tensor, Choices]:
            others = Choices(lambda logits, book: sampling.other_codes(logits, book, slots))
            return *sampling.first_codes(logits.float(), slots), others

        drawn = self.draw_codes(hidden, first_codes, self.predictor.codes)
        return Frame(
            codes=torch.cat((drawn.first.unsqueeze(1), drawn.others), 1),
            embedding=self.code_tables.summed(drawn.first, drawn.others),
            ended=drawn.first == self.config.talker.eos_id,
            failed=drawn.failed,
        )

    @torch.inference_mode()
    def draw_codes(self, hidden: Tensor, first_codes: FirstCodes, predict: Predict) -> DrawnCodes:
        """Return the codes of a frame of the talker's outputs [B, H], drawn by the functions given.
        `predict`: what runs the code predictor."""
        first, failed, choices = first_codes(self.talker.logits(hidden))
        embedding = F.embedding(first, self.talker.codec_embedding)
        others = predict(hidden, embedding, choices)
        return DrawnCodes(first, others, failed | choices.failed)


def build_model(
    config: ModelConfig,
    weights: Weights,
    codec_weights: Weights,
    dtype: torch.dtype,
    progress: Progress,
    folder: Path | None = None,
) -> SpeechModel:
    """Return the model of these weights, on their device: talker, predictor and, on a GPU,
    `slot_codec` in `dtype`, the plain codec in float32. Raises CheckpointError."""
    place = weights.device
    progress("load talker", 0, 2)
    with weights:
        width, groups = config.talker.transformer.hidden, config.talker.code_groups
        talker = Talker(config.talker, weights, place, dtype)
        predictor = CodePredictor(config.predictor, width, groups, weights, place, dtype)
        weights.finish()
    progress("load codec", 1, 2)
    with codec_weights:
        codec = CodecDecoder(config.codec, codec_weights, place)
        codec_weights.finish()
        captures = place.type == "cuda"
        fast = GemmCodecDecoder(config.codec, codec_weights, place, dtype) if captures else None
    progress("load codec", 2, 2)
    return SpeechModel(folder, config, talker, predictor, codec, fast)


def load_model(
    source: str | Path,
    *,
    device: str | torch.device = "cpu",
    dtype: torch.dtype = torch.float32,
    progress: Progress = ignore_progress,
) -> SpeechModel:
    """Load a checkpoint folder, or download one by its Hub id first. A Base checkpoint's encoders
    are not loaded: `VoiceEncoder` does that.

    Set the number of CPU threads before. Raises CheckpointError.
    """
    folder, place = find_checkpoint(source, progress), torch.device(device)
    return build_model(
        read_config(folder),
        Weights(folder, device=place, dtype=dtype, ignored=("speaker_encoder.",)),
        # In float32 first: the codebooks are quotients and products of what is stored.
        Weights(
            folder / "speech_tokenizer", device=place, dtype=torch.float32, ignored=("encoder.",)
        ),
        dtype,
        progress,
        folder,
    )
