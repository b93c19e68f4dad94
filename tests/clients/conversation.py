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


async def without_server(example: str, wav: Path, *flags: str) -> None:
    """Run the example where no server is: it ends, and its last line says why."""
    done = await asyncio.to_thread(_run, example, "ws://127.0.0.1:1", wav, *flags)
    *_, last = done.stderr.splitlines()
    assert done.returncode == 1 and last.startswith("no server answers at "), done.stderr


async def run(
    example: str, server: str, wav: Path, *flags: str, said: Sequence[str] = SAID
) -> tuple[list[str], float]:
    """What it printed, and how many seconds were heard. `server` is an address."""
    done = await asyncio.to_thread(_run, example, server, wav, *flags, said=said)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    with wave.open(str(wav)) as file:
        return done.stdout.splitlines(), file.getnframes() / file.getframerate()


def _run(
    example: str, server: str, wav: Path, *flags: str, said: Sequence[str] = SAID
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "examples" / example), *said]
    command += ["--server", server, "--output", str(wav), *flags]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)
