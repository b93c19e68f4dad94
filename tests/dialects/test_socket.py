"""What all APIs over a WebSocket share: contexts, limits, ends. In the smallest dialect."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Any

import pytest
import websockets

from realtime_tts.config import LimitsConfig, ServerConfig, SocketConfig
from realtime_tts.engine.fake import FakeEngineConfig
from realtime_tts.server.auth import PathRule
from realtime_tts.server.denials import send_denial
from tests.dialects.asking import SLOW
from tests.dialects.plain import PATH, PlainSocket, add_route, plain, sound_of
from tests.dialects.tones import FRAME, TENTH
from tests.engine.faulty import Faults
from tests.server.peers import PING, PONG, TEXT, Connecting
from tests.server.speaking import speaking
from tests.waiting import until

# Speech.


async def test_deltas_become_sound_and_an_end() -> None:
    async with speaking() as server, plain(server) as client:
        for delta in ("Hel", "lo wo", "rld."):
            await client.send(text=delta)
        await client.send(end=True)
        seen = await client.until("done")
        assert seen[0] == {"id": "one", "started": 0}
        assert len(sound_of(seen)) == len("Hello world.") * FRAME
        assert seen[-2] == {"id": "one", "segment": 0, "tag": None}
        await server.settled_engine()


async def test_many_contexts_speak_at_once_and_take_turns() -> None:
    async with speaking() as server, plain(server) as client:
        names = [f"c{number}" for number in range(50)]
        for name in names:
            await client.send(id=name, text=f"Hello from {name}.")
        # None has ended: a context that waits for another's end is never heard.
        seen: list[dict[str, Any]] = []
        while len({message["id"] for message in seen if "sound" in message}) < len(names):
            seen += await client.until("sound")
        for name in names:
            await client.send(id=name, end=True)
        for _ in names:
            seen += await client.until("done")
        for name in names:
            assert len(sound_of(seen, name)) == len(f"Hello from {name}.") * FRAME
        await server.settled_engine()


async def test_a_flush_speaks_all_there_is_and_tells() -> None:
    async with speaking() as server, plain(server) as client:
        await client.send(text="First part", flush="a")
        seen = await client.until("segment")
        assert seen[-1]["tag"] == "a"
        assert len(sound_of(seen)) == len("First part") * FRAME
        await client.send(text=" and second", flush="b")
        await client.send(flush="nothing")
        await client.send(text=" and third", end=True)
        seen = await client.until("done")
        tags = [message["tag"] for message in seen if "segment" in message]
        assert tags == ["b", "nothing", None]
        # White space at the start of a segment is not spoken.
        assert len(sound_of(seen)) == (len("and second") + len("and third")) * FRAME


async def test_text_without_more_is_spoken_to_its_end_after_a_while() -> None:
    async with speaking() as server, plain(server) as client:
        await client.send(text="Half a sentence", hold=0.05)
        seen = await client.until("segment")
        assert len(sound_of(seen)) == len("Half a sentence") * FRAME
        await client.send(text="and the rest.", end=True)
        assert len(sound_of(await client.until("done"))) == len("and the rest.") * FRAME


async def test_text_that_waits_behind_speech_waits_for_more() -> None:
    async with speaking(engine=SLOW) as server, plain(server) as client:
        await client.send(text="A first part. " * 3, flush=1, hold=0.01)
        await client.send(text="One, ")
        for _ in range(20):  # far longer than a hold
            await client.until("sound")
        await client.send(text="two.")
        await client.until("segment")
        seen = await client.until("segment")
        assert len(sound_of(seen)) == len("One, two.") * FRAME


async def test_a_flood_of_flushes_is_refused() -> None:
    config = ServerConfig(port=0, limits=LimitsConfig(max_bad_messages=100))
    async with speaking(config, engine=SLOW) as server, plain(server) as client:
        await client.send(text="A first part that takes a while. " * 10, flush=0)
        for number in range(300):
            await client.send(flush=number)
        assert "256 flushes" in (await client.until("message"))[-1]["message"]
        await client.send(cancel=True)
        await client.up_to(lambda found: "cancelled" in found, past_errors=True)
        await server.settled_engine()


async def test_no_text_is_no_sound_but_white_space_is_a_little() -> None:
    """Clients take an answer without sound to white space, which models write, for a failure."""
    async with speaking() as server, plain(server) as client:
        await client.send(text="", end=True)
        assert await client.until("done") == [{"id": "one", "done": True}]
        await client.send(text="  \n", end=True)
        assert sound_of(await client.until("done")) == TENTH
        await client.send(text="\n", flush=1)
        await client.send(text="Hi.", flush=2)
        await client.send(text="\n", end=True)  # what follows speech is not worth a sound
        heard = sound_of(await client.until("done"))
        assert heard.startswith(TENTH) and len(heard) == len(TENTH) + 3 * FRAME


async def test_a_stall_is_filled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("realtime_tts.server.speech.STALL_SECONDS", 0.05)
    async with speaking() as server, plain(server) as client:
        await client.send(text="wait")
        heard = b""
        while not heard.endswith(TENTH * 2):
            heard += sound_of([await client.next()])
        await client.send(text=" on", end=True)
        await client.until("done")


async def test_one_encoder_for_all_segments_or_one_for_each() -> None:
    async with speaking() as server, plain(server) as client:
        for per_segment, headers in ((False, 1), (True, 2)):
            await client.send(text="one", encoding="wav", per_segment=per_segment, flush=1)
            await client.send(text="two", end=True)
            heard = sound_of(await client.until("done"))
            assert heard.startswith(b"RIFF") and heard.count(b"RIFF") == headers


async def test_words_have_times_in_order_within_the_sound() -> None:
    text = "The quick brown fox jumps. Over the lazy dog it goes!"
    async with speaking() as server, plain(server) as client:
        await client.send(text=text[:26], flush=1)
        await client.send(text=text[26:], end=True)
        heard, said, last = 0, [], 0.0
        for message in await client.until("done"):
            heard += len(sound_of([message]))
            for word, start, end in message.get("words", ()):
                said.append(word)
                assert last <= start + 1e-9 and start < end <= heard / 48_000 + 1e-9
                last = end
        assert said == text.split()


# Cancelling.


async def test_nothing_follows_a_cancel() -> None:
    async with speaking(engine=SLOW) as server, plain(server) as client:
        await client.send(id="a", text="A long text that is spoken for a while. " * 4)
        await client.send(id="b", text="Hello there.", end=True)
        await client.until("sound", "a")
        await client.send(id="a", cancel=True)
        await client.until("cancelled")
        rest = await client.until("done", "b")
        assert {message["id"] for message in rest} == {"b"}
        await server.settled_engine()
        assert server.value("tts_turns_total", reason="interrupted") == 1
        assert server.value("tts_interrupts_total") == 1


async def test_cancel_and_begin_again_a_hundred_times() -> None:
    async with speaking() as server, plain(server) as client:
        for number in range(100):
            await client.send(text=f"Number {number}", flush=number)
            await client.send(cancel=True)
        await client.send(text="last", end=True)
        await client.until("done")
        await server.settled_engine()
        assert server.value("tts_open_turns") == 0


async def test_who_is_gone_stops_everything_at_once() -> None:
    async with speaking(engine=SLOW) as server:
        async with plain(server) as client:
            for name in "abc":
                await client.send(id=name, text="A long text. " * 20, end=True)
            await client.until("sound", "c")
        await server.settled()
        assert server.value("tts_turns_total", reason="closed") == 3
        names = {task.get_name() for task in asyncio.all_tasks()}
        assert not [name for name in names if name.startswith(("context-", "writer-"))]


async def test_a_socket_may_finish_and_then_close() -> None:
    async with speaking(engine=SLOW) as server, plain(server) as client:
        await client.send(id="a", text="Hello there.")
        await client.send(id="b", text="Hello again.", lasting=True)
        await client.send(finish=True)
        seen = await client.until("finished")
        for name in "ab":
            assert len(sound_of(seen, name)) == len("Hello there.") * FRAME
        with pytest.raises(websockets.ConnectionClosedOK):
            await client.next()
        assert client.socket.close_code == 1000
        await server.settled()


# Bad input.


async def test_too_many_bad_messages_end_the_socket_when_all_are_answered() -> None:
    config = ServerConfig(port=0, limits=LimitsConfig(max_bad_messages=3))
    async with speaking(config) as server:
        for messages in (3, 1):  # the next socket of this address has none left, and is told why
            async with plain(server) as client:
                for _ in range(messages):
                    await client.socket.send("{")
                told = []
                with pytest.raises(websockets.ConnectionClosed):
                    while True:
                        told.append((await client.next())["error"])
                assert told == ["bad_json"] * messages + ["too_many_errors"]
                assert client.socket.close_code == 1008
        await server.settled()


async def test_a_flood_ends_the_socket() -> None:
    config = ServerConfig(port=0, limits=LimitsConfig(messages_per_second=1, message_burst=5))
    async with speaking(config) as server, plain(server) as client:
        for _ in range(6):
            await client.send(text="a")
        with pytest.raises(websockets.ConnectionClosed):
            while True:
                await client.next()
        assert client.socket.close_reason == "rate_limited"


async def test_a_message_that_is_too_large_leaves_no_hole() -> None:
    async with speaking(engine=SLOW) as server, plain(server) as client:
        await client.send(text="The beginning ")
        await client.send(text="a" * 70_000)
        await client.send(text="and the end.", end=True)
        seen = await client.rest()
        assert seen[-1]["error"] == "too_large" and "65536 bytes" in seen[-1]["message"]
        assert client.socket.close_code == 1009
        await server.settled()


async def test_more_text_than_may_wait_is_refused() -> None:
    limits = LimitsConfig(max_text_chars=50, max_turn_chars=50)
    async with speaking(ServerConfig(port=0, limits=limits)) as server, plain(server) as client:
        await client.send(text="a" * 51)
        assert "50 characters" in (await client.next())["message"]
        for _ in range(2):  # what has been spoken counts no more
            await client.send(text="a" * 40, flush=1)
            await client.until("segment")


async def test_what_cannot_be_had_is_refused() -> None:
    async with speaking() as server, plain(server) as client:
        await client.send(text="Hello", voice="nobody")
        assert "unknown voice" in (await client.next())["message"]
        await client.send(text="Hello", encoding="pcm_s64be")
        assert "there is no format" in (await client.next())["message"]
        await client.send(text="Hello", end=True)
        await client.until("done")


async def test_a_socket_may_hold_so_many_contexts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PlainSocket, "max_contexts", 2)
    async with speaking() as server, plain(server) as client:
        for name in "abc":
            await client.send(id=name)
        assert (await client.next())["error"] == "too_many_contexts"


# Places, and the server's end.


async def test_sockets_and_contexts_take_places() -> None:
    config = ServerConfig(port=0, limits=LimitsConfig(max_sessions=3))
    async with speaking(config) as server:
        async with plain(server) as client:
            await client.send(id="a")
            await client.send(id="b")
            await client.send(id="c")
            assert (await client.next())["error"] == "too_many_sessions"
            async with plain(server):
                assert await server.status("websocket", PATH) == 503
        await server.settled()


@pytest.mark.parametrize(("most", "contexts"), [(3, 2), (8, 7), (9, 7), (17, 14)])
async def test_the_last_eighth_of_the_places_is_not_for_sockets_that_have_one(
    most: int, contexts: int
) -> None:
    """However many sockets run however many contexts, whoever comes finds a place."""
    config = ServerConfig(port=0, limits=LimitsConfig(max_sessions=most))
    async with speaking(config) as server, plain(server) as client:
        for number in range(contexts):
            await client.send(id=f"c{number}")
        await client.send(id="one too many")
        refused = await client.next()
        assert refused["error"] == "too_many_sessions"
        assert f"the last sessions ({most - contexts} of {most}) are" in refused["message"]
        async with contextlib.AsyncExitStack() as stack:
            for _ in range(most - contexts):
                newcomer = await stack.enter_async_context(plain(server))
                await newcomer.send(text="Hi.", end=True)
                await newcomer.until("done")
            assert await server.status("websocket", PATH) == 503


async def test_a_drain_lets_contexts_finish_and_closes() -> None:
    async with speaking(engine=SLOW) as server, plain(server) as client, plain(server) as idle:
        await client.send(text="A sentence of some length.")
        await client.until("sound")
        server.running.front.drain()
        with pytest.raises(websockets.ConnectionClosed):
            while True:
                await idle.next()
        assert idle.socket.close_code == 1001
        await client.send(id="new", text="no")
        await client.until("error")
        await client.send(text=" More of it.", end=True)
        seen = await client.until("done")
        assert sound_of(seen)
        with pytest.raises(websockets.ConnectionClosed):
            while True:
                await client.next()
        await server.settled()


async def test_an_idle_socket_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PlainSocket, "idle_seconds", 0.05)
    async with speaking() as server, plain(server) as client:
        with pytest.raises(websockets.ConnectionClosedOK):
            await client.next()
        assert client.socket.close_reason == "idle"


async def test_a_socket_that_waits_in_a_pool_need_not_answer_pings(peer: Connecting) -> None:
    """LiveKit's plugins keep one there, and nobody reads it. Later all answers come at once."""
    settings = SocketConfig(ping_interval=0.01, ping_timeout=0.5, pings_per_second=1)
    async with speaking(ServerConfig(port=0, socket=settings)) as server:
        add_route(server)
        pooled = await peer(server.port)
        await pooled.upgrade(PATH)
        pings = [await pooled.next_frame() for _ in range(4)]
        assert {opcode for opcode, _ in pings} == {PING}
        for _, payload in pings:
            await pooled.frame(PONG, payload)
        await pooled.frame(TEXT, json.dumps({"text": "Hi.", "end": True}).encode())
        said = b""
        while b"done" not in said:
            opcode, payload = await pooled.next_frame()
            if opcode == PING:
                await pooled.frame(PONG, payload)
            said += payload


