"""What an encoder gives can be decoded again, comes while it is made, and not by its pieces."""

from __future__ import annotations

import struct

import numpy as np
import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime_tts.audio import codecs
from realtime_tts.audio.encoders import Encoder, available
from realtime_tts.audio.formats import ENCODINGS, audio_format, parse_format
from realtime_tts.audio.pcm import from_s16le, to_s16le
from realtime_tts.errors import RequestError
from tests.audio.decoding import decoded, pitch
from tests.properties import examples

RATE = 24_000
PACKET = 2_048  # samples
SAMPLES = ("pcm", "pcm_f32le", "ulaw", "alaw", "wav", "pcm_16000", "pcm_f32le_44100", "wav_11025")
COMPRESSED = (
    "mp3",
    "mp3_44100_64",
    "mp3_22050_32",
    "opus",
    "opus_48000_32",
    "webm",
    "aac",
    "aac_44100",
    "flac",
    "flac_48000",
)
PADDING_SECONDS = {"mp3": 0.15, "aac": 0.15, "opus": 0.03, "webm": 0.03, "flac": 0.0}


def tone(seconds: float, hertz: float) -> bytes:
    moments = np.arange(round(seconds * RATE)) / RATE
    return to_s16le((0.3 * np.sin(2 * np.pi * hertz * moments)).astype(np.float32))


def noise(samples: int, seed: int) -> bytes:
    return np.random.default_rng(seed).integers(-9_000, 9_000, samples, "<i2").tobytes()


def made(name: str) -> Encoder:
    audio_format = parse_format(name)
    if audio_format.needs_codec:
        pytest.importorskip("av")
    return Encoder(audio_format)


def stream(name: str, pcm: bytes) -> list[bytes]:
    """What comes out for each packet, and last of all at the end."""
    encoder = made(name)
    packets = [pcm[at : at + 2 * PACKET] for at in range(0, len(pcm), 2 * PACKET)]
    return [*(encoder.encode(packet) for packet in packets), encoder.finish()]


def anonymous(name: str, data: bytes) -> bytes:
    """The same without what differs from stream to stream: the serial number of an Ogg stream, and
    the check sums over it; of WebM just the sound, for its track has a random number."""
    if name == "webm":
        return bytes(decoded(data)[0])
    if not name.startswith("opus"):
        return data
    pages = data.split(b"OggS")
    return b"OggS".join(page[:10] + page[14:].replace(page[18:22], b"", 1) for page in pages)


# Whole and without gaps.


@pytest.mark.parametrize("name", [*COMPRESSED, "mp3_8000", "wav", "wav_11025", "wav_48000"])
def test_a_tone_comes_back_with_its_length_and_pitch(name: str) -> None:
    samples, rate = decoded(b"".join(stream(name, tone(2.0, 440.0))))
    padding = PADDING_SECONDS.get(name.partition("_")[0], 0.0)
    if name == "mp3_8000":
        padding = 0.3  # a frame and the decoder's start last three times as long
    assert -1 / rate <= len(samples) / rate - 2.0 <= padding
    assert pitch(samples, rate) == pytest.approx(440.0, abs=1.0)


@pytest.mark.parametrize("name", COMPRESSED)
def test_there_is_no_gap_in_what_comes_back(name: str) -> None:
    samples, rate = decoded(b"".join(stream(name, tone(2.0, 440.0))))
    loud = np.abs(samples.astype(float)) > 2_000
    silences = np.diff(np.flatnonzero(loud))
    assert silences.max() <= rate / 440, "a period without anything loud in it"
    assert loud[-round(0.4 * rate) :].any() and loud[: round(0.4 * rate)].any()


def test_flac_loses_nothing() -> None:
    pcm = tone(0.5, 300.0)
    samples, rate = decoded(b"".join(stream("flac", pcm)))
    assert rate == RATE and samples.astype("<i2").tobytes() == pcm


def test_pcm_is_what_it_was() -> None:
    pcm = tone(0.2, 440.0)
    assert b"".join(stream("pcm", pcm)) == pcm


def test_floats_are_the_engines_own() -> None:
    pcm = tone(0.2, 440.0)
    floats = np.frombuffer(b"".join(stream("pcm_f32le", pcm)), dtype="<f4")
    assert to_s16le(floats) == pcm


@pytest.mark.parametrize("name", ["pcm_8000", "pcm_44100", "pcm_f32le_16000", "ulaw", "alaw_48000"])
def test_raw_samples_are_as_many_as_the_rate_says(name: str) -> None:
    audio_format = parse_format(name)
    data = b"".join(stream(name, tone(1.5, 440.0)))
    assert audio_format.sample_bytes is not None
    assert len(data) == audio_format.sample_rate * 3 // 2 * audio_format.sample_bytes


def test_resampled_floats_do_not_leave_the_scale() -> None:
    full = np.tile(np.repeat(np.array([32_767, -32_767], "<i2"), 40), 100).tobytes()
    floats = np.frombuffer(b"".join(stream("pcm_f32le_48000", full)), dtype="<f4")
    assert np.abs(floats).max() == 1.0


# In pieces.


