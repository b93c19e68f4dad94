"""ElevenLabs' socket of many texts, with the messages of Pipecat 1.14 and LiveKit agents 1.8."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from realtime_tts.config import LimitsConfig, ServerConfig
from tests.dialects.asking import SLOW, used_up
from tests.dialects.elevens import Client, alignments, eleven, sound_of
from tests.dialects.tones import FRAME
from tests.engine.faulty import Faults
from tests.server.speaking import speaking

TEXT = "Hello there, how are you?"
LONG = "A long answer that nobody wants to hear. " * 5
LIVEKIT = (
    "&enable_ssml_parsing=false&enable_logging=true&inactivity_timeout=180"
    "&apply_text_normalization=auto&sync_alignment=true&auto_mode=true"
)
PIPECAT = "&auto_mode=true"


async def livekit_begins(client: Client, context_id: str) -> None:
    await client.send(text=" ", voice_settings={}, context_id=context_id)


async def livekit_ends(client: Client, context_id: str) -> None:
    await client.send(text="", context_id=context_id, flush=True)
    await client.send(context_id=context_id, close_context=True)


async def test_a_turn_of_livekit() -> None:
    async with speaking() as server, eleven(server, LIVEKIT) as client:
        await livekit_begins(client, "a")
        for sentence in ("Hello there. ", "How are you? "):
            await client.send(text=sentence, context_id="a", flush=True)
        await livekit_ends(client, "a")
        seen = await client.until("isFinal")
        assert {message["contextId"] for message in seen} == {"a"}
        assert {message["context_id"] for message in seen} == {"a"}
        assert len(sound_of(seen)) >= len("Hello there.How are you?") * FRAME
        chars = "".join(char for one in alignments(seen) for char in one["chars"])
        assert chars.split() == ["Hello", "there.", "How", "are", "you?"]
        starts = [start for one in alignments(seen) for start in one["charStartTimesMs"]]
        assert starts == sorted(starts)  # from the context's first sound, as LiveKit reads them
        assert 0.7 < starts[-1] / (len(sound_of(seen)) / 48) <= 1
        assert not seen[-1]["audio"]
        await server.settled_engine()


async def test_a_turn_of_livekit_without_text_has_an_end() -> None:
    async with speaking() as server, eleven(server, LIVEKIT) as client:
        await livekit_begins(client, "a")
        await livekit_ends(client, "a")
        (only,) = await client.until("isFinal", "a")
        assert not only["audio"]


async def test_a_barge_in_of_livekit_is_silence_at_once() -> None:
    async with speaking(engine=SLOW) as server, eleven(server, LIVEKIT) as client:
        await livekit_begins(client, "old")
        await client.send(text=LONG, context_id="old", flush=True)
        await client.until("audio", "old")
        await client.send(context_id="old", close_context=True)
        await livekit_begins(client, "new")
        await client.send(text="New. ", context_id="new", flush=True)
        await livekit_ends(client, "new")
        seen = await client.until("isFinal", "new")
        finals = [n for n, m in enumerate(seen) if m["isFinal"] and m["contextId"] == "old"]
        assert len(finals) == 1
        assert not sound_of(seen[finals[0] :], "old")
        assert len(sound_of(seen, "new")) >= len("New.") * FRAME
        assert server.value("tts_turns_total", reason="interrupted") == 1
        await server.settled_engine()


async def test_turns_of_pipecat() -> None:
    """Whole sentences without the space between them, keep-alives, and the way it leaves."""
    async with speaking() as server, eleven(server, PIPECAT) as client:
        commands = server.spy_on_commands()
        await client.send(text="")
        for turn in ("one", "two", "three"):
            await client.send(text=" ", context_id=turn, voice_settings={"stability": 0.5})
            await client.send(text="Your table is free.", context_id=turn)
            await client.send(text="", context_id=turn)
            await client.send(text="Come at eight.", context_id=turn)
            await client.send(context_id=turn, flush=True)
            await client.send(context_id=turn, close_context=True)
            seen = await client.until("isFinal")
            assert {message["contextId"] for message in seen} == {turn}
            text = "Your table is free. Come at eight."
            assert len(sound_of(seen)) == len(text) * FRAME
        ids = [id for command in commands for id in getattr(command, "ids", ())]
        assert len(ids) == 3 * len(text)
        await client.send(close_socket=True)
        await client.rest()
        assert client.socket.close_code == 1000
        await server.settled()


async def test_a_barge_in_of_pipecat_after_the_end_of_the_text() -> None:
    async with speaking(engine=SLOW) as server, eleven(server, PIPECAT) as client:
        await client.send(text=" ", context_id="a")
        await client.send(text=LONG, context_id="a")
        await client.send(context_id="a", flush=True)
        await client.send(context_id="a", close_context=True)
        await client.until("audio")
        await client.send(context_id="a", close_context=True)
        seen = await client.until("isFinal")
        assert len(sound_of(seen)) < len(LONG) * FRAME
        await server.settled_engine()


async def test_tokens_of_pipecat_are_joined_as_they_come() -> None:
    async with speaking() as server, eleven(server, "&auto_mode=false") as client:
        await client.send(text=" ", context_id="a")
        for token in ("I can h", "el", "p, surely", "."):
            await client.send(text=token, context_id="a")
        await client.send(context_id="a", flush=True)
        await client.send(context_id="a", close_context=True)
        seen = await client.until("isFinal")
        assert len(sound_of(seen)) == len("I can help, surely.") * FRAME


@pytest.mark.parametrize(
    ("closing", "whole"), [("drain", True), ("cancel", False), ("auto", False)]
)
async def test_what_a_close_means_can_be_said(closing: str, whole: bool) -> None:
    async with speaking(engine=SLOW) as server:
        async with eleven(server, f"&close_context={closing}") as client:
            await client.send(text=TEXT, context_id="a")
            if closing == "cancel":
                await client.send(context_id="a", flush=True)
            await client.send(context_id="a", close_context=True)
            seen = await client.until("isFinal")
            assert (len(sound_of(seen)) == len(TEXT) * FRAME) is whole


async def test_a_close_may_bring_the_end_of_the_text() -> None:
    async with speaking(engine=SLOW) as server, eleven(server) as client:
        await client.send(text="Hello ", context_id="a")
        await client.send(text="there.", context_id="a", close_context=True)
        seen = await client.until("isFinal", "a")
        assert len(sound_of(seen)) == len("Hello there.") * FRAME
        await client.send(text="Alone.", context_id="b", close_context=True)
        assert len(sound_of(await client.until("isFinal", "b"))) == len("Alone.") * FRAME


async def test_leaving_waits_for_what_was_flushed() -> None:
    async with speaking(engine=SLOW) as server, eleven(server) as client:
        await client.send(text=TEXT, context_id="heard")
        await client.send(context_id="heard", flush=True)
        await client.send(text=TEXT, context_id="in one", flush=True)
        await client.send(text=LONG, context_id="dropped")
        before = await client.until("audio", "dropped")
        await client.send(close_socket=True)
        await client.send(text="Too late.", context_id="late")
        seen = await client.rest()
        finals = [message["contextId"] for message in seen if message["isFinal"]]
        assert sorted(finals) == ["dropped", "heard", "in one"] and finals[0] == "dropped"
        assert len(sound_of(before + seen, "in one")) == len(TEXT) * FRAME
        assert not sound_of(seen, "late")
        assert client.socket.close_code == 1000


async def test_contexts_at_once() -> None:
    async with speaking() as server, eleven(server) as client:
        names = [f"c{number}" for number in range(20)]
        for name in names:
            await client.send(text=f"Hello from {name}.", context_id=name)
            await client.send(context_id=name, flush=True)
            await client.send(context_id=name, close_context=True)
        seen: list[dict[str, Any]] = []
        for _ in names:
            seen += await client.until("isFinal")
        for name in names:
            assert len(sound_of(seen, name)) == len(f"Hello from {name}.") * FRAME


async def test_messages_without_an_id_are_of_one_context() -> None:
    async with speaking() as server, eleven(server) as client:
        await client.send(text="Hello ")
        await client.send(text="there.", flush=True)
        await client.send(flush=True)
        await client.send(close_context=True)
        seen = await client.until("isFinal")
        assert {message["contextId"] for message in seen} == {"default"}
        assert len(sound_of(seen)) == len("Hello there.") * FRAME


async def test_the_other_spelling_of_ids() -> None:
    async with speaking() as server, eleven(server) as client:
        await client.send(text="Hello.", contextId="x", context_id=None)
        await client.send(contextId="x", flush=True)
        await client.send(contextId="x", close_context=True)
        assert sound_of(await client.until("isFinal", "x"))


async def test_the_other_spelling_of_the_end() -> None:
    async with speaking() as server, eleven(server) as client:
        await client.send(text="Hello.", context_id="x", flush=True)
        await client.send(context_id="x", flush=True)
        await client.send(context_id="x", close_context=True)
        *before, last = await client.until("is_final", "x")
        assert last["isFinal"] is last["is_final"] is True
        assert sound_of(before) and not any(message["is_final"] for message in before)


async def test_a_pause_speaks_what_there_is() -> None:
    async with speaking() as server, eleven(server, "&auto_mode=true") as client:
        await client.send(text="Let me look that up", context_id="a")
        heard = b""
        while len(heard) < len("Let me look that up") * FRAME:
            heard += sound_of([await client.next()])


async def test_an_id_may_begin_again() -> None:
    async with speaking() as server, eleven(server) as client:
        for _ in range(30):
            await client.send(text="Once more, from the top. ", context_id="a")
            await client.send(context_id="a", close_context=True)
            await client.until("isFinal", "a")
        await server.settled_engine()


async def test_contexts_that_nobody_ends_end() -> None:
    limits = LimitsConfig(turn_idle_ms=100)
    async with speaking(ServerConfig(port=0, limits=limits)) as server, eleven(server) as client:
        for number in range(20):
            await client.send(text=" ", context_id=f"c{number}")
        for _ in range(20):
            await client.until("isFinal")
        assert server.running.front.sessions == 1


# What cannot be taken.


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        ({"text": 5}, "text"),
        ({"text": "a" * 20_000}, "16384"),
        ({"flush": "yes"}, "flush"),
        ({"close_context": 1}, "close_context"),
        ({"context_id": ""}, "context_id"),
        ({"context_id": "x" * 600}, "context_id"),
        ({"context_id": ["\ud800"]}, "context_id"),
        ({"context_id": {"a": 1}}, "context_id"),
    ],
)
async def test_what_is_wrong_is_said_and_the_socket_goes_on(
    fields: dict[str, Any], names: str
) -> None:
    async with speaking() as server, eleven(server) as client:
        await client.send(**({"text": "Hello.", "context_id": "a"} | fields))
        error = (await client.until("error"))[-1]
        assert names in error["message"]
        if fields.get("context_id") is None:
            assert error["contextId"] == error["context_id"] == "a"
        await client.send(text="Fine.", context_id="b")
        await client.send(context_id="b", flush=True)
        await client.send(context_id="b", close_context=True)
        assert sound_of(await client.until("isFinal", "b"), "b")


async def test_text_for_a_closed_context_is_refused() -> None:
    async with speaking(engine=SLOW) as server, eleven(server) as client:
        await client.send(text=TEXT, context_id="a")
        await client.send(context_id="a", flush=True)
        await client.send(context_id="a", close_context=True)
        await client.send(text="More.", context_id="a")
        seen = await client.up_to(lambda found: found.get("isFinal"), past_errors=True)
        assert any("was ended" in message.get("message", "") for message in seen)
        assert len(sound_of(seen)) == len(TEXT) * FRAME


async def test_a_closed_context_may_be_kept_alive_while_it_is_spoken() -> None:
    """As Pipecat does every ten seconds, also of a reply whose text is complete."""
    config = ServerConfig(port=0, limits=LimitsConfig(max_bad_messages=2))
    async with speaking(config, engine=SLOW) as server, eleven(server) as client:
        await client.send(text=TEXT, context_id="a")
        await client.send(context_id="a", flush=True)
        await client.send(context_id="a", close_context=True)
        for _ in range(4):
            await client.send(text="", context_id="a")
        seen = await client.until("isFinal")
        assert len(sound_of(seen)) == len(TEXT) * FRAME


async def test_what_there_is_not_is_passed_over() -> None:
    async with speaking() as server, eleven(server) as client:
        for message in (
            {"close_context": True},
            {"flush": True},
            {"text": "", "context_id": "a"},
            {"text": "", "flush": True, "context_id": "a"},
            {"context_id": "b"},
            {},
        ):
            await client.send(**message)
        await client.send(text="Hello.", context_id="a")
        (await client.until("audio"))
        assert server.running.front.sessions == 1


async def test_halves_of_characters() -> None:
    async with speaking() as server, eleven(server) as client:
        for name in ("a", "\ud800"):
            await client.send(text="Well \ud83d there.", context_id=name)
            await client.send(context_id=name, flush=True)
            await client.send(context_id=name, close_context=True)
            seen = await client.until("isFinal", name)
            assert sound_of(seen) and not any("error" in message for message in seen)


# Overload, failure, end.


async def test_no_place_for_a_context_loses_its_text_and_nothing_else() -> None:
    config = ServerConfig(port=0, limits=LimitsConfig(max_sessions=1))
    async with speaking(config) as server, eleven(server) as client:
        await client.send(text="Hello ", context_id="a")
        await client.send(text=" ", context_id="b")
        error = (await client.until("error"))[-1]
        assert (error["contextId"], error["code"], error["isFinal"]) == ("b", 1013, True)
        assert error["error"] == "too_many_concurrent_requests"
        await client.send(text="Lost.", context_id="b")  # the rest of what was refused
        await client.send(text="there.", context_id="a")
        await client.send(context_id="a", flush=True)
        await client.send(context_id="a", close_context=True)
        seen = await client.until("isFinal", "a")
        assert not any("error" in message for message in seen)
        await client.send(text=" ", context_id="b")  # begins anew
        await client.send(text="Found.", context_id="b")
        assert len(sound_of(await client.until("audio", "b"))) > 0


@pytest.mark.parametrize(("middle", "close"), [("and the middle ", 1013), ("a" * 20_000, 1008)])
async def test_a_context_has_no_hole_where_a_text_was_refused(middle: str, close: int) -> None:
    async with speaking(engine=SLOW) as server, eleven(server) as client:
        await client.send(text=" ", context_id="a")
        await client.send(text="The beginning ", context_id="a")
        await client.until("audio", "a")
        with used_up():
            await client.send(text=middle, context_id="a")
            error = (await client.until("error"))[-1]
        assert (error["contextId"], error["code"], error.get("isFinal")) == ("a", close, True)
        await client.send(text="and the end.", context_id="a", flush=True)
        await client.send(context_id="a", close_context=True)
        await client.send(text="Next.", context_id="a")
        await client.send(context_id="a", flush=True)
        await client.send(context_id="a", close_context=True)
        assert len(sound_of(await client.until("isFinal"))) == len("Next.") * FRAME
        await server.settled_engine()


async def test_a_flush_that_is_refused_leaves_its_context(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("realtime_tts.dialects.context._MAX_SEGMENTS", 1)
    async with speaking(engine=SLOW) as server, eleven(server) as client:
        await client.send(text=TEXT, context_id="a", flush=True)
        await client.send(context_id="a", flush=True)
        seen = await client.up_to(lambda found: "error" in found, past_errors=True)
        assert "1 flushes" in seen[-1]["message"] and "isFinal" not in seen[-1]
        while len(sound_of(seen)) < len(TEXT) * FRAME:
            seen.append(await client.next())
        await client.send(text="The end.", context_id="a", flush=True)
        seen += await client.until("audio")
        await client.send(context_id="a", close_context=True)


async def test_too_many_contexts_of_one_socket() -> None:
    async with speaking() as server, eleven(server) as client:
        for number in range(65):
            await client.send(text=" ", context_id=f"c{number}")
        error = (await client.until("error"))[-1]
        assert (error["error"], error["contextId"]) == ("max_active_conversations", "c64")


async def test_a_failure_of_the_engine_is_the_end_of_its_context() -> None:
    faults = Faults()
    async with speaking(engine=SLOW, faults=faults) as server, eleven(server) as client:
        await client.send(text="A text that will fail in the middle. ", context_id="bad")
        await client.until("audio", "bad")
        faults.numerics.update(server.engine._rows)
        error = (await client.until("error"))[-1]
        assert (error["contextId"], error["isFinal"]) == ("bad", True)
        await client.send(text="the rest of it", context_id="bad")
        await client.send(text="Well.", context_id="good")
        await client.send(context_id="good", flush=True)
        await client.send(context_id="good", close_context=True)
        seen = await client.until("isFinal", "good")
        assert not sound_of(seen, "bad") and sound_of(seen, "good")


async def test_a_drain_lets_contexts_finish() -> None:
    async with speaking(engine=SLOW) as server, eleven(server) as client:
        await client.send(text=TEXT, context_id="a")
        await client.until("audio")
        server.running.front.drain()
        await client.send(text="No.", context_id="b")
        await client.send(context_id="a", flush=True)
        await client.send(context_id="a", close_context=True)
        seen = await client.rest()
        assert [m["contextId"] for m in seen if m.get("error") == "going_away"] == ["b"]
        assert any(m["isFinal"] and m["contextId"] == "a" for m in seen if "isFinal" in m)
        assert client.socket.close_code == 1001


async def test_a_socket_may_be_idle_for_as_long_as_its_address_says() -> None:
    """LiveKit's plugin leaves its socket open when its options change, and asks for 180 s."""
    async with speaking() as server, eleven(server, "&inactivity_timeout=1") as client:
        await client.send(text="Hi.", context_id="a")
        await client.send(context_id="a", close_context=True, flush=True)
        await client.until("isFinal")
        heard = time.monotonic()
        assert await client.rest() == [] and client.socket.close_code == 1000
        assert 0.5 < time.monotonic() - heard < 10


@pytest.mark.parametrize("asked", ["0", "181", "soon", "-1", "9" * 400])
async def test_a_time_that_is_none_is_ignored(asked: str) -> None:
    async with speaking() as server, eleven(server, f"&inactivity_timeout={asked}") as client:
        await client.send(text="Hi.", context_id="a")
        await client.send(context_id="a", close_context=True, flush=True)
        await client.until("isFinal")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(client.socket.recv(), 0.3)
