"""Formats: the names other APIs use, the parts ours takes, and what is refused."""

from __future__ import annotations

import pytest

from realtime_tts.audio.formats import (
    ENCODINGS,
    ENGINE_FORMAT,
    RATES,
    AudioFormat,
    audio_format,
    parse_format,
)
from realtime_tts.errors import RequestError

NAMES = {
    "pcm": AudioFormat(),
    "pcm_24000": AudioFormat(),
    "pcm_s16le": AudioFormat(),
    "linear16": AudioFormat(),
    "pcm_16000": AudioFormat("pcm_s16le", 16_000, packet_ms=80),
    "pcm_s16le_8000": AudioFormat("pcm_s16le", 8_000, packet_ms=80),
    "pcm_f32le": AudioFormat("pcm_f32le", packet_ms=80),
    "pcm_f32le_44100": AudioFormat("pcm_f32le", 44_100, packet_ms=80),
    "ulaw_8000": AudioFormat("pcm_mulaw", 8_000, packet_ms=20),
    "mulaw": AudioFormat("pcm_mulaw", 8_000, packet_ms=20),
    "pcm_alaw_16000": AudioFormat("pcm_alaw", 16_000, packet_ms=20),
    "alaw": AudioFormat("pcm_alaw", 8_000, packet_ms=20),
    "wav": AudioFormat(container="wav"),
    "wav_16000": AudioFormat("pcm_s16le", 16_000, "wav"),
    "mp3": AudioFormat("mp3", 24_000, "mp3", 128_000),
    "mp3_44100_64": AudioFormat("mp3", 44_100, "mp3", 64_000),
    "mp3_22050_32": AudioFormat("mp3", 22_050, "mp3", 32_000),
    "mp3_8000": AudioFormat("mp3", 8_000, "mp3", 64_000),
    "opus": AudioFormat("opus", 24_000, "ogg", 48_000),
    "opus_48000_192": AudioFormat("opus", 48_000, "ogg", 192_000),
    "webm": AudioFormat("opus", 24_000, "webm", 48_000),
    "aac": AudioFormat("aac", 24_000, "adts", 96_000),
    "aac_8000": AudioFormat("aac", 8_000, "adts", 48_000),
    "flac_48000": AudioFormat("flac", 48_000, "flac"),
}


@pytest.mark.parametrize("name", NAMES)
def test_the_names_of_other_apis(name: str) -> None:
    assert parse_format(name) == NAMES[name]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("vorbis", "there are mp3, opus, aac, flac, pcm, wav, webm, pcm_f32le, ulaw, alaw"),
        ("", "no format ''"),
        ("pcm_", "no format 'pcm_'"),
        ("pcm_16000_", "no format"),
        ("pcm_16000hz", "no format"),
        ("PCM", "no format 'PCM'"),
        ("x" * 5_000, r"x{37}\.\.\.'"),
        ("pcm_9000", "pcm_s16le has no sample rate 9000; it has 8000, 11025, 12000, 16000"),
        ("opus_44100", "opus has no sample rate 44100; it has 8000, 12000, 16000, 24000, 48000"),
        ("pcm_16000_64", "pcm_s16le has no bit rate to choose"),
        ("mp3_44100_8", "mp3 at 44100 Hz has no bit rate 8000; in kbit/s it has 32, 40, 48"),
        ("mp3_22050_192", "in kbit/s it has 8, 16"),
        ("opus_48000_999", "opus at 48000 Hz takes a bit rate of 6000 to 256000, found 999000"),
        ("aac_8000_64", "aac at 8000 Hz takes a bit rate of 8000 to 48000, found 64000"),
    ],
)
def test_what_there_is_not_is_answered_with_what_there_is(name: str, told: str) -> None:
    with pytest.raises(RequestError, match=told):
        parse_format(name)


def test_parts_are_checked_together() -> None:
    with pytest.raises(RequestError, match="no encoding 'vorbis'; there are pcm_s16le, pcm_f32le"):
        audio_format("vorbis")
    with pytest.raises(RequestError, match="'ogg'; it goes into raw, wav"):
        audio_format("pcm_mulaw", container="ogg")
    with pytest.raises(RequestError, match="'raw'; it goes into ogg, webm"):
        audio_format("opus", container="raw")
    with pytest.raises(RequestError, match="packet_ms must be 10 to 1000, found 5"):
        audio_format("pcm_mulaw", packet_ms=5)
    with pytest.raises(RequestError, match="packets of opus in ogg are as long as"):
        audio_format("opus", packet_ms=20)


def test_a_packet_is_a_duration_but_in_the_engines_own_format() -> None:
    assert ENGINE_FORMAT.packet_bytes == 4_096
    assert audio_format(packet_ms=20).packet_bytes == 960
    assert audio_format("pcm_mulaw").packet_bytes == 160
    assert audio_format("pcm_alaw", packet_ms=30).packet_bytes == 240
    assert audio_format("pcm_f32le", 48_000).packet_bytes == 15_360
    assert audio_format("pcm_s16le", 11_025, packet_ms=20).packet_bytes == 440  # whole samples
    assert audio_format("mp3").packet_bytes is None
    assert audio_format("pcm_mulaw", container="wav").packet_bytes is None


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("rate", RATES)
def test_every_format_that_can_be_asked_for_is_complete(encoding: str, rate: int) -> None:
    if encoding == "opus" and rate not in (8_000, 12_000, 16_000, 24_000, 48_000):
        with pytest.raises(RequestError):
            audio_format(encoding, rate)
        return
    made = audio_format(encoding, rate)
    assert made.media_type.startswith("audio/")
    assert made == audio_format(
        made.encoding, made.sample_rate, made.container, made.bit_rate, made.packet_ms
    )
