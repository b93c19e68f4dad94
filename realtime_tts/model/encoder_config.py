"""Dimensions of the two encoders that turn a reference recording into a voice.

Released files name only some of them; the others are defaults of the official package's code (the
speaker encoder) and of `MimiConfig` (the speech encoder).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from realtime_tts.errors import CheckpointError
from realtime_tts.model.config import SAMPLE_RATE
from realtime_tts.model.config_files import CODEC_TYPE, Section


@dataclass(frozen=True, slots=True)
class SpeakerEncoderConfig:
    """Dimensions of the speaker encoder. `channels`, `kernels` and `dilations` list the first
    layer, each SE-Res2Net block, and the aggregation."""

    width: int
    bands: int
    channels: tuple[int, ...]
    kernels: tuple[int, ...]
    dilations: tuple[int, ...]
    attention_channels: int
    squeezed_channels: int
    scale: int


@dataclass(frozen=True, slots=True)
class SpeechEncoderConfig:
    """Dimensions of the speech encoder. The first `codebooks` of its `quantizers` are used;
    `strides` are in the order in which they are applied, without the last step to the frame
    rate."""

    filters: int
    strides: tuple[int, ...]
    residual_layers: int
    kernel: int
    last_kernel: int
    residual_kernel: int
    dilation_growth: int
    compress: int
    hidden: int
    layers: int
    heads: int
    head_dim: int
    intermediate: int
    rope_theta: float
    norm_eps: float
    quantizers: int
    codebooks: int
    codebook_size: int
    codebook_dim: int
    samples_per_frame: int


def read_speaker_encoder(folder: Path) -> SpeakerEncoderConfig:
    """Read the speaker encoder's part of a Base checkpoint's config.json.

    Raises CheckpointError.
    """
    root = Section.read(folder / "config.json")
    if root.optional("speaker_encoder_config") is None:
        raise CheckpointError(
            f"{root.path} has no speaker_encoder_config, so no voice can be made of a recording: "
            "take a whole Base checkpoint, like Qwen/Qwen3-TTS-12Hz-1.7B-Base, or register "
            "embeddings made with one"
        )
    section = root.section("speaker_encoder_config")
    if section.get("sample_rate", int, SAMPLE_RATE) != SAMPLE_RATE:
        section.expect("sample_rate", SAMPLE_RATE)
    config = SpeakerEncoderConfig(
        width=section.positive("enc_dim", int),
        bands=section.positive("mel_dim", int, 128),
        channels=section.sizes("enc_channels", (512, 512, 512, 512, 1536)),
        kernels=section.sizes("enc_kernel_sizes", (5, 3, 3, 3, 1)),
        dilations=section.sizes("enc_dilations", (1, 2, 3, 4, 1)),
        attention_channels=section.positive("enc_attention_channels", int, 128),
        squeezed_channels=section.positive("enc_se_channels", int, 128),
        scale=section.positive("enc_res2net_scale", int, 8),
    )
    if not 2 < len(config.channels) == len(config.kernels) == len(config.dilations):
        raise CheckpointError(
            f"{section.path}: enc_channels, enc_kernel_sizes and enc_dilations must be lists of "
            f"one length, three at least; got {config.channels}, {config.kernels} and "
            f"{config.dilations}"
        )
    return config


def read_speech_encoder(folder: Path) -> SpeechEncoderConfig:
    """Read the speech encoder's part of a folder's speech_tokenizer/config.json.

    Raises CheckpointError.
    """
    root = Section.read(folder / "speech_tokenizer" / "config.json")
    root.expect("model_type", CODEC_TYPE)
    root.expect("input_sample_rate", SAMPLE_RATE)
    section = root.section("encoder_config")
    _check_kind(section)
    hidden = section.positive("hidden_size", int, 512)
    heads = section.positive("num_attention_heads", int, 8)
    return SpeechEncoderConfig(
        filters=section.positive("num_filters", int, 64),
        strides=section.sizes("upsampling_ratios", (8, 6, 5, 4))[::-1],
        residual_layers=section.positive("num_residual_layers", int, 1),
        kernel=section.positive("kernel_size", int, 7),
        last_kernel=section.positive("last_kernel_size", int, 3),
        residual_kernel=section.positive("residual_kernel_size", int, 3),
        dilation_growth=section.positive("dilation_growth_rate", int, 2),
        compress=section.positive("compress", int, 2),
        hidden=hidden,
        layers=section.positive("num_hidden_layers", int, 8),
        heads=heads,
        head_dim=section.positive("head_dim", int, hidden // heads),
        intermediate=section.positive("intermediate_size", int, 2048),
        rope_theta=section.positive("rope_theta", float, 10_000.0),
        norm_eps=section.positive("norm_eps", float, 1e-5),
        quantizers=section.positive("num_quantizers", int, 32),
        codebooks=root.positive("encoder_valid_num_quantizers", int),
        codebook_size=section.positive("codebook_size", int, 2048),
        codebook_dim=section.positive("codebook_dim", int, 256),
        samples_per_frame=root.positive("encode_downsample_rate", int),
    )


def cloning_obstacle(folder: Path) -> str:
    """Return why a Base checkpoint cannot make voices of recordings; empty if it can."""
    try:
        read_speaker_encoder(folder)
        read_speech_encoder(folder)
    except CheckpointError as error:
        return str(error)
    return ""


def _check_kind(section: Section) -> None:
    """Refuse by name what the speech encoder does not support; a missing key has its default."""
    heads = section.get("num_attention_heads", int, 8)
    for key, wanted in {
        "audio_channels": 1,
        "hidden_act": "gelu",
        "pad_mode": "constant",
        "use_causal_conv": True,
        "num_semantic_quantizers": 1,
        "num_key_value_heads": heads,
    }.items():
        if section.optional(key) is not None:
            section.expect(key, wanted)
    section.expect_unset("use_conv_shortcut")
    section.expect_unset("attention_bias")
    width = section.get("codebook_dim", int, 256)
    if section.get("vector_quantization_hidden_dimension", int, 256) != width:
        section.expect("vector_quantization_hidden_dimension", width)
