"""Sizes of the demo voice, shared by training and export."""

from __future__ import annotations

from dataclasses import dataclass

CODEBOOKS = 16
CODEBOOK_SIZE = 256
PHONE_LABELS = 4
"""Phones, and pitches, told per frame by the training-only heads."""
UNKNOWN, UNLEARNT = 255, 254
"""A phone that nobody knows, and one of a frame that nobody shall learn to say."""


@dataclass(frozen=True, slots=True)
class CodecSize:
    """The decoder's dimensions, named as in the official config.json, and the encoder's width."""

    codebook_dim: int = 128
    latent_dim: int = 192
    hidden_size: int = 192
    num_attention_heads: int = 4
    head_dim: int = 48
    intermediate_size: int = 384
    num_hidden_layers: int = 2
    sliding_window: int = 16
    decoder_dim: int = 256
    upsample_rates: tuple[int, ...] = (8, 5, 4, 3)
    upsampling_ratios: tuple[int, ...] = (2, 2)
    rope_theta: float = 10_000.0
    rms_norm_eps: float = 1e-5
    layer_scale: float = 0.1
    encoder_width: int = 384


@dataclass(frozen=True, slots=True)
class StackSize:
    """A stack of decoder layers, named as in the official config.json."""

    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int = 64
    rope_theta: float = 10_000.0
    rms_norm_eps: float = 1e-6


TALKER = StackSize(288, 768, 8, 4, 2)
PREDICTOR = StackSize(192, 640, 2, 3, 1)
CODEC = CodecSize()
TEXT_ENTRIES = 2048
TEXT_VOCAB = 2064
TEXT_WIDTH = 256
TALKER_VOCAB = CODEBOOK_SIZE + 1024
"""The official package forbids the last 1,024 ids but end of speech: first codes come before."""
TALKER_USED = 288
"""First codes and the control ids below; the rest of the vocabulary means nothing."""
EOS, PAD, BOS = 256, 257, 258
THINK, NOTHINK, THINK_BOS, THINK_EOS = 259, 260, 261, 262
ENGLISH = 264
SPEAKERS = {"ava": 272, "ray": 273}
IM_START, IM_END = TEXT_ENTRIES + 1, TEXT_ENTRIES + 2
TTS_PAD, TTS_BOS, TTS_EOS = TEXT_ENTRIES + 5, TEXT_ENTRIES + 6, TEXT_ENTRIES + 7
