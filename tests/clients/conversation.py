"""The examples that speak with a framework's own pipeline, run as they stand."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import wave
from collections.abc import Sequence
from pathlib import Path

from tests.clients.serving import ROOT

SAID = ("Good day!", "When do you close?")
REPLY = "You said: {} The museum is open until six, and the café until nine."


async def run(
    example: str, server: str, wav: Path, *flags: str, said: Sequence[str] = SAID
) -> tuple[list[str], float]:
    """What it printed, and how many seconds were heard. `server` is an address."""
    command = [sys.executable, str(ROOT / "examples" / example), *said]
    command += ["--server", server, "--output", str(wav), *flags]
    done = await asyncio.to_thread(
        subprocess.run, command, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    with wave.open(str(wav)) as file:
        return done.stdout.splitlines(), file.getnframes() / file.getframerate()
