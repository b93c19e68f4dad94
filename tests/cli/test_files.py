import os
import struct
import threading
import wave
from pathlib import Path

import pytest

from realtime_tts.audio.formats import AudioFormat, audio_format, parse_format
from realtime_tts.audio.wav import WAV_END
from realtime_tts.cli.files import FileSink, WavSink, format_for
from realtime_tts.errors import ConfigError


@pytest.mark.parametrize(
    ("output", "name", "expected"),
    [
        (None, None, AudioFormat()),
        ("-", None, AudioFormat()),
        ("-", "opus", parse_format("opus")),
        ("hello", None, parse_format("wav")),
        ("hello.WAV", None, parse_format("wav")),
        ("a.b/hello", None, parse_format("wav")),
        ("hello.pcm", None, AudioFormat()),
        ("hello.mp3", None, parse_format("mp3")),
        ("hello.ogg", None, parse_format("opus")),
        ("hello.webm", None, parse_format("webm")),
        ("hello.webm", "opus_48000_32", audio_format("opus", 48_000, "webm", 32_000)),
        ("hello.wav", "ulaw", audio_format("pcm_mulaw", 8_000, "wav")),
        ("hello.pcm", "wav_16000", audio_format("pcm_s16le", 16_000)),
        ("hello.g711", "ulaw", audio_format("pcm_mulaw", 8_000)),
    ],
)
def test_the_suffix_is_the_container_and_the_format_the_encoding(
    output: str | None, name: str | None, expected: AudioFormat
) -> None:
    assert format_for(output, name) == expected


@pytest.mark.parametrize(
    ("output", "name", "message"),
    [
        (None, "mp3", "--format mp3 is for files"),
        ("hello.m4a", None, "known are .wav"),
        ("hello.flac", "opus", "'flac'; it goes into ogg, webm"),
    ],
)
def test_what_does_not_fit_is_said(output: str | None, name: str | None, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        format_for(output, name)


async def test_a_wav_file_holds_the_packets(tmp_path: Path) -> None:
    sink = WavSink(tmp_path / "out.wav")
    await sink.write(b"\x01\x00" * 10)
    await sink.write(b"\x02\x00" * 5)
    await sink.finish()
    with wave.open(str(tmp_path / "out.wav")) as file:
        assert file.getframerate() == 24_000
        assert file.readframes(100) == b"\x01\x00" * 10 + b"\x02\x00" * 5
    assert sink.played_seconds is None


async def test_a_wav_file_of_other_samples_says_how_long_it_is(tmp_path: Path) -> None:
    path = tmp_path / "out.wav"
    sink = WavSink(path, audio_format("pcm_mulaw", container="wav"))
    await sink.write(b"\xff" * 801)
    sink.stop()
    sink.stop()
    data = path.read_bytes()
    riff, size, kind = struct.unpack("<4sI4s", data[:12])
    assert (riff, size, kind) == (b"RIFF", len(data) - 8, b"WAVE")
    fact, _, samples, tag, length = struct.unpack("<4sII4sI", data[38:58])
    assert (fact, samples, tag, length) == (b"fact", 801, b"data", 801)
    assert data[58:] == b"\xff" * 801 + b"\0" + WAV_END  # padded


async def test_a_wav_into_a_pipe_keeps_the_header_of_a_stream(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.wav"
    os.mkfifo(pipe)
    heard: list[bytes] = []
    reader = threading.Thread(target=lambda: heard.append(pipe.read_bytes()))
    reader.start()
    sink = WavSink(pipe)
    await sink.write(b"\x01\x00")
    await sink.finish()
    reader.join()
    assert heard[0][4:8] == b"\xff\xff\xff\xff"
    assert len(heard[0]) == 46


async def test_a_file_holds_the_packets_as_they_are(tmp_path: Path) -> None:
    sink = FileSink(tmp_path / "out.mp3")
    await sink.write(b"ab")
    await sink.write(b"c")
    await sink.finish()
    sink.stop()
    assert (tmp_path / "out.mp3").read_bytes() == b"abc"
    assert sink.name.endswith("out.mp3")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a full disk, as Linux has it")
async def test_a_full_disk_is_told_with_the_file() -> None:
    sink = FileSink(Path("/dev/full"))
    await sink.write(b"123")
    with pytest.raises(OSError, match="No space left on device: .*/dev/full"):
        await sink.finish()