async def test_one_that_speaks_has_to_answer_pings(peer: Connecting) -> None:
    settings = SocketConfig(ping_interval=0.05, ping_timeout=0.05)
    async with speaking(ServerConfig(port=0, socket=settings), engine=SLOW) as server:
        add_route(server)
        silent = await peer(server.port)
        await silent.upgrade(PATH)
        await silent.frame(TEXT, json.dumps({"text": "A long text. " * 50}).encode())
        assert await silent.ended()
        await server.settled()
        assert server.value("tts_socket_aborts_total", reason="ping_timeout") == 1


async def test_an_idle_context_ends_and_a_lasting_one_stays() -> None:
    limits = LimitsConfig(turn_idle_ms=50)
    async with speaking(ServerConfig(port=0, limits=limits)) as server, plain(server) as client:
        await client.send(id="lasting", lasting=True)
        await client.send(id="short")
        assert await client.next() == {"id": "short", "done": True}
        await client.send(id="lasting", text="Still here.", flush=1)
        await client.until("segment")


# Failures.


async def test_a_failure_ends_one_context() -> None:
    faults = Faults()
    async with speaking(engine=SLOW, faults=faults) as server, plain(server) as client:
        await client.send(id="bad", text="A text that will fail. " * 3)
        await client.until("sound", "bad")
        faults.numerics.update(server.engine._rows)
        await client.until("error", "bad")
        await client.send(id="good", text="Well.", end=True)
        await client.until("done", "good")
        await server.settled_engine()