@pytest.mark.parametrize("name", [*SAMPLES, *COMPRESSED])
@examples(8)
@given(st.lists(st.integers(0, 9_000), max_size=8), st.integers(0, 2**32))
def test_pieces_give_what_the_whole_gives(name: str, cuts: list[int], seed: int) -> None:
    pcm = noise(9_000, seed)
    encoder, whole = made(name), made(name)
    out = b""
    for start, end in zip([0, *sorted(cuts)], [*sorted(cuts), 9_000], strict=True):
        out += encoder.encode(pcm[2 * start : 2 * end])
    out += encoder.finish()
    expected = whole.encode(pcm) + whole.finish()
    assert len(out) == len(expected)
    assert anonymous(name, out) == anonymous(name, expected)
    assert encoder.given_samples == 9_000


@pytest.mark.parametrize("name", COMPRESSED)
def test_streams_do_not_disturb_each_other(name: str) -> None:
    pcm = tone(0.5, 440.0)
    alone = b"".join(stream(name, pcm))
    one, other = made(name), made(name)
    out = b""
    for at in range(0, len(pcm), 2 * PACKET):
        out += one.encode(pcm[at : at + 2 * PACKET])
        other.encode(tone(0.1, 990.0))
    out += one.finish()
    other.close()
    assert anonymous(name, out) == anonymous(name, alone)


@pytest.mark.parametrize("name", COMPRESSED)
def test_streams_start_no_threads(name: str) -> None:
    """Hundreds of listeners to MP3 would be thousands of threads on a machine of many cores."""
    process = psutil.Process()
    before = process.num_threads()
    encoders = [made(name) for _ in range(20)]
    for encoder in encoders:
        encoder.encode(tone(0.2, 440.0))
    while_they_live = process.num_threads()
    for encoder in encoders:
        encoder.close()
    assert while_they_live < before + 5  # other tests' threads may begin, too


# In time.


@pytest.mark.parametrize("name", COMPRESSED)
def test_sound_leaves_the_encoder_soon_after_it_came(name: str) -> None:
    """With FFmpeg's own settings Ogg keeps a second, and a listener would wait for it."""
    pieces = stream(name, tone(1.0, 440.0))
    assert any(pieces[:3]), "nothing within a quarter of a second"
    heard, rate = decoded(b"".join(pieces[:9]))  # nine of twelve packets went in: 0.77 s
    assert len(heard) / rate > 0.5


@pytest.mark.parametrize("name", [*SAMPLES, *COMPRESSED])
def test_an_encoder_knows_how_much_it_has_given(name: str) -> None:
    pcm = tone(1.0, 440.0)
    encoder = made(name)
    given = []
    for at in range(0, len(pcm), 2 * PACKET):
        encoder.encode(pcm[at : at + 2 * PACKET])
        given.append(encoder.given_samples)
        taken = min(at // 2 + PACKET, RATE)
        assert taken - 0.25 * RATE <= given[-1] <= taken
    assert given == sorted(given)
    encoder.finish()
    assert encoder.given_samples == RATE


# Beginnings and ends.


@pytest.mark.parametrize("name", [*SAMPLES, *COMPRESSED])
def test_a_stream_without_samples_is_still_a_stream(name: str) -> None:
    encoder = made(name)
    encoder.finish()
    assert encoder.given_samples == 0


@pytest.mark.parametrize("name", [*SAMPLES, *COMPRESSED])
def test_an_encoder_can_be_closed_at_any_moment_and_twice(name: str) -> None:
    for packets in range(3):
        encoder = made(name)
        for _ in range(packets):
            encoder.encode(bytes(2 * PACKET))
        encoder.close()
        encoder.close()


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


@pytest.mark.parametrize("encoding", ["pcm_f32le", "pcm_mulaw", "pcm_alaw"])
def test_a_wav_of_other_samples_says_which(encoding: str) -> None:
    encoder = Encoder(audio_format(encoding, 8_000, "wav"))
    samples, rate = decoded(encoder.encode(tone(1.0, 440.0)) + encoder.finish())
    assert (len(samples), rate) == (8_000, 8_000)
    assert pitch(samples, rate) == pytest.approx(440.0, abs=1.0)


def test_a_wav_of_nothing_is_a_header() -> None:
    assert len(made("wav").finish()) == 44


def test_without_the_extra_the_answer_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codecs, "av", None)
    assert available() == ("pcm_s16le", "pcm_f32le", "pcm_mulaw", "pcm_alaw")
    assert Encoder(parse_format("wav")) and set(ENCODINGS) > set(available())
    with pytest.raises(RequestError, match=r"pip install -e '\.\[codecs\]'"):
        Encoder(parse_format("mp3"))


@pytest.mark.parametrize(
    ("name", "silent"),
    [
        *(("mp3_8000_64", 1_105), ("mp3", 1_105), ("mp3_44100_128", 1_105)),
        *(("aac", 1_024), ("aac_44100", 1_024), ("opus", 0), ("webm", 0), ("flac", 0)),
    ],
)
def test_decoded_sound_begins_where_the_documents_say(name: str, silent: int) -> None:
    moments = np.arange(-RATE, RATE) / RATE
    burst = 0.5 * np.sin(2 * np.pi * 800 * moments) * np.exp(-((moments / 0.004) ** 2))
    samples, rate = decoded(b"".join(stream(name, to_s16le(burst.astype(np.float32)))))
    power = samples.astype(np.float64) ** 2
    middle = (power * np.arange(len(power))).sum() / power.sum()
    assert middle - rate == pytest.approx(silent, abs=0.003 * rate)
