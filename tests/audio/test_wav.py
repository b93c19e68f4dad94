import struct

import pytest

from realtime_tts.audio.formats import audio_format
from realtime_tts.audio.wav import WAV_END, wav_header


@pytest.mark.parametrize("encoding", ["pcm_s16le", "pcm_f32le", "pcm_mulaw", "pcm_alaw"])
def test_a_header_has_one_length_and_counts_what_follows(encoding: str) -> None:
    wav = audio_format(encoding, container="wav")
    unknown, known = wav_header(wav), wav_header(wav, 4_000)
    assert len(unknown) == len(known)
    assert struct.unpack("<I", unknown[-4:]) == (0xFFFFFFFF,)
    assert struct.unpack("<I", known[-4:]) == (4_000,)
    assert struct.unpack("<I", known[4:8]) == (len(known) - 8 + 4_000,)


def test_more_than_a_header_can_say_lasts_until_the_end() -> None:
    wav = audio_format(container="wav")
    assert wav_header(wav, 5 << 30) == wav_header(wav)
    behind = len(WAV_END)
    for size in range((1 << 32) - 400, 1 << 32, 2):  # either both lengths, or neither
        header = wav_header(wav, size, behind)
        assert (header[4:8] == b"\xff" * 4) == (header[-4:] == b"\xff" * 4), size
