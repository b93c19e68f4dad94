"""Recordings become the voices the official package makes of them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from realtime_tts.errors import CheckpointError, ConfigError, VoiceError
from realtime_tts.model import speech_encoder
from realtime_tts.model.encoder_config import (
    SpeakerEncoderConfig,
    SpeechEncoderConfig,
    read_speaker_encoder,
    read_speech_encoder,
)
from realtime_tts.model.random_weights import RandomWeights
from realtime_tts.model.speaker_encoder import SpeakerEncoder, mel_filters
from realtime_tts.model.speech_encoder import SpeechEncoder
from realtime_tts.model.voice_encoder import VoiceEncoder, resampled

Stored = dict[str, NDArray[Any]]
RECORDINGS = [
    ("ref", "icl_textshort_st"),
    ("ref", "icl_ns"),
    ("ref_short", "icl_textlong_st"),
    ("ref", "icl_batch_st.0"),
]


@pytest.fixture(scope="module")
def stored(parity: Path) -> Stored:
    with np.load(parity / "tiny-base.npz") as arrays:
        return dict(arrays)


@pytest.fixture(scope="module")
def encoder(parity: Path) -> VoiceEncoder:
    return VoiceEncoder.load(parity / "tiny-base")


def tone(seconds: float = 1.0, rate: int = 24_000) -> NDArray[np.float32]:
    time = np.arange(round(seconds * rate)) / rate
    return (0.3 * np.sin(2 * np.pi * 220 * time * (1 + 0.2 * time))).astype(np.float32)


@pytest.mark.parametrize(("recording", "case"), RECORDINGS)
def test_a_recording_becomes_the_official_embedding_and_codes(
    recording: str, case: str, encoder: VoiceEncoder, stored: Stored
) -> None:
    samples = stored[f"{recording}/samples"]
    voice = encoder.encode(samples, 24_000, transcript="How are you?")
    np.testing.assert_allclose(voice.embedding.numpy(), stored[f"{case}/spk"], atol=1e-4, rtol=0)
    assert voice.codes is not None
    assert voice.codes.tolist() == stored[f"{case}/ref_codes"].tolist()


def test_a_recording_padded_by_its_batch_becomes_the_official_codes(
    encoder: VoiceEncoder, stored: Stored
) -> None:
    """The official package fills a shorter recording up to its neighbour's length, which its last
    code hears, and then keeps its own frames."""
    short, long = stored["ref_short/samples"], stored["ref/samples"]
    silence = (len(long) - len(short)) / 24_000
    voice = encoder.encode(short, 24_000, transcript="Hello.", silence=silence)
    wanted = stored["icl_batch_st.1/ref_codes"].tolist()
    assert voice.codes is not None and voice.codes[: len(wanted)].tolist() == wanted
    spk = stored["icl_batch_st.1/spk"]
    np.testing.assert_allclose(voice.embedding.numpy(), spk, atol=1e-4, rtol=0)


def test_silence_is_behind_the_codes_and_not_in_the_embedding(encoder: VoiceEncoder) -> None:
    plain = encoder.encode(tone(), 24_000, transcript="so")
    padded = encoder.encode(tone(), 24_000, transcript="so", silence=0.5)
    assert plain.codes is not None and padded.codes is not None
    assert (len(plain.codes), len(padded.codes)) == (13, 19)  # 1.0 and 1.5 s of 80 ms each
    assert torch.equal(padded.codes[:12], plain.codes[:12])
    assert torch.equal(padded.embedding, plain.embedding)


@pytest.mark.parametrize("transcript", [None, "", "  \n"])
def test_without_a_transcript_there_are_no_codes(
    transcript: str | None, encoder: VoiceEncoder
) -> None:
    voice = encoder.encode(tone(), 24_000, transcript=transcript)
    assert (voice.codes, voice.transcript) == (None, None)
    assert (voice.model, voice.embedding.shape) == ("qwen3-tts-12hz-1b7", (128,))


def test_a_voice_does_not_depend_on_the_sample_rate(encoder: VoiceEncoder) -> None:
    """Up to what resampling loses of a tone far below its band."""
    pytest.importorskip("soxr")
    wanted = encoder.encode(tone(), 24_000, transcript=None).embedding
    found = encoder.encode(tone(rate=48_000), 48_000, transcript=None).embedding
    other = encoder.encode(tone() ** 3, 24_000, transcript=None).embedding
    assert (found - wanted).norm() < 0.1 * (other - wanted).norm()


@pytest.mark.parametrize("rate", [8_000, 11_025, 44_100, 96_000])
def test_resampling_gives_so_many_samples_and_keeps_a_tone(rate: int) -> None:
    pytest.importorskip("soxr")
    found = resampled(tone(0.7, rate), rate)
    assert len(found) == -(-round(0.7 * rate) * 24_000 // rate) and found.dtype == np.float32
    middle = slice(2_000, 14_000)
    np.testing.assert_allclose(found[middle], tone(0.7)[middle], atol=2e-3)


def test_resampling_without_its_library_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "soxr", None)
    assert resampled(tone(), 24_000) is not None
    with pytest.raises(ConfigError, match=r"pip install -e '\.\[server\]'"):
        resampled(tone(rate=8_000), 8_000)


@pytest.mark.parametrize(
    ("samples", "rate", "message"),
    [
        (tone(0.2), 24_000, "0.5 to 60 seconds, got 0.20"),
        (np.zeros(0, np.float32), 24_000, "got 0.00"),
        (tone(61), 24_000, "got 61"),
        (tone(), 1_000, "sample rate"),
        (np.zeros(24_000, np.float32), 24_000, "silent"),
        (np.stack((tone(), tone())), 24_000, "one channel"),
        (np.where(np.arange(24_000) == 9, np.nan, tone()), 24_000, "NaN"),
        (np.where(np.arange(24_000) == 9, np.inf, tone()), 24_000, "infinite"),
    ],
)
def test_what_is_no_recording_is_refused(
    samples: NDArray[np.float32], rate: int, message: str, encoder: VoiceEncoder
) -> None:
    with pytest.raises(VoiceError, match=message):
        encoder.encode(samples, rate, transcript="so")


def test_the_shortest_recording_can_be_encoded(encoder: VoiceEncoder) -> None:
    voice = encoder.encode(tone(0.5), 24_000, transcript="so")
    assert voice.codes is not None and len(voice.codes) == 7


def test_a_long_recording_in_blocks_has_the_codes_of_the_whole(
    encoder: VoiceEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every block of 5 steps hears the 5 before it; with 3, codes would differ."""
    recording = tone(2.3)
    recording += np.random.default_rng(0).normal(0, 0.1, len(recording)).astype(np.float32)
    whole = encoder.encode(recording, 24_000, transcript="so").codes
    monkeypatch.setattr(speech_encoder, "_BLOCK", 5)
    blocks = encoder.encode(recording, 24_000, transcript="so").codes
    assert whole is not None and blocks is not None
    assert blocks.tolist() == whole.tolist()


