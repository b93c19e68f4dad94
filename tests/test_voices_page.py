"""docs/voices.md does what it says: its commands and its program run, in order, on one server."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from realtime_tts.bench.local_server import local_server
from realtime_tts.dialects.openai_request import VOICES
from tests.test_docs import DOCUMENTS
from tests.voices import recordings

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "voices.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(console|python)\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def script(url: str) -> str:
    """All blocks of the page as one shell script that stops at the first failure."""
    python = shlex.quote(sys.executable)
    lines = ["set -eux"]
    for language, text in BLOCKS:
        if language == "python":
            lines.append(f"{python} - <<'END'\n{text}END")
            continue
        for line in text.splitlines():
            assert line.startswith("$ "), line
            line = re.sub(r"^realtime-tts ", f"{python} -m realtime_tts ", line[2:])
            lines.append(re.sub(r"^python examples/", f"{python} {ROOT}/examples/", line))
    return "\n".join(lines).replace("127.0.0.1:8000", url.removeprefix("ws://"))


async def test_the_page_s_examples_run_from_the_first_to_the_last(tmp_path: Path) -> None:
    (tmp_path / "ref.wav").write_bytes(recordings.encoded(recordings.voice()))
    folder = str(tmp_path / "voices")
    async with local_server(["--engine", "fake", "--voices-dir", folder]) as url:
        done = await asyncio.to_thread(
            subprocess.run,
            ["bash", "-c", script(url)],
            cwd=tmp_path,
            env=os.environ | {"REALTIME_TTS_URL": url},
            capture_output=True,
            text=True,
            timeout=150,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "registered anna, from its sound alone" in done.stdout
    assert "registered anna-2, with its manner of speaking" in done.stdout
    assert "deleted anna-2" in done.stdout
    assert "registered annaben, 70% anna and 30% ben" in done.stdout
    assert (tmp_path / "anna.wav").stat().st_size > 10_000


def test_the_page_has_commands_and_a_program() -> None:
    assert {language for language, _ in BLOCKS} == {"console", "python"}


def test_the_released_voices_are_those_that_stand_in_for_openai_s() -> None:
    (row,) = re.findall(r"^\| `Qwen/\S*1\.7B-CustomVoice` \| (.*?) \|", PAGE, re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", row)) == {released for _, released in VOICES.values()}


def test_documents_name_released_checkpoints_only() -> None:
    released = set(re.findall(r"`(Qwen/[\w.-]+)`", PAGE))
    assert len(released) == 5
    for document in DOCUMENTS:
        named = set(re.findall(r"\bQwen/Qwen3-TTS-12Hz[\w.-]*\w", document.read_text("utf-8")))
        assert named <= released, document.name
