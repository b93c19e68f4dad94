"""Packets hold all of the speech, say how much, and are as long as the format says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime_tts.audio.encoders import Encoder
from realtime_tts.audio.formats import ENGINE_FORMAT, AudioFormat, audio_format, parse_format
from realtime_tts.audio.packets import PcmFramer, packets_in
from tests.properties import examples

FRAME = 3_840  # bytes: 80 ms
NAMES = ("pcm", "pcm_16000", "pcm_f32le_44100", "ulaw", "alaw_11025", "wav_8000", "opus", "mp3")


def noise(samples: int) -> bytes:
    return np.random.default_rng(5).integers(-9_000, 9_000, samples, "<i2").tobytes()


def packets_of(asked: AudioFormat, pcm: bytes, piece: int = FRAME) -> list[tuple[bytes, int]]:
    if asked.needs_codec:
        pytest.importorskip("av")
    packets = packets_in(asked)
    made = [packet for at in range(0, len(pcm), piece) for packet in packets.push(pcm[at:][:piece])]
    return [*made, *packets.finish()]


def test_the_engines_own_format_is_cut_by_the_framer_and_not_changed() -> None:
    framer, pcm = PcmFramer(), noise(24_001)
    expected = [each for at in range(0, len(pcm), FRAME) for each in framer.push(pcm[at:][:FRAME])]
    made = packets_of(ENGINE_FORMAT, pcm)
    assert [data for data, _ in made] == [*expected, *framer.cut()]
    assert all(samples == len(data) // 2 for data, samples in made)


def test_mulaw_travels_in_20_ms() -> None:
    made = packets_of(parse_format("ulaw_8000"), noise(24_000 + 240))
    assert [len(data) for data, _ in made] == [160] * 50 + [80]
    assert [samples for _, samples in made] == [480] * 50 + [240]


@pytest.mark.parametrize(
    ("asked", "size"),
    [
        (audio_format("pcm_s16le", 16_000), 2_560),
        (audio_format("pcm_s16le", 24_000, packet_ms=20), 960),
        (audio_format("pcm_f32le", 44_100, packet_ms=100), 17_640),
        (audio_format("pcm_alaw", 8_000, packet_ms=30), 240),
        (audio_format("pcm_s16le", 11_025, packet_ms=20), 440),
    ],
)
def test_all_packets_but_the_first_and_the_last_are_full(asked: AudioFormat, size: int) -> None:
    sizes = [len(data) for data, _ in packets_of(asked, noise(48_000))]
    assert set(sizes[1:-1]) == {size} and sizes[0] <= size and sizes[-1] <= size


@pytest.mark.parametrize("name", NAMES)
@examples(10)
@given(samples=st.integers(30, 20_000), piece=st.integers(200, 9_600))
def test_packets_hold_the_stream_and_count_all_of_it(name: str, samples: int, piece: int) -> None:
    asked, pcm = parse_format(name), noise(samples)
    made = packets_of(asked, pcm, 2 * piece)
    assert sum(count for _, count in made) == samples
    assert all(count >= 0 for _, count in made)
    if name != "opus":  # whose streams have serial numbers of their own
        encoder = Encoder(asked)
        assert b"".join(data for data, _ in made) == encoder.encode(pcm) + encoder.finish()


@pytest.mark.parametrize("name", [*NAMES, "webm", "aac", "flac", "mp3_44100_64"])
def test_every_packet_but_the_last_holds_sound(name: str) -> None:
    """Bytes without any would let playback begin before there is something to play."""
    made = packets_of(parse_format(name), noise(24_000))
    assert len(made) > 5
    assert all(samples > 0 for _, samples in made[:-1])


@pytest.mark.parametrize("name", NAMES)
def test_a_turn_without_sound_has_no_packet(name: str) -> None:
    assert packets_of(parse_format(name), b"") == []


@pytest.mark.parametrize("name", NAMES)
def test_what_is_held_can_be_dropped_at_any_moment(name: str) -> None:
    asked = parse_format(name)
    if asked.needs_codec:
        pytest.importorskip("av")
    for pushed in range(3):
        packets = packets_in(asked)
        for _ in range(pushed):
            packets.push(noise(1_920))
        packets.drop()
        packets.drop()
    packets = packets_in(asked)
    packets.push(noise(1_920))
    packets.finish()
    packets.drop()


@pytest.mark.parametrize("name", ["pcm_s16le", "ulaw_8000", "pcm_f32le_16000"])
def test_behind_a_cut_packets_begin_anew(name: str) -> None:
    """What is held leaves at the cut, and the next sound at once: nothing is lost in between."""
    packets = packets_in(parse_format(name))
    pcm = bytes(2 * 5_000)
    first = packets.push(pcm) + packets.cut()
    behind = packets.push(pcm[:3_840])
    assert sum(samples for _, samples in behind) > 0
    rest = packets.push(pcm[3_840:]) + packets.finish()
    assert sum(samples for _, samples in (*first, *behind, *rest)) == 10_000