@pytest.mark.parametrize("variant", ["custom_voice", "voice_design"])
def test_other_checkpoints_have_no_encoders(variant: str, parity: Path) -> None:
    with pytest.raises(CheckpointError, match="1.7B-Base"):
        VoiceEncoder.load(parity / f"tiny-{variant}")


def test_mel_filters_have_slaneys_centres_and_equal_areas() -> None:
    """Centres are linear to 1 kHz; areas are 1, as far as bins 23 Hz wide can show."""
    filters = mel_filters(128)
    assert filters.shape == (128, 513)
    centres = filters.argmax(1) * 24_000 / 1024
    assert np.abs(np.diff(centres[:30]) - np.diff(centres[:30]).mean()).max() <= 24_000 / 1024
    areas = filters[60:].sum(1) * 24_000 / 1024
    np.testing.assert_allclose(areas, 1, atol=0.05)


def test_the_released_encoders_have_the_published_sizes() -> None:
    """Elements in the published headers: 12,001,088 and 8,854,336; 56,234,304 in the tokenizer's
    file, of whose codebooks 32 are flags that say nothing about size."""
    sizes = {}
    for width in (2048, 1024):
        weights = RandomWeights(
            device=torch.device("meta"), dtype=torch.float32, stored=torch.float32
        )
        SpeakerEncoder(
            SpeakerEncoderConfig(
                width,
                128,
                (512, 512, 512, 512, 1536),
                (5, 3, 3, 3, 1),
                (1, 2, 3, 4, 1),
                128,
                128,
                8,
            ),
            weights,
        )
        sizes[width] = sum(weights.sizes.values())
    assert sizes == {2048: 12_001_088, 1024: 8_854_336}
    weights = RandomWeights(device=torch.device("meta"), dtype=torch.float32, stored=torch.float32)
    SpeechEncoder(
        SpeechEncoderConfig(
            filters=64,
            strides=(4, 5, 6, 8),
            residual_layers=1,
            kernel=7,
            last_kernel=3,
            residual_kernel=3,
            dilation_growth=2,
            compress=2,
            hidden=512,
            layers=8,
            heads=8,
            head_dim=64,
            intermediate=2048,
            rope_theta=1e4,
            norm_eps=1e-5,
            quantizers=32,
            codebooks=16,
            codebook_size=2048,
            codebook_dim=256,
            samples_per_frame=1920,
        ),
        weights,
    )
    assert sum(weights.sizes.values()) == 56_234_304


def test_configuration_left_out_has_the_released_values(tmp_path: Path) -> None:
    (tmp_path / "speech_tokenizer").mkdir()
    (tmp_path / "config.json").write_text(
        '{"speaker_encoder_config": {"enc_dim": 1024, "sample_rate": 24000}}'
    )
    (tmp_path / "speech_tokenizer" / "config.json").write_text(
        '{"model_type": "qwen3_tts_tokenizer_12hz", "input_sample_rate": 24000, '
        '"encoder_valid_num_quantizers": 16, "encode_downsample_rate": 1920, "encoder_config": {}}'
    )
    assert read_speaker_encoder(tmp_path).channels == (512, 512, 512, 512, 1536)
    found = read_speech_encoder(tmp_path)
    assert (found.strides, found.head_dim, found.quantizers) == ((4, 5, 6, 8), 64, 32)


@pytest.mark.parametrize(
    ("key", "value"), [("pad_mode", '"reflect"'), ("use_conv_shortcut", "true")]
)
def test_a_speech_encoder_of_another_kind_is_refused(key: str, value: str, tmp_path: Path) -> None:
    (tmp_path / "speech_tokenizer").mkdir()
    (tmp_path / "speech_tokenizer" / "config.json").write_text(
        '{"model_type": "qwen3_tts_tokenizer_12hz", "input_sample_rate": 24000, '
        f'"encode_downsample_rate": 1920, "encoder_config": {{"{key}": {value}}}}}'
    )
    with pytest.raises(CheckpointError, match=key):
        read_speech_encoder(tmp_path)


def test_an_encoder_with_other_codes_than_the_talker_is_refused(
    parity: Path, tmp_path: Path
) -> None:
    shutil.copytree(parity / "tiny-base", tmp_path / "checkpoint")
    path = tmp_path / "checkpoint" / "speech_tokenizer" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"encoder_valid_num_quantizers": 3}))
    with pytest.raises(CheckpointError, match="encoder_valid_num_quantizers should be 16, found 3"):
        VoiceEncoder.load(tmp_path / "checkpoint")
