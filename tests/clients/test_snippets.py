"""The documents' programs for the client whose environment this is do what they are there for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.clients.snippets import Snippet, snippets

CLIENT = os.environ.get("REALTIME_TTS_CLIENT", "")
PROGRAMS = [each for each in snippets() if each.client == CLIENT and each.language == "python"]


@pytest.mark.parametrize("snippet", PROGRAMS, ids=lambda each: each.place)
def test_the_program_runs_and_leaves_sound(
    snippet: Snippet, server_url: str, tmp_path: Path
) -> None:
    """It prints what it got, or writes files that are no smaller than a header and some sound."""
    command = [sys.executable, "-c", snippet.against(server_url)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    written = [path.stat().st_size for path in tmp_path.iterdir() if path.is_file()]
    assert done.stdout.strip() or written, f"{snippet.place} prints and writes nothing"
    assert all(size > 1_000 for size in written)
