"""examples/livekit_agent.py runs as it stands: the framework's own pipeline, with our speech."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.clients.conversation import REPLY, SAID, run, without_server
from tests.clients.serving import ROOT, Server

EXAMPLE = "livekit_agent.py"


async def test_a_conversation_is_spoken(server: Server, tmp_path: Path) -> None:
    lines, heard = await run(EXAMPLE, server.websocket_url, tmp_path / "heard.wav")
    assert lines == [
        f"user: {SAID[0]}",
        f"assistant: {REPLY.format(SAID[0])}",
        f"user: {SAID[1]}",
        f"assistant: {REPLY.format(SAID[1])}",
    ]
    assert heard > 4.0


async def test_a_user_who_talks_over_the_agent_silences_it(server: Server, tmp_path: Path) -> None:
    wav, long = tmp_path / "heard.wav", " ".join([SAID[0], *["We came to see the old maps."] * 8])
    flags, said = ("--patience", "1"), (long, SAID[1])
    lines, _ = await run(EXAMPLE, server.websocket_url, wav, *flags, said=said)
    (cut,) = [line for line in lines if line.endswith(" (interrupted)")]
    heard = cut.removeprefix("assistant: ").removesuffix(" (interrupted)").strip()
    assert REPLY.format(long).startswith(heard) and len(heard) < len(long) / 2, lines
    assert lines[-1] == f"assistant: {REPLY.format(SAID[1])}"
    await asyncio.to_thread(server.until, "tts_open_turns", 0)


async def test_without_a_server_it_ends_and_says_so(tmp_path: Path) -> None:
    await without_server(EXAMPLE, tmp_path / "heard.wav")


def test_the_document_s_agent_is_complete() -> None:
    """It needs a LiveKit server to run; that its names exist can be seen without."""
    text = (ROOT / "docs" / "adapters.md").read_text(encoding="utf-8")
    program = text.split("<!-- agent.py -->\n```python\n")[1].split("```")[0]
    names: dict[str, Any] = {"__name__": "agent"}
    exec(compile(program, "agent.py", "exec"), names)
    assert asyncio.iscoroutinefunction(names["entrypoint"])


def test_the_document_names_the_versions_that_are_tested() -> None:
    text = (ROOT / "docs" / "adapters.md").read_text(encoding="utf-8")
    for name in ("requirements.txt", "requirements-lowest.txt", "requirements-next.txt"):
        pins = (Path(__file__).parent / name).read_text(encoding="utf-8").splitlines()
        (version,) = [pin.split("==")[1] for pin in pins if pin.startswith("livekit-agents==")]
        assert version in text, f"docs/adapters.md does not name {version}"


@pytest.fixture(autouse=True)
def _ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """The framework reads keys from the environment; none is needed here."""
    for name in ("LIVEKIT_URL", "LIVEKIT_API_KEY", "LIVEKIT_API_SECRET"):
        monkeypatch.delenv(name, raising=False)
