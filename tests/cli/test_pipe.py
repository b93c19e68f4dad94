import asyncio
import os
from pathlib import Path

import pytest

from realtime_tts.audio.formats import AudioFormat
from realtime_tts.cli.output import PipeSink, sink_makers

MORE_THAN_FITS = b"ab" * 500_000
"""A pipe holds 64 KB, and 1 MB at most."""


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    path = tmp_path / "pipe.wav"
    os.mkfifo(path)
    return path


async def test_a_wav_into_a_pipe_keeps_the_header_of_a_stream(pipe: Path) -> None:
    sink = next(sink_makers(str(pipe), AudioFormat(container="wav")))()
    reading = asyncio.create_task(asyncio.to_thread(pipe.read_bytes))
    await sink.write(b"\x01\x00")
    await sink.write(b"\x02\x00")
    await sink.finish()
    heard = await reading
    assert heard[4:8] == b"\xff\xff\xff\xff"
    assert len(heard) == 48 and heard.endswith(b"\x01\x00\x02\x00")
    assert sink.played_seconds is None


async def test_a_slow_reader_gets_everything(pipe: Path) -> None:
    sink = PipeSink(pipe)
    writing = asyncio.create_task(sink.write(MORE_THAN_FITS))
    await asyncio.sleep(0)  # it looks for a reader, and there is none yet
    with await asyncio.to_thread(pipe.open, "rb") as reader:
        heard = bytearray()
        while len(heard) < len(MORE_THAN_FITS):
            heard += await asyncio.to_thread(reader.read1, 10_000)
        await writing
        await sink.finish()
        assert heard == MORE_THAN_FITS
        assert reader.read() == b""


async def test_whoever_waits_for_a_reader_can_be_stopped(pipe: Path) -> None:
    sink = PipeSink(pipe)
    writing = asyncio.create_task(sink.write(b"nobody hears this"))
    await asyncio.sleep(0)
    sink.stop()
    sink.stop()
    await writing


async def test_whoever_waits_for_room_can_be_stopped(pipe: Path) -> None:
    sink = PipeSink(pipe)
    with os.fdopen(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK), "rb") as reader:
        writing = asyncio.create_task(sink.write(MORE_THAN_FITS))
        await asyncio.sleep(0)  # it fills the pipe
        sink.stop()
        await writing
        assert 0 < len(reader.read()) < len(MORE_THAN_FITS)


async def test_a_reader_that_leaves_is_an_error(pipe: Path) -> None:
    sink = PipeSink(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    await sink.write(b"heard")
    os.close(reader)
    with pytest.raises(BrokenPipeError):
        await sink.write(b"not heard")
    sink.stop()
