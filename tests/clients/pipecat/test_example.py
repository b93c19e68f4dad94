"""examples/pipecat_agent.py runs as it stands: Pipecat's own pipeline and transport, our speech."""

from __future__ import annotations

from ast import literal_eval
from pathlib import Path

import pytest

from tests.clients.conversation import REPLY, SAID, run, without_server

EXAMPLE = "pipecat_agent.py"


async def test_a_conversation_is_spoken(server_url: str, tmp_path: Path) -> None:
    lines, heard = await run(EXAMPLE, server_url, tmp_path / "heard.wav")
    assert lines == [
        f"user:      {SAID[0]}",
        f"assistant: {REPLY.format(SAID[0])}",
        f"user:      {SAID[1]}",
        f"assistant: {REPLY.format(SAID[1])}",
    ]
    assert heard > 4.0


async def test_an_interrupted_agent_knows_what_was_heard(server_url: str, tmp_path: Path) -> None:
    lines, _ = await run(EXAMPLE, server_url, tmp_path / "heard.wav", "--interrupt-after", "0.5")
    heard = [line.removeprefix("heard:     ") for line in lines if line.startswith("heard:")]
    missed = [line.removeprefix("not heard: ") for line in lines if line.startswith("not heard:")]
    assert len(heard) == len(missed) == 2
    for said, spoken, rest in zip(SAID, heard, missed, strict=True):
        # Interrupted before the language model was done, the text is not the whole reply.
        assert REPLY.format(said).startswith(literal_eval(spoken) + literal_eval(rest))
        assert rest


@pytest.mark.parametrize("flags", [(), ("--interrupt-after", "0.5")])
async def test_without_a_server_it_ends_and_says_so(flags: tuple[str, ...], tmp_path: Path) -> None:
    await without_server(EXAMPLE, tmp_path / "heard.wav", *flags)
