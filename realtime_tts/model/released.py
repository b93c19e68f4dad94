"""The dimensions of the released CustomVoice checkpoints, for runs without their weights.

From the published config.json files and tensor headers; `tests/model/test_random_weights.py` holds
them against the published parameter counts.
"""

from __future__ import annotations

from dataclasses import replace

from realtime_tts.model.config import (
    CodecConfig,
    GenerationDefaults,
    ModelConfig,
    PredictorConfig,
    TalkerConfig,
    TextIds,
    TransformerConfig,
    Variant,
)

_LARGE = TransformerConfig(
    layers=28,
    hidden=2048,
    heads=16,
    kv_heads=8,
    head_dim=128,
    intermediate=6144,
    rope_theta=1e6,
    norm_eps=1e-6,
    max_positions=32_768,
)
_SMALL = replace(_LARGE, hidden=1024, intermediate=3072)
_PREDICTOR = PredictorConfig(replace(_SMALL, layers=5, max_positions=65_536), vocab=2048)
_CODEC = CodecConfig(
    codebooks=16,
    codebook_size=2048,
    codebook_dim=512,
    latent_dim=1024,
    transformer=TransformerConfig(
        layers=8,
        hidden=512,
        heads=16,
        kv_heads=16,
        head_dim=64,
        intermediate=1024,
        rope_theta=1e4,
        norm_eps=1e-5,
        max_positions=8000,
    ),
    window=72,
    decoder_dim=1536,
    upsample_rates=(8, 5, 4, 3),
    upsampling_ratios=(2, 2),
    samples_per_frame=1920,
)
_LANGUAGES = {
    "english": 2050,
    "german": 2053,
    "spanish": 2054,
    "chinese": 2055,
    "japanese": 2058,
    "french": 2061,
    "korean": 2064,
    "russian": 2069,
    "italian": 2070,
    "portuguese": 2071,
    "beijing_dialect": 2074,
    "sichuan_dialect": 2062,
}
_SPEAKERS = {
    "vivian": 3065,
    "serena": 3066,
    "uncle_fu": 3010,
    "dylan": 2878,
    "eric": 2875,
    "ryan": 3061,
    "aiden": 2861,
    "ono_anna": 2873,
    "sohee": 2864,
}

SIZES = {"1.7B": ("1b7", _LARGE), "0.6B": ("0b6", _SMALL)}
"""The checkpoint's own word for its size, and its talker, by the name people use."""


def released_config(size: str, text: TextIds) -> ModelConfig:
    """The configuration of a released CustomVoice checkpoint, "1.7B" or "0.6B".

    `text` are the ids of the tokenizer that will be used; its vocabulary must not be larger than
    the released one.
    """
    word, transformer = SIZES[size]
    talker = TalkerConfig(
        transformer=transformer,
        vocab=3072,
        text_vocab=151_936,
        text_hidden=2048,
        code_groups=16,
        pad_id=2148,
        bos_id=2149,
        eos_id=2150,
        think_id=2154,
        nothink_id=2155,
        think_bos_id=2156,
        think_eos_id=2157,
        languages=_LANGUAGES,
        speakers=_SPEAKERS,
        dialects={"eric": "sichuan_dialect", "dylan": "beijing_dialect"},
    )
    generation = GenerationDefaults(max_new_tokens=8192)
    return ModelConfig(Variant.CUSTOM_VOICE, word, talker, _PREDICTOR, _CODEC, text, generation)
