"""The chat in a terminal: a program with a keyboard, a model and a voice."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.examples.serving import speech_server
from tests.waiting import until

pytestmark = pytest.mark.skipif(
    find_spec("openai") is None, reason="the chat example needs openai: pip install -e '.[chat]'"
)

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
LONG = "The tide is coming in, slowly but surely, and all the boats are afloat again. " * 3


class Terminal:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.shown = ""

    async def type(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line.encode() + b"\n")
        await self.process.stdin.drain()

    async def until(self, words: str) -> None:
        assert self.process.stdout is not None
        async with asyncio.timeout(30):
            while words not in self.shown:
                data = await self.process.stdout.read(1_000)
                assert data, f"ended before {words!r}: {self.shown}"
                self.shown += data.decode()


@pytest.fixture
async def terminal(stand_in: Any, tmp_path: Path) -> AsyncIterator[Terminal]:
    async with speech_server() as tts:
        command = [sys.executable, str(EXAMPLES / "chat" / "terminal.py"), "--tts", tts]
        command += ["--llm-url", stand_in.url, "--llm-model", "stand-in"]
        process = await asyncio.create_subprocess_exec(
            *command,
            *("--output", str(tmp_path / "chat.wav")),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        yield Terminal(process)
        if process.returncode is None:
            process.kill()
        await process.wait()


async def test_a_reply_is_shown_and_spoken(
    terminal: Terminal, stand_in: Any, tmp_path: Path
) -> None:
    stand_in.replies = ("Good evening.",)
    await terminal.until("Say something")
    await terminal.type("Hello")
    await terminal.until("Good evening.")
    assert terminal.process.stdin is not None
    terminal.process.stdin.close()
    assert await asyncio.wait_for(terminal.process.wait(), 60) == 0
    assert (tmp_path / "chat.wav").stat().st_size > 10_000


async def test_a_line_interrupts_and_the_model_learns_what_was_heard(
    terminal: Terminal, stand_in: Any, tmp_path: Path
) -> None:
    stand_in.replies = (LONG, "Yes.")
    stand_in.pace = 60
    await terminal.until("Say something")
    await terminal.type("Hello")
    await terminal.until("slowly")
    sound = tmp_path / "chat.wav"
    await until(lambda: sound.exists() and sound.stat().st_size > 10_000)
    await asyncio.sleep(1)  # for some of it to be heard
    await terminal.type("And now?")
    await terminal.until("[not heard: ")
    await terminal.until("Yes.")
    heard = terminal.shown.split("[heard: '")[1].split("']")[0]
    assert heard and LONG.startswith(heard)
    _, *messages = stand_in.requests[-1]["messages"]
    assert messages == [
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": heard.rstrip()},
        {"role": "user", "content": "And now?"},
    ]


async def test_an_error_of_the_model_is_shown_and_the_chat_goes_on(
    terminal: Terminal, stand_in: Any
) -> None:
    await terminal.until("Say something")
    stand_in.status = 404
    await terminal.type("Hello")
    await terminal.until("[There is no model 'stand-in'")
    stand_in.status, stand_in.replies = 200, ("Good evening.",)
    await terminal.type("Again")
    await terminal.until("Good evening.")


async def test_a_speech_server_that_is_not_there_is_one_line() -> None:
    command = [sys.executable, str(EXAMPLES / "chat" / "terminal.py"), "--tts", "127.0.0.1:1"]
    command += ["--llm-url", "http://127.0.0.1:1/v1", "--llm-model", "stand-in"]
    process = await asyncio.create_subprocess_exec(*command, stderr=subprocess.PIPE)
    _, told = await process.communicate()
    assert told.startswith(b"no server answers at ws://127.0.0.1:1") and told.count(b"\n") == 1
    assert process.returncode == 1
