"""Shells complete commands and flags, as they ask for it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest


def completions(line: str, tmp_path: Path) -> set[str]:
    """What bash would offer behind this line."""
    answer = tmp_path / "answer"
    environment = os.environ | {
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(answer),
        "_ARGCOMPLETE_IFS": "\n",
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
        "COMP_TYPE": "",
    }
    command = [sys.executable, "-m", "realtime_tts"]
    done = subprocess.run(command, env=environment, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return {word.strip() for word in answer.read_text().split("\n")}


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("realtime-tts se", {"serve"}),
        ("realtime-tts ", {"say", "serve", "voices", "completion"}),
        ("realtime-tts say --vo", {"--voice"}),
        ("realtime-tts say 'half a te --spe", set()),
        ("realtime-tts serve --log-level de", {"debug"}),
    ],
)
def test_what_may_follow_is_offered(line: str, offered: set[str], tmp_path: Path) -> None:
    assert offered <= completions(line, tmp_path)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_reads_its_script(shell: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "realtime_tts", "completion", shell],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert "realtime-tts" in done.stdout
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed: its script cannot be read here")
    check = ["--no-execute"] if shell == "fish" else ["-n"]
    subprocess.run([program, *check], input=done.stdout, text=True, check=True, timeout=60)
