"""The shortest example runs as it stands."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import wave
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.examples.serving import speech_server
from tests.waiting import until

pytestmark = pytest.mark.skipif(
    find_spec("openai") is None, reason="this example needs openai: pip install -e '.[chat]'"
)

PROGRAM = Path(__file__).resolve().parents[2] / "examples" / "llm_to_speech.py"


async def run(*words: str, fails: bool = False) -> str:
    """Return what it prints; where it fails, on its standard error."""
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, str(PROGRAM), *words],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == fails, done.stderr
    return done.stderr if fails else done.stdout


def seconds(path: Path) -> float:
    with wave.open(str(path)) as file:
        return file.getnframes() / file.getframerate()


async def test_a_model_s_reply_is_spoken(stand_in: Any, tmp_path: Path) -> None:
    stand_in.replies = ("There are two trains this evening.",)
    path = tmp_path / "reply.wav"
    async with speech_server() as tts:
        options = ("--server", tts, "--llm-url", stand_in.url, "--llm-model", "any")
        await run("When?", *options, "--output", str(path))
    assert seconds(path) > 1
    assert stand_in.requests[0]["messages"] == [{"role": "user", "content": "When?"}]


async def test_an_interrupted_listener_s_words_are_known(stand_in: Any, tmp_path: Path) -> None:
    stand_in.replies = ("Of course. There are two trains this evening. " * 4,)
    stand_in.stall, stand_in.stall_every = 60.0, 40
    path = tmp_path / "reply.wav"
    async with speech_server() as tts:
        options = ("--server", tts, "--llm-url", stand_in.url, "--llm-model", "any")
        told = await run("When?", *options, "--output", str(path), "--interrupt-after", "0.8")
    assert "heard:     'Of" in told
    assert "not heard: " in told
    await until(lambda: stand_in.hung_up == 1)


async def test_a_server_that_is_not_there_is_one_line(stand_in: Any, tmp_path: Path) -> None:
    output = ("--llm-model", "any", "--output", str(tmp_path / "reply.wav"))
    nowhere = ("--server", "ws://127.0.0.1:1", "--llm-url", stand_in.url)
    told = await run("When?", *nowhere, *output, fails=True)
    assert told.startswith("no server answers at ws://127.0.0.1:1") and told.count("\n") == 1
    async with speech_server() as tts:
        unanswered = ("--server", tts, "--llm-url", "http://127.0.0.1:1/v1")
        told = await run("When?", *unanswered, *output, fails=True)
    assert told == "no reply of the language model: Connection error.\n"
