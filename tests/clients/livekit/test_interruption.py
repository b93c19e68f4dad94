"""Barge-in: the stream is closed or its task cancelled while the agent speaks."""

from __future__ import annotations

import asyncio

import pytest

from realtime_tts.adapters.livekit import TTS
from tests.clients.livekit.stand_in import Peer, stand_in
from tests.clients.livekit_rig import ONCE, assert_well_formed, audio, collected, say, until_audio
from tests.clients.serving import Server

LONG = " ".join(["The museum is open until six, and the café until nine."] * 20)


@pytest.mark.parametrize("way", ["stream", "synthesize"])
async def test_closing_a_stream_frees_the_server_and_keeps_the_session(
    server: Server, way: str
) -> None:
    async with TTS(server.url) as speaker:
        metrics = collected(speaker, "metrics_collected")
        if way == "stream":
            stream = speaker.stream(conn_options=ONCE)
            stream.push_text(LONG)  # and its text does not end
        else:
            stream = speaker.synthesize(LONG, conn_options=ONCE)
        await until_audio(stream)
        await stream.aclose()
        await asyncio.to_thread(server.until, "tts_open_turns", 0)
        await asyncio.to_thread(server.until, "tts_active_turns", 0)
        assert_well_formed(await say(speaker, ["Yes?"]))
    assert metrics[-1].connection_reused and metrics[-1].characters_count == 4


async def test_a_cancelled_task_interrupts_as_well(server: Server) -> None:
    """The way of the pipeline: it cancels the task that reads from the stream."""
    heard = asyncio.Event()

    async def node(speaker: TTS) -> None:
        async with speaker.stream(conn_options=ONCE) as stream:
            stream.push_text(LONG)
            async for _ in stream:
                heard.set()

    async with TTS(server.url) as speaker:
        task = asyncio.create_task(node(speaker))
        await asyncio.wait_for(heard.wait(), 60)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.to_thread(server.until, "tts_open_turns", 0)
        await asyncio.to_thread(server.until, "tts_active_turns", 0)


async def test_nothing_of_the_old_turn_is_heard_in_the_next() -> None:
    """A server that goes on with the old turn for as long as it has not read the interrupt."""

    async def script(peer: Peer) -> None:
        old = (await peer.receive("text"))["turn_id"]
        await peer.send("turn.started", old, layout="streaming")
        await peer.audio(1, 2048)
        assert (await peer.receive("interrupt"))["turn_id"] == old
        for _ in range(5):
            await peer.audio(1, 2048)
        report = {"samples_sent": 12288, "played_ms": 0.0, "text_spoken": "", "text_remaining": ""}
        await peer.send("turn.interrupted", old, **report)
        await peer.done(old, "interrupted", 12288, 3)
        new, text = await peer.text()
        assert (new != old, text) == (True, "new")
        await peer.send("turn.started", new, layout="streaming")
        await peer.audio(2, 2048)
        await peer.done(new, "complete", 2048, 3)
        await peer.socket.wait_closed()

    async with stand_in(script) as url, TTS(url) as speaker:
        async with speaker.stream(conn_options=ONCE) as stream:
            stream.push_text("old")
            first = await until_audio(stream)
        assert set(audio([first])) == {0, 1}
        events = await say(speaker, ["new"])
    assert audio(events).removesuffix(bytes(480)) == b"\2\0" * 2048


async def test_closing_the_tts_interrupts_what_it_speaks(server: Server) -> None:
    speaker = TTS(server.url)
    stream = speaker.stream(conn_options=ONCE)
    stream.push_text(LONG)
    await until_audio(stream)
    await speaker.aclose()
    await asyncio.to_thread(server.until, "tts_open_turns", 0)
    await asyncio.to_thread(server.until, "tts_sessions", 0)
    assert not [event async for event in stream if event.is_final]