async def test_a_fault_of_a_dialect_closes_its_socket_only(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Any:
        raise ValueError("injected")

    async with speaking() as server, plain(server) as other:
        await other.send(text="Hello ")
        monkeypatch.setattr(PlainSocket, "cancel", broken)
        async with plain(server) as client:
            await client.send(cancel=True)
            with pytest.raises(websockets.ConnectionClosed):
                await client.next()
            assert client.socket.close_code == 1011
        await other.send(text="there.", end=True)
        await other.until("done")
        monkeypatch.undo()


async def test_a_reader_that_stalls_is_dropped(peer: Connecting) -> None:
    config = ServerConfig(
        port=0, lead_seconds=30, socket=SocketConfig(write_stall=0.3, send_buffer=4_096)
    )
    engine = FakeEngineConfig(frames_per_token=1, step_seconds=0.0005)
    async with speaking(config, engine=engine) as server:
        add_route(server)
        reader = await peer(server.port, receive_buffer=4_096)
        await reader.upgrade(PATH)
        text = json.dumps({"text": "A long text. " * 40, "end": True})
        await reader.frame(1, text.encode())
        await server.settled()
        assert server.value("tts_socket_aborts_total", reason="slow_reader") == 1


# Keys.


async def test_keys_of_all_kinds_open_the_door() -> None:
    async with speaking(ServerConfig(port=0, api_keys=("sesame-open-12345",))) as server:
        add_route(server)
        for name in ("X-API-Key", "xi-api-key"):
            assert await server.status("websocket", PATH, {name: "sesame-open-12345"}) == 101
        for kind in ("Bearer", "Token"):
            given = {"Authorization": f"{kind} sesame-open-12345"}
            assert await server.status("websocket", PATH, given) == 101
        assert await server.status("websocket", PATH, {"X-API-Key": "wrong"}) == 401
        assert await server.status("websocket", PATH) == 401
        async with plain(server, subprotocols=["token", "sesame-open-12345"]) as client:
            assert client.socket.subprotocol == "token"


async def test_a_key_may_come_with_the_first_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "realtime_tts.server.app.PathRule",
        lambda *_, **__: PathRule(send_denial, frozenset({"api_key"}), late_key=True),
    )
    monkeypatch.setattr("realtime_tts.server.app.openai.AUDIO_PATHS", PATH)
    async with speaking(ServerConfig(port=0, api_keys=("sesame-open-12345",))) as server:
        async with plain(server) as client:
            await client.send(key="sesame-open-12345")
            await client.send(text="Hello.", end=True)
            await client.until("done")
        for first in ({"key": "wrong"}, {"text": "Hello."}, {"key": None, "text": "Hello."}):
            async with plain(server) as client:
                await client.send(**first)
                assert (await client.next())["error"] == "unauthorized"
                with pytest.raises(websockets.ConnectionClosed):
                    await client.next()
                assert client.socket.close_code == 1008
        assert await server.status("websocket", PATH + "?api_key=wrong") == 401
        assert await server.status("websocket", PATH + "?api_key=sesame-open-12345") == 101
        async with plain(server) as client:
            await client.socket.send(b"no key in here")
            assert [(await client.next())["error"] for _ in range(2)][1] == "unauthorized"
        monkeypatch.setattr("realtime_tts.dialects.socket._KEY_SECONDS", 0.05)
        async with plain(server) as client:
            assert (await client.next())["error"] == "unauthorized"


async def test_a_fault_in_the_words_for_a_failure_ends_the_context_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    faults = 0

    def broken(*_: Any) -> Any:
        nonlocal faults
        faults += 1
        raise ValueError("injected")

    monkeypatch.setattr(PlainSocket, "sound", broken)
    monkeypatch.setattr(PlainSocket, "failed", broken)
    async with speaking() as server, plain(server) as client:
        await client.send(text="Hello.", end=True)
        await until(lambda: faults == 2)
        await server.settled_engine()
        monkeypatch.undo()
        await client.send(text="Hello.", end=True)
        await client.until("done")


async def test_a_fault_in_the_words_for_sound_ends_the_context(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: Any) -> Any:
        raise ValueError("injected")

    monkeypatch.setattr(PlainSocket, "sound", broken)
    async with speaking() as server, plain(server) as client:
        await client.send(text="Hello.", end=True)
        assert (await client.until("error"))[-1] == {"id": "one", "error": "internal"}
        await server.settled_engine()
