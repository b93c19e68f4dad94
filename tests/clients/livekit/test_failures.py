"""What goes wrong becomes the error by which the framework decides whether to try again."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

import pytest
from livekit.agents import (
    APIConnectionError,
    APIConnectOptions,
    APIError,
    APIStatusError,
    APITimeoutError,
    tts,
)

from realtime_tts.adapters.livekit import TTS
from realtime_tts.adapters.livekit_attempt import api_error
from realtime_tts.errors import (
    ConfigError,
    ConnectionLost,
    HandshakeRefused,
    OverloadedError,
    RealtimeTTSError,
    RequestError,
    TurnError,
)
from tests.clients.livekit.stand_in import Peer, stand_in
from tests.clients.livekit_rig import TEXT, Way, audio, collected, read, say
from tests.clients.serving import Server

AT_ONCE = APIConnectOptions(max_retry=3, retry_interval=0.0, timeout=60.0)
IMPATIENT = APIConnectOptions(max_retry=3, retry_interval=0.0, timeout=0.3)
SOME_PATIENCE = APIConnectOptions(max_retry=1, retry_interval=0.0, timeout=2.0)
WAYS = pytest.mark.parametrize("way", [say, read])


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def failure(
    speaker: TTS, way: Way, options: APIConnectOptions = AT_ONCE
) -> tuple[APIError, int]:
    """The error of a stream, and how many attempts the framework made; none may be measured."""
    errors, metrics = collected(speaker, "error"), collected(speaker, "metrics_collected")
    with pytest.raises(APIError) as found:
        await way(speaker, TEXT, options)
    assert not metrics
    assert [each.recoverable for each in errors] == [True] * (len(errors) - 1) + [False]
    return found.value, len(errors)


@WAYS
async def test_a_wrong_key_is_final(keyed_server: Server, way: Way) -> None:
    async with TTS(keyed_server.url, api_key="wrong") as speaker:
        error, attempts = await failure(speaker, way)
    assert isinstance(error, APIStatusError) and error.status_code == 401
    assert not error.retryable and "api_key=" in str(error)
    assert attempts == 1 or way is read  # before 1.7 whole texts are tried again whatever happened


async def test_a_voice_that_the_server_does_not_have_is_final(server: Server) -> None:
    async with TTS(server.url, voice="nobody") as speaker:
        error, attempts = await failure(speaker, say)
        assert isinstance(error, APIStatusError) and error.status_code == 400
        assert not error.retryable and "nobody" in str(error) and attempts == 1
        speaker.update_options(voice="ray")
        assert await say(speaker)


async def test_a_bad_option_of_a_later_stream_leaves_the_session_as_it_was(server: Server) -> None:
    async with TTS(server.url, voice="ray") as speaker:
        await say(speaker, ["Hello."])
        speaker.update_options(voice="nobody")
        error, _ = await failure(speaker, say)
        assert not error.retryable
        speaker.update_options(voice="ray")
        metrics = collected(speaker, "metrics_collected")
        await say(speaker, ["Hello."])
        assert metrics[0].connection_reused


@WAYS
async def test_where_no_server_is_the_framework_tries_again(way: Way) -> None:
    async with TTS(f"127.0.0.1:{free_port()}") as speaker:
        error, attempts = await failure(speaker, way)
    assert isinstance(error, APIConnectionError) and error.retryable and attempts == 4


async def test_a_server_without_room_may_be_tried_again(busy_server: Server) -> None:
    async with TTS(busy_server.url) as speaker:
        error, attempts = await failure(speaker, say)
    assert isinstance(error, APIStatusError) and error.status_code == 503
    assert error.retryable and attempts == 4
    assert error.body["retry_after"] > 0


@contextlib.asynccontextmanager
async def mute_port() -> AsyncIterator[str]:
    """Takes connections and says nothing, not even whether it is a server."""
    writers = []
    async with await asyncio.start_server(
        lambda reader, writer: writers.append(writer), "127.0.0.1", 0
    ) as listening:
        yield f"127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        for writer in writers:
            writer.close()


@WAYS
async def test_a_port_that_says_nothing_is_a_timeout(way: Way) -> None:
    async with mute_port() as address, TTS(address) as speaker:
        error, attempts = await failure(speaker, way, IMPATIENT)
    assert isinstance(error, APITimeoutError) and attempts == 4


@WAYS
async def test_a_server_that_does_not_speak_is_a_timeout_and_left(way: Way) -> None:
    sockets = []

    async def script(peer: Peer) -> None:
        sockets.append(peer)
        await peer.text()
        await peer.socket.wait_closed()

    async with stand_in(script) as url, TTS(url) as speaker:
        error, attempts = await failure(speaker, way, SOME_PATIENCE)
    assert isinstance(error, APITimeoutError) and attempts == 2
    assert len(sockets) == 2  # each attempt had a socket of its own


async def test_after_a_timeout_the_next_attempt_has_a_new_socket() -> None:
    """A proxy may have dropped the sockets of all unused sessions without a word."""
    sockets = []

    async def script(peer: Peer) -> None:
        sockets.append(peer)
        turn, text = await peer.text()
        await peer.send("turn.started", turn, layout="streaming")
        await peer.audio(1, 2048)
        await peer.done(turn, "complete", 2048, len(text))
        await peer.socket.wait_closed()  # nothing more comes

    async with stand_in(script) as url, TTS(url) as speaker:
        await asyncio.gather(*(say(speaker) for _ in range(3)))
        assert len(sockets) == 3
        events = await say(speaker, options=SOME_PATIENCE)
    assert audio(events).count(b"\1\0") == 2048
    assert len(sockets) == 4


async def test_a_text_that_pauses_is_no_timeout() -> None:
    """While the language model thinks, the server owes nothing."""

    async def script(peer: Peer) -> None:
        turn = (await peer.receive("text"))["turn_id"]
        await peer.send("turn.started", turn, layout="streaming")
        await peer.audio(1, 2048)
        _, rest = await peer.text()
        await peer.audio(1, 2048)
        await peer.done(turn, "complete", 4096, 3 + len(rest))
        await peer.socket.wait_closed()

    async with stand_in(script) as url, TTS(url) as speaker:
        async with speaker.stream(conn_options=SOME_PATIENCE) as stream:
            stream.push_text("One")
            await asyncio.sleep(SOME_PATIENCE.timeout + 0.5)  # the pause that is tested
            stream.push_text(" two.")
            stream.end_input()
            events = [event async for event in stream]
    assert audio(events).count(b"\1\0") == 4096


async def fail(peer: Peer, turn: str, code: str, retryable: bool, samples: int = 0) -> None:
    error = {"code": code, "message": "it failed", "fatal": False, "retryable": retryable}
    await peer.send("error", turn, **error)
    await peer.done(turn, "error", samples, 0)


@WAYS
async def test_an_engine_that_fails_gets_the_whole_text_again(way: Way) -> None:
    texts = []

    async def script(peer: Peer) -> None:
        turn, text = await peer.text()
        await fail(peer, turn, "engine_error", retryable=True)
        texts.append(text)
        turn, text = await peer.text()
        texts.append(text)
        await peer.send("turn.started", turn, layout="streaming")
        await peer.audio(3, 2048)
        await peer.done(turn, "complete", 2048, len(text))
        await peer.socket.wait_closed()

    async with stand_in(script) as url, TTS(url) as speaker:
        errors = collected(speaker, "error")
        events = await way(speaker, TEXT, AT_ONCE)
    assert texts == [TEXT, TEXT]
    assert [each.recoverable for each in errors] == [True]
    assert errors[0].error.status_code == 500
    assert audio(events).count(b"\3\0") == 2048


async def test_what_was_heard_is_not_said_again() -> None:
    async def script(peer: Peer) -> None:
        turn, _ = await peer.text()
        await peer.send("turn.started", turn, layout="streaming")
        for _ in range(5):
            await peer.audio(1, 2048)
        await peer.socket.close(1011)

    async with stand_in(script) as url, TTS(url) as speaker:
        error, attempts = await failure(speaker, say)
    assert isinstance(error, APIConnectionError) and attempts == 1


@pytest.mark.parametrize("reason", ["idle", "complete"])
async def test_text_behind_a_turn_that_is_over_is_spoken_in_another_one(reason: str) -> None:
    """The server ends a turn that waits too long, and the model may end by itself; what the turn
    did not take belongs to the next."""
    turns: list[tuple[str, str]] = []
    over = asyncio.Event()

    async def script(peer: Peer) -> None:
        first = await peer.receive("text")
        turn = first["turn_id"]
        await peer.send("turn.started", turn, layout="streaming")
        await peer.audio(1, 2048)
        late = await peer.receive("text")  # too late, as the server sees it
        await peer.done(turn, reason, 2048, len(first["text"]))
        over.set()
        other, rest = await peer.text(after=turn)
        turns.append((first["text"], late["text"]))
        turns.append((other, rest))
        await peer.send("turn.started", other, layout="streaming")
        await peer.audio(2, 2048)
        await peer.done(other, "complete", 2048, len(rest))
        await peer.socket.wait_closed()

    async with stand_in(script) as url, TTS(url) as speaker:
        async with speaker.stream(conn_options=AT_ONCE) as stream:
            stream.push_text("One")
            await asyncio.wait_for(anext(aiter(stream)), 60)
            stream.push_text(", two")
            await over.wait()
            stream.push_text(", three.")
            stream.end_input()
            events = [event async for event in stream]
    assert turns[0] == ("One", ", two") and turns[1][1] == ", two, three."
    assert audio(events).count(b"\2\0") == 2048
    assert len({event.segment_id for event in events}) == 1


@pytest.mark.parametrize(
    ("error", "kind", "status", "retryable"),
    [
        (OverloadedError("full", 0.5), APIStatusError, 503, True),
        (HandshakeRefused("no", 403), APIStatusError, 403, False),
        (HandshakeRefused("not ready", 503), APIStatusError, 503, True),
        (HandshakeRefused("nobody there"), APIConnectionError, None, True),
        (ConnectionLost("gone"), APIConnectionError, None, True),
        (RequestError("no such voice"), APIStatusError, 400, False),
        (TurnError("died", "engine_restarted", True), APIStatusError, 500, True),
        (TurnError("too much", "turn_too_long", False), APIStatusError, 400, False),
    ],
)
def test_every_error_of_the_client_says_whether_to_try_again(
    error: RealtimeTTSError, kind: type[APIError], status: int | None, retryable: bool
) -> None:
    found = api_error(error)
    assert type(found) is kind and found.retryable is retryable
    assert getattr(found, "status_code", None) == status


def test_what_cannot_work_is_refused_before_anything_is_spoken() -> None:
    with pytest.raises(ConfigError, match="address"):
        TTS("ftp://somewhere")
    with pytest.raises(ConfigError, match="unknown option 'voise'"):
        TTS(voise="ava")  # type: ignore[call-arg]
    with pytest.raises(ConfigError, match="leave the option audio out"):
        TTS(audio={"encoding": "mp3"})
    with pytest.raises(ConfigError, match="seed"):
        TTS().update_options(seed="seven")  # type: ignore[arg-type]


async def test_a_failed_prewarm_is_said_and_forgotten(caplog: pytest.LogCaptureFixture) -> None:
    async with TTS(f"127.0.0.1:{free_port()}") as speaker:
        speaker.prewarm()
        error, _ = await failure(speaker, say)
    assert isinstance(error, APIConnectionError)
    assert "ahead of the first reply" in caplog.text
    assert isinstance(speaker, tts.TTS)
