"""examples/pipecat_agent.py runs as it stands: Pipecat's own pipeline and transport, our speech."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import wave
from ast import literal_eval
from pathlib import Path

from serving import ROOT

SAID = ("Good day!", "When do you close?")
REPLY = "You said: {} The museum is open until six, and the café until nine."


async def run(url: str, wav: Path, *flags: str) -> tuple[list[str], float]:
    """What it printed, and how many seconds were heard."""
    command = [sys.executable, str(ROOT / "examples" / "pipecat_agent.py"), *SAID]
    command += ["--server", url, "--output", str(wav), *flags]
    done = await asyncio.to_thread(
        subprocess.run, command, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    with wave.open(str(wav)) as file:
        return done.stdout.splitlines(), file.getnframes() / file.getframerate()


async def test_a_conversation_is_spoken(server_url: str, tmp_path: Path) -> None:
    lines, heard = await run(server_url, tmp_path / "heard.wav")
    assert lines == [
        f"user:      {SAID[0]}",
        f"assistant: {REPLY.format(SAID[0])}",
        f"user:      {SAID[1]}",
        f"assistant: {REPLY.format(SAID[1])}",
    ]
    assert heard > 4.0


async def test_an_interrupted_agent_knows_what_was_heard(server_url: str, tmp_path: Path) -> None:
    lines, _ = await run(server_url, tmp_path / "heard.wav", "--interrupt-after", "0.5")
    heard = [line.removeprefix("heard:     ") for line in lines if line.startswith("heard:")]
    missed = [line.removeprefix("not heard: ") for line in lines if line.startswith("not heard:")]
    assert len(heard) == len(missed) == 2
    for said, spoken, rest in zip(SAID, heard, missed, strict=True):
        # Interrupted before the language model was done, the text is not the whole reply.
        assert REPLY.format(said).startswith(literal_eval(spoken) + literal_eval(rest))
        assert rest
