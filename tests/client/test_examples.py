"""The short example runs as it stands, against the fake engine; tests/examples has the others."""

import asyncio
import subprocess
import sys
import wave
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from realtime_tts.bench.local_server import local_server

pytestmark = pytest.mark.slow  # real servers

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture
async def url() -> AsyncIterator[str]:
    async with local_server(["--engine", "fake"]) as address:
        yield address


async def run(example: str, *words: str) -> str:
    command = [sys.executable, str(EXAMPLES / example), *words]
    done = await asyncio.to_thread(
        subprocess.run, command, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def seconds(path: Path) -> float:
    with wave.open(str(path)) as file:
        return file.getnframes() / file.getframerate()


@pytest.mark.parametrize("example", ["say.py", "blend_voices.py"])
def test_without_what_it_needs_an_example_prints_its_usage(example: str) -> None:
    command = [sys.executable, str(EXAMPLES / example)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr[:6]) == (2, "usage:")


@pytest.mark.parametrize(
    "words",
    [["say.py", "Hello", "hello.wav"], ["blend_voices.py", "anna", "ben", "0.3", "annaben"]],
)
def test_a_server_that_is_not_there_is_one_line(words: list[str], tmp_path: Path) -> None:
    command = [sys.executable, str(EXAMPLES / words[0]), *words[1:], "ws://127.0.0.1:1"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr.startswith("no server answers at ") and done.stderr.count("\n") == 1


async def test_say_writes_a_wav_file(url: str, tmp_path: Path) -> None:
    await run("say.py", "Hello there.", str(tmp_path / "hello.wav"), url)
    assert seconds(tmp_path / "hello.wav") > 0.5
