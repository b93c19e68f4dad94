"""What an encoder gives can be decoded again, and comes while it is being made."""

from __future__ import annotations

import io
import struct

import numpy as np
import pytest

from realtime_tts.audio import encoders
from realtime_tts.audio.encoders import FORMATS, available, encoder_class
from realtime_tts.audio.pcm import from_s16le, to_s16le
from realtime_tts.errors import RequestError

RATE = 24_000
PACKET = 2_048  # samples
COMPRESSED = ("mp3", "opus", "aac", "flac")
PADDING_SECONDS = {"mp3": 0.1, "aac": 0.15, "opus": 0.03, "flac": 0.0}


def tone(seconds: float, hertz: float) -> bytes:
    moments = np.arange(round(seconds * RATE)) / RATE
    return to_s16le((0.3 * np.sin(2 * np.pi * hertz * moments)).astype(np.float32))


def stream(name: str, pcm: bytes) -> list[bytes]:
    """What comes out for each packet, and last of all at the end."""
    encoder = encoder_class(name)(RATE)
    packets = [pcm[at : at + 2 * PACKET] for at in range(0, len(pcm), 2 * PACKET)]
    return [*(encoder.encode(packet) for packet in packets), encoder.finish()]


def decoded(data: bytes) -> tuple[np.ndarray, int]:
    av = pytest.importorskip("av")
    with av.open(io.BytesIO(data)) as container:
        rate = container.streams.audio[0].rate
        resampler = av.AudioResampler(format="s16", layout="mono", rate=rate)
        frames = [out for frame in container.decode(audio=0) for out in resampler.resample(frame)]
    return np.concatenate([frame.to_ndarray().ravel() for frame in frames]), rate


def pitch(samples: np.ndarray, rate: int) -> float:
    """The strongest frequency, in hertz."""
    spectrum = np.abs(np.fft.rfft(samples * np.hanning(len(samples))))
    return float(np.argmax(spectrum) * rate / len(samples))


@pytest.mark.parametrize("name", COMPRESSED)
def test_a_tone_comes_back_with_its_length_and_pitch(name: str) -> None:
    pytest.importorskip("av")
    samples, rate = decoded(b"".join(stream(name, tone(2.0, 440.0))))
    assert 0 <= len(samples) / rate - 2.0 <= PADDING_SECONDS[name]
    assert pitch(samples, rate) == pytest.approx(440.0, abs=1.0)


def test_flac_loses_nothing() -> None:
    pytest.importorskip("av")
    pcm = tone(0.5, 300.0)
    samples, rate = decoded(b"".join(stream("flac", pcm)))
    assert rate == RATE and samples.astype("<i2").tobytes() == pcm


@pytest.mark.parametrize("name", COMPRESSED)
def test_sound_leaves_the_encoder_soon_after_it_came(name: str) -> None:
    """With FFmpeg's own settings Ogg keeps a second, and a listener would wait for it."""
    pytest.importorskip("av")
    pieces = stream(name, tone(1.0, 440.0))
    assert any(pieces[:3]), "nothing within a quarter of a second"
    heard, rate = decoded(b"".join(pieces[:9]))  # nine of twelve packets went in: 0.77 s
    assert len(heard) / rate > 0.5


@pytest.mark.parametrize("name", COMPRESSED)
def test_a_stream_without_samples_is_still_a_stream(name: str) -> None:
    pytest.importorskip("av")
    encoder = encoder_class(name)(RATE)
    encoder.finish()


@pytest.mark.parametrize("name", COMPRESSED)
def test_an_encoder_can_be_closed_at_any_moment_and_twice(name: str) -> None:
    pytest.importorskip("av")
    for packets in range(3):
        encoder = encoder_class(name)(RATE)
        for _ in range(packets):
            encoder.encode(bytes(2 * PACKET))
        encoder.close()
        encoder.close()


@pytest.mark.parametrize("name", COMPRESSED)
def test_streams_do_not_disturb_each_other(name: str) -> None:
    pytest.importorskip("av")
    pcm = tone(0.5, 440.0)
    alone = b"".join(stream(name, pcm))
    one, other = (encoder_class(name)(RATE) for _ in range(2))
    made = b""
    for at in range(0, len(pcm), 2 * PACKET):
        made += one.encode(pcm[at : at + 2 * PACKET])
        other.encode(tone(0.1, 990.0))
    made += one.finish()
    if name == "opus":  # the serial number of an Ogg stream is drawn anew
        assert len(made) == len(alone)
    else:
        assert made == alone


def test_pcm_is_what_it_was() -> None:
    pcm = tone(0.2, 440.0)
    assert b"".join(stream("pcm", pcm)) == pcm


def test_a_wav_stream_has_one_header_of_unknown_length() -> None:
    pcm = tone(0.2, 440.0)
    data = b"".join(stream("wav", pcm))
    riff, size, wave, fmt, _, kind, channels, rate, per_second, align, bits, tag, length = (
        struct.unpack("<4sI4s4sIHHIIHH4sI", data[:44])
    )
    assert (riff, wave, fmt, tag) == (b"RIFF", b"WAVE", b"fmt ", b"data")
    assert size == length == 0xFFFFFFFF
    assert (kind, channels, rate, per_second, align, bits) == (1, 1, RATE, 2 * RATE, 2, 16)
    assert data[44:] == pcm
    assert np.allclose(from_s16le(data[44:]), from_s16le(pcm))


def test_a_wav_of_nothing_is_a_header() -> None:
    assert len(encoder_class("wav")(RATE).finish()) == 44


def test_an_unknown_format_is_answered_with_those_there_are() -> None:
    with pytest.raises(RequestError, match="mp3, opus, aac, flac, pcm, wav"):
        encoder_class("vorbis")


def test_without_the_extra_the_answer_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoders, "av", None)
    assert available() == ("pcm", "wav")
    assert encoder_class("wav") and set(FORMATS) > set(available())
    with pytest.raises(RequestError, match=r"pip install 'realtime-tts-server\[codecs\]'"):
        encoder_class("mp3")
