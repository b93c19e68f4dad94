"""Reads a checkpoint's three JSON files into a ModelConfig.

What this code cannot run is refused here, by name: other model types, codecs, activations.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from math import prod
from pathlib import Path
from typing import Any, TypeVar

from realtime_tts.checkpoint import missing
from realtime_tts.errors import CheckpointError, RequestError
from realtime_tts.model.config import (
    SAFE_POSITIONS,
    SAMPLE_RATE,
    CodecConfig,
    GenerationDefaults,
    ModelConfig,
    PredictorConfig,
    TalkerConfig,
    TextIds,
    TransformerConfig,
    Variant,
)
from realtime_tts.sampling import PredictorSampling, Sampling, checked

_T = TypeVar("_T", int, float, str, bool)
_Number = TypeVar("_Number", int, float)

MODEL_TYPE = "qwen3_tts"
CODEC_TYPE = "qwen3_tts_tokenizer_12hz"
_MOST = 1 << 24
"""The largest size or setting that is believed: far more than any checkpoint has."""
_CONTROL_IDS = ("pad_id", "bos_id", "think_id", "nothink_id", "think_bos_id", "think_eos_id")


def read_config(folder: Path) -> ModelConfig:
    """Read and check the JSON files of a checkpoint. Raises CheckpointError."""
    root = Section.read(folder / "config.json")
    root.expect("model_type", MODEL_TYPE)
    root.expect("tokenizer_type", CODEC_TYPE)
    variant = root.get("tts_model_type", str)
    if variant not in tuple(Variant):
        known = ", ".join(Variant)
        raise CheckpointError(
            f"{root.path}: tts_model_type is {variant!r}, this server knows: {known}"
        )
    section = root.section("talker_config")
    talker = _talker(section)
    codec = _codec(Section.read(folder / "speech_tokenizer" / "config.json"))
    config = ModelConfig(
        variant=Variant(variant),
        size=root.get("tts_model_size", str),
        talker=talker,
        predictor=_predictor(section.section("code_predictor_config")),
        codec=codec,
        text=_text_ids(root, talker.text_vocab),
        generation=_generation(folder / "generation_config.json"),
        text_normalization=root.get("text_normalization", bool, False),
        safe_positions=root.positive("safe_positions", int, SAFE_POSITIONS),
        alignment_heads=_alignment_heads(root, talker.transformer),
        silent_start=_silent_start(root, talker.code_groups, codec.codebook_size),
        random_weights=root.get("random_weights", bool, False),
    )
    _check_agreement(config, folder)
    return config


class Section:
    """A JSON object that knows its file and path, for error messages."""

    def __init__(self, path: str, values: Mapping[str, Any]) -> None:
        self.path = path
        self._values = values

    @classmethod
    def read(cls, path: Path) -> Section:
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise missing(path) from None
        except (OSError, ValueError, RecursionError) as error:
            raise CheckpointError(f"{path} cannot be read as JSON: {error}") from error
        if not isinstance(values, dict):
            raise CheckpointError(f"{path}: expected an object, got {type(values).__name__}")
        return cls(str(path), values)

    def get(self, key: str, kind: type[_T], default: _T | None = None) -> _T:
        value = self._values.get(key, default)
        if kind is float and type(value) is int and abs(value) < _MOST:
            value = float(value)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise CheckpointError(
                f"{self.path}: {key} must be of type {kind.__name__}, got {value!r}"
            )
        return value

    def positive(self, key: str, kind: type[_Number], default: _Number | None = None) -> _Number:
        """Return the value of `key`, which is more than 0 and at most `_MOST`."""
        value = self.get(key, kind, default)
        if not 0 < value <= _MOST:  # true for NaN, too
            raise CheckpointError(
                f"{self.path}: {key} must be more than 0 and at most {_MOST}, got {value}"
            )
        return value

    def id(self, key: str, vocab: int) -> int:
        """Return the value of `key`, which must be a row of an embedding with `vocab` rows."""
        value = self._values.get(key)
        if type(value) is not int or not 0 <= value < vocab:
            raise CheckpointError(
                f"{self.path}: {key} must be an id of its vocabulary, 0 to {vocab - 1}, got "
                f"{value!r}: correct it, or take the config.json that belongs to these weights"
            )
        return value

    def ids(self, key: str, vocab: int) -> dict[str, int]:
        section = self.section(key)
        return {name.lower(): section.id(name, vocab) for name in section._values}

    def optional(self, key: str) -> Any:
        return self._values.get(key)

    def expect(self, key: str, wanted: object) -> None:
        value = self._values.get(key)
        if value != wanted:
            raise CheckpointError(
                f"{self.path}: {key} is {value!r}, this server supports only {wanted!r}"
            )

    def expect_unset(self, key: str) -> None:
        if self._values.get(key):
            raise CheckpointError(
                f"{self.path}: {key} is {self._values[key]!r}, which is not supported"
            )

    def section(self, key: str) -> Section:
        value = self._values.get(key)
        if not isinstance(value, dict):
            raise CheckpointError(f"{self.path}: {key} must be an object, got {value!r}")
        return Section(f"{self.path}: {key}", value)

    def sizes(self, key: str, default: Sequence[int] | None = None) -> tuple[int, ...]:
        value = self._values.get(key, None if default is None else list(default))
        if not isinstance(value, list) or not all(
            type(item) is int and 0 < item <= _MOST for item in value
        ):
            raise CheckpointError(
                f"{self.path}: {key} must be a list of integers, 1 to {_MOST}, got {value!r}"
            )
        return tuple(value)

    def named(self, key: str) -> dict[str, Any]:
        return {name.lower(): value for name, value in self.section(key)._values.items()}


def _transformer(section: Section) -> TransformerConfig:
    section.expect("hidden_act", "silu")
    section.expect_unset("attention_bias")
    section.expect_unset("use_sliding_window")
    scaling = section.optional("rope_scaling") or {}
    if not isinstance(scaling, dict):
        raise CheckpointError(f"{section.path}: rope_scaling must be an object, got {scaling!r}")
    rope_type = scaling.get("rope_type", scaling.get("type", "default"))
    # The three axes of "mrope" are always equal here, which makes it ordinary RoPE.
    if rope_type not in ("default", "mrope"):
        raise CheckpointError(
            f"{section.path}: rope_scaling type {rope_type!r} is not supported, only 'default'"
        )
    return TransformerConfig(
        layers=section.positive("num_hidden_layers", int),
        hidden=section.positive("hidden_size", int),
        heads=section.positive("num_attention_heads", int),
        kv_heads=section.positive("num_key_value_heads", int),
        head_dim=section.positive("head_dim", int),
        intermediate=section.positive("intermediate_size", int),
        rope_theta=section.positive("rope_theta", float),
        norm_eps=section.positive("rms_norm_eps", float),
        max_positions=section.positive("max_position_embeddings", int),
    )


def _talker(section: Section) -> TalkerConfig:
    dialects = section.named("spk_is_dialect")
    vocab = section.positive("vocab_size", int)
    return TalkerConfig(
        transformer=_transformer(section),
        vocab=vocab,
        text_vocab=section.positive("text_vocab_size", int),
        text_hidden=section.positive("text_hidden_size", int),
        code_groups=section.positive("num_code_groups", int),
        eos_id=section.id("codec_eos_token_id", vocab),
        **{name: section.id(f"codec_{name}", vocab) for name in _CONTROL_IDS},
        languages=section.ids("codec_language_id", vocab),
        speakers=section.ids("spk_id", vocab),
        dialects={name: str(value).lower() for name, value in dialects.items() if value},
    )


def _predictor(section: Section) -> PredictorConfig:
    return PredictorConfig(_transformer(section), vocab=section.positive("vocab_size", int))


def _codec(root: Section) -> CodecConfig:
    root.expect("model_type", CODEC_TYPE)
    root.expect("output_sample_rate", SAMPLE_RATE)
    section = root.section("decoder_config")
    if section.get("num_semantic_quantizers", int, 1) != 1:
        section.expect("num_semantic_quantizers", 1)
    return CodecConfig(
        codebooks=section.positive("num_quantizers", int),
        codebook_size=section.positive("codebook_size", int),
        codebook_dim=section.positive("codebook_dim", int),
        latent_dim=section.positive("latent_dim", int),
        transformer=_transformer(section),
        window=section.positive("sliding_window", int),
        decoder_dim=section.positive("decoder_dim", int),
        upsample_rates=section.sizes("upsample_rates"),
        upsampling_ratios=section.sizes("upsampling_ratios"),
        samples_per_frame=root.positive("decode_upsample_rate", int),
    )


def _text_ids(root: Section, vocab: int) -> TextIds:
    return TextIds(*(root.id(f"{each.name}_token_id", vocab) for each in fields(TextIds)))


def _alignment_heads(root: Section, talker: TransformerConfig) -> tuple[tuple[int, int], ...]:
    """Read our own field `alignment_heads`, which the official package ignores."""
    pairs = root.optional("alignment_heads")
    if pairs is None:
        return ()
    limits = talker.layers, talker.heads
    if not _all_below(limits, pairs) or len(set(map(tuple, pairs))) < len(pairs):
        raise CheckpointError(
            f"{root.path}: alignment_heads must be a list of different pairs [layer, head], layers "
            f"0 to {talker.layers - 1} and heads 0 to {talker.heads - 1} of the talker, got "
            f"{pairs!r}: correct it, or leave the field out"
        )
    return tuple((layer, head) for layer, head in pairs)


def _silent_start(root: Section, groups: int, codebook: int) -> tuple[tuple[int, ...], ...]:
    """Read our own field `silent_start`, which the official package ignores."""
    frames = root.optional("silent_start")
    if frames is None:
        return ()
    if not _all_below((codebook,) * groups, frames):
        raise CheckpointError(
            f"{root.path}: silent_start must be a list of frames, each with {groups} codes below "
            f"{codebook}, got {frames!r}: correct it, or leave the field out"
        )
    return tuple(map(tuple, frames))


def _all_below(limits: Sequence[int], rows: object) -> bool:
    """Return whether this is a list of lists, each with an integer in [0, limit) per limit."""
    return isinstance(rows, list) and all(
        isinstance(row, list)
        and len(row) == len(limits)
        and all(type(number) is int for number in row)
        and all(0 <= number < limit for number, limit in zip(row, limits, strict=True))
        for row in rows
    )


def _generation(path: Path) -> GenerationDefaults:
    if not path.exists():
        return GenerationDefaults()
    section, base = Section.read(path), GenerationDefaults()
    first, rest = base.sampling, base.sampling.predictor
    sample = section.get("do_sample", bool, True)
    sample_rest = section.get("subtalker_dosample", bool, True)
    temperature = section.get("temperature", float, first.temperature)
    rest_temperature = section.get("subtalker_temperature", float, rest.temperature)
    sampling = Sampling(
        temperature=temperature if sample else 0.0,
        top_k=section.get("top_k", int, first.top_k),
        top_p=section.get("top_p", float, first.top_p),
        repetition_penalty=section.get("repetition_penalty", float, first.repetition_penalty),
        predictor=PredictorSampling(
            temperature=rest_temperature if sample_rest else 0.0,
            top_k=section.get("subtalker_top_k", int, rest.top_k),
            top_p=section.get("subtalker_top_p", float, rest.top_p),
        ),
    )
    try:
        checked(sampling)
    except RequestError as error:
        raise CheckpointError(f"{path}: {error}") from None
    return GenerationDefaults(
        sampling, section.positive("max_new_tokens", int, base.max_new_tokens)
    )


def _check_agreement(config: ModelConfig, folder: Path) -> None:
    """Raise CheckpointError unless the parts fit each other."""
    talker, codec = config.talker, config.codec
    rate = prod((*codec.upsample_rates, *codec.upsampling_ratios))
    claims = [
        ("codec num_quantizers", talker.code_groups, codec.codebooks),
        ("codec codebook_size", config.predictor.vocab, codec.codebook_size),
        ("product of the codec's upsample rates", codec.samples_per_frame, rate),
    ]
    for what, expected, found in claims:
        if expected != found:
            raise CheckpointError(f"{folder}: {what} should be {expected}, found {found}")
    for speaker, dialect in talker.dialects.items():
        if dialect not in talker.languages:
            raise CheckpointError(
                f"{folder}: speaker {speaker!r} speaks {dialect!r}, which has no language id"
            )
