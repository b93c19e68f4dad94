"""Dimensions, token ids and defaults of a checkpoint.

No ids or sizes are assumed: the released checkpoints and small ones of the same architecture differ
in all of them. `config_files.py` reads these from a folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from realtime_tts.sampling import Sampling

SAMPLE_RATE = 24_000


class Variant(StrEnum):
    """What a checkpoint was trained to do."""

    CUSTOM_VOICE = "custom_voice"
    """Has named speakers; the 1.7B checkpoint also follows instructions."""
    VOICE_DESIGN = "voice_design"
    """Makes a voice that fits a description in the instructions."""
    BASE = "base"
    """Clones a voice from a reference recording."""


@dataclass(frozen=True, slots=True)
class TransformerConfig:
    """A stack of decoder layers: RMSNorm, grouped-query attention with q/k norm, SwiGLU."""

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    rope_theta: float
    norm_eps: float
    max_positions: int


@dataclass(frozen=True, slots=True)
class TalkerConfig:
    """The talker. Ids are rows of its codec embedding; names are lower case."""

    transformer: TransformerConfig
    vocab: int
    text_vocab: int
    text_hidden: int
    code_groups: int
    pad_id: int
    bos_id: int
    eos_id: int
    think_id: int
    nothink_id: int
    think_bos_id: int
    think_eos_id: int
    languages: Mapping[str, int]
    """Language and dialect ids by name."""
    speakers: Mapping[str, int]
    dialects: Mapping[str, str]
    """The dialects of speakers who speak one, by speaker; the names are keys of `languages`."""


@dataclass(frozen=True, slots=True)
class PredictorConfig:
    """The code predictor; `vocab` is the codebook size."""

    transformer: TransformerConfig
    vocab: int


@dataclass(frozen=True, slots=True)
class CodecConfig:
    """The codec's decoder. `window` counts frames, the present one included."""

    codebooks: int
    codebook_size: int
    codebook_dim: int
    latent_dim: int
    transformer: TransformerConfig
    window: int
    decoder_dim: int
    upsample_rates: tuple[int, ...]
    upsampling_ratios: tuple[int, ...]
    samples_per_frame: int


@dataclass(frozen=True, slots=True)
class TextIds:
    """Text token ids with a special meaning."""

    im_start: int
    im_end: int
    assistant: int
    tts_pad: int
    tts_bos: int
    tts_eos: int


@dataclass(frozen=True, slots=True)
class GenerationDefaults:
    """The sampling that the checkpoint recommends, and how long its utterances are.

    A `max_new_tokens` of N allows at most N - 1 frames, because the last token never becomes one.
    End of speech is never drawn before `min_frames` frames.
    """

    sampling: Sampling = Sampling()
    max_new_tokens: int = 2048
    min_frames: int = 2


SAFE_POSITIONS = 1_000
"""The `safe_positions` of released checkpoints, which do not name it: about 75 s of speech."""


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """The whole configuration of a checkpoint."""

    variant: Variant
    size: str
    talker: TalkerConfig
    predictor: PredictorConfig
    codec: CodecConfig
    text: TextIds
    generation: GenerationDefaults
    text_normalization: bool = False
    """Whether it misreads digits and abbreviations, so that a server has to spell them out."""
    safe_positions: int = SAFE_POSITIONS
    """Positions, of text and frames together, within which an utterance is spoken well."""
    alignment_heads: tuple[tuple[int, int], ...] = ()
    """Layer and query head of the talker's heads that attend to the text being spoken; empty if
    none are known (`alignment.py`)."""
    silent_start: tuple[tuple[int, ...], ...] = ()
    """Codes of the frames of silence that it makes before every text (`silent_start.py`)."""
    random_weights: bool = False
    """Whether it is untrained: its speech is noise, and whatever shows it has to say so."""

    @property
    def family(self) -> str:
        """The name of the checkpoints that share voices: those of one size."""
        return f"qwen3-tts-12hz-{self.size}"

    @property
    def languages(self) -> tuple[str, ...]:
        """Languages that a caller may name, without dialects and "auto"."""
        return tuple(name for name in self.talker.languages if "dialect" not in name)

    @property
    def speakers(self) -> tuple[str, ...]:
        return tuple(self.talker.speakers)

    @property
    def follows_instructions(self) -> bool:
        """Whether instructions have an effect: the small CustomVoice ignores them, as upstream."""
        if self.variant is Variant.CUSTOM_VOICE:
            return self.size != "0b6"
        return self.variant is Variant.VOICE_DESIGN
