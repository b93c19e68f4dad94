import asyncio
import os
from pathlib import Path

import pytest

from realtime_tts.cli.say import text_from


async def test_text_comes_while_the_writer_still_writes() -> None:
    reader, writer = os.pipe()
    try:
        text = text_from(reader)
        os.write(writer, b"The ti")
        assert await anext(text) == "The ti"
        os.write(writer, b"de.")
        assert await anext(text) == "de."
        os.close(writer)
        assert [rest async for rest in text] == []
    finally:
        os.close(reader)


async def test_a_character_cut_by_a_read_stays_whole() -> None:
    reader, writer = os.pipe()
    try:
        text = text_from(reader)
        os.write(writer, b"a")
        assert await anext(text) == "a"  # from here on somebody reads
        for byte in "€🎉".encode():
            os.write(writer, bytes([byte]))
            await asyncio.sleep(0.005)  # each byte alone
        os.close(writer)
        assert [piece async for piece in text] == ["€", "🎉"]
    finally:
        os.close(reader)


async def test_bytes_that_are_no_text_are_replaced() -> None:
    reader, writer = os.pipe()
    try:
        os.write(writer, b"a\xffb\xe2\x82")
        os.close(writer)
        assert "".join([piece async for piece in text_from(reader)]) == "a\ufffdb\ufffd"
    finally:
        os.close(reader)


async def test_a_file_is_read_like_a_pipe(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("é" * 50_000, encoding="utf-8")
    descriptor = os.open(path, os.O_RDONLY)
    try:
        pieces = [piece async for piece in text_from(descriptor)]
    finally:
        os.close(descriptor)
    assert len(pieces) > 10
    assert "".join(pieces) == "é" * 50_000


async def test_a_read_that_fails_is_an_error_of_the_reader(tmp_path: Path) -> None:
    descriptor = os.open(tmp_path / "text", os.O_WRONLY | os.O_CREAT)
    try:
        with pytest.raises(OSError, match="Bad file descriptor"):
            await anext(text_from(descriptor))
    finally:
        os.close(descriptor)
