"""Deepgram's `/v1/speak` over a WebSocket, and what both of its sockets refuse."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest
import websockets

from realtime_tts.config import LimitsConfig, ServerConfig
from tests.dialects.asking import SLOW
from tests.dialects.deepgrams import LIVEKIT, aura, flux, types_of
from tests.dialects.tones import FRAME
from tests.engine.faulty import Faults
from tests.server.speaking import speaking
from tests.server.talking import BROWSER, denied, sound_of

PIPECAT = "?model=aura-2-helena-en&encoding=linear16&sample_rate=24000&mip_opt_out=true"
LONG = "A long answer that nobody wants to hear. " * 8


async def test_a_socket_is_greeted_with_metadata() -> None:
    async with speaking() as server, aura(server, PIPECAT) as client:
        greeting = client.greeting
        assert greeting["type"] == "Metadata" and greeting["model_name"] == "aura-2-helena-en"
        assert uuid.UUID(greeting["request_id"]) and uuid.UUID(greeting["model_uuid"])
        assert greeting["model_version"]


async def test_three_turns_are_flushed_one_by_one() -> None:
    async with speaking() as server, aura(server) as client:
        texts = ("This is one.", "This is the second.", "And three.")
        for text in texts:
            await client.say(text)
        for number, text in enumerate(texts):
            seen = await client.until("Flushed")
            assert seen[-1]["sequence_id"] == number
            assert len(sound_of(seen)) == len(text) * FRAME


async def test_what_livekit_sends() -> None:
    """A word a message, the next turn over the pooled socket, then `Flush` and `Close`."""
    async with speaking() as server, aura(server, LIVEKIT) as client:
        for sentence in ("Your table is free.", "Come at eight."):
            await client.say(*(f"{word} " for word in sentence.split()))
            assert len(sound_of(await client.until("Flushed"))) == len(sentence + " ") * FRAME
        await client.send("Flush")
        await client.send("Close")
        assert types_of(await client.rest()) == ["Flushed"]
        assert client.socket.close_code == 1000
        await server.settled()


async def test_an_abandoned_livekit_socket_stops_when_it_is_closed() -> None:
    async with speaking(engine=SLOW) as server:
        async with aura(server, LIVEKIT) as client:
            await client.say(*(f"{word} " for word in LONG.split()), flush=False)
            await client.until("sound")
            await client.send("Flush")
            await client.send("Close")
            await client.next()
        await server.settled()
        assert server.value("tts_turns_total", reason="closed") == 1


async def test_what_pipecat_sends() -> None:
    """Whole sentences with a space behind them; `Clear` when somebody speaks; then `Close`."""
    headers = {"Authorization": "Token none"}
    async with speaking(engine=SLOW) as server:
        async with aura(server, PIPECAT, additional_headers=headers) as client:
            await client.say(LONG, "Do you? ", flush=False)
            await client.until("sound")
            await client.send("Clear")
            cleared = await client.until("Cleared")
            assert cleared[-1] == {"type": "Cleared", "sequence_id": 0}
            await client.say("It is warm. ", "Come in. ")
            seen = await client.until("Flushed")
            assert len(sound_of(seen)) == len("It is warm. Come in. ") * FRAME
            await client.send("Close")
        await server.settled()
        assert server.value("tts_turns_total", reason="interrupted") == 1


async def test_clear_takes_back_turns_that_wait() -> None:
    async with speaking() as server, aura(server) as client:
        for _ in range(30):
            await client.say("Once more.", "From the top.")
            await client.send("Clear")
        await client.say("Last.")
        seen = await client.until("Cleared")
        for _ in range(29):
            seen += await client.until("Cleared")
        assert [one["sequence_id"] for one in seen if isinstance(one, dict)][-1] == 29
        assert len(sound_of(await client.until("Flushed"))) == len("Last.") * FRAME
        await server.settled_engine()


async def test_close_speaks_what_there_is_first() -> None:
    async with speaking() as server, aura(server) as client:
        await client.say("First.")
        await client.say("And this without a flush.", flush=False)
        await client.send("Close")
        await client.say("Nobody hears this.")
        seen = await client.rest()
        assert len(sound_of(seen)) == len("First.And this without a flush.") * FRAME
        assert types_of(seen) == ["sound", "Flushed", "sound"]
        assert client.socket.close_code == 1000


async def test_clear_after_close_ends_it() -> None:
    async with speaking(engine=SLOW) as server, aura(server) as client:
        await client.say(LONG)
        await client.until("sound")
        await client.send("Close")
        await client.send("Clear")
        assert types_of(await client.rest())[-1] == "Cleared"
        assert client.socket.close_code == 1000


async def test_text_that_waits_is_spoken_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("realtime_tts.dialects.socket.SpeechSocket.hold_seconds", 0.2)
    async with speaking() as server, aura(server) as client:
        await client.say("Let me look that up", flush=False)
        heard = b""
        while len(heard) < len("Let me look that up") * FRAME:
            heard += sound_of(await client.until("sound"))
        await client.say(" and here it is.")
        seen = await client.until("Flushed")
        assert len(sound_of(seen)) == len("and here it is.") * FRAME


# Formats.


@pytest.mark.parametrize("path", ["/v1", "/v2"])
@pytest.mark.parametrize(
    ("query", "bytes_a_second"),
    [
        ("", 48_000),
        ("encoding=linear16&sample_rate=8000&container=none", 16_000),
        ("encoding=linear16&sample_rate=48000", 96_000),
        ("encoding=mulaw", 8_000),
        ("encoding=mulaw&sample_rate=16000", 16_000),
        ("encoding=alaw&sample_rate=8000&bit_rate=", 8_000),
    ],
)
async def test_formats_last_as_long_as_they_should(
    path: str, query: str, bytes_a_second: int
) -> None:
    connect = aura if path == "/v1" else flux
    last = "Flushed" if path == "/v1" else "SpeechMetadata"
    async with speaking() as server, connect(server, f"?{query}") as client:
        for text in ("The first turn.", "One more."):
            await client.say(text)
            sound = sound_of(await client.until(last))
            assert len(sound) == pytest.approx(len(text) * 0.08 * bytes_a_second, abs=2)


# What cannot be had is refused before the upgrade.


@pytest.mark.parametrize("path", ["/v1/speak", "/v2/speak"])
@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("encoding=mp3", "HTTP"),
        ("encoding=pcm99", "linear16"),
        ("container=wav", "container"),
        ("sample_rate=7", "7"),
        ("sample_rate=fast", "whole number"),
        ("sample_rate=" + "9" * 400, "whole number"),
        ("speed=quick", "speed"),
        ("speed=nan", "speed"),
        ("speed=-inf", "speed"),
        ("model=nobody", "alto"),
        ("model=nova-3%0d%0aX-Evil:%20yes", "alto"),
        ("model=%F0%9F%A6%8A", "alto"),
    ],
)
async def test_an_address_that_cannot_be_is_refused(path: str, query: str, names: str) -> None:
    async with speaking() as server:
        url = f"ws://127.0.0.1:{server.port}{path}?{query}"
        response = await denied(websockets.connect(url))
        assert response.status_code == 400
        assert names in response.headers["dg-error"] and "X-Evil" not in response.headers
        body = json.loads(response.body or b"")
        assert body["err_code"] == "Bad Request" and names in body["err_msg"]
        # Browsers cannot see that.
        origin = websockets.Origin(server.running.url)
        assert (await denied(websockets.connect(url, origin=origin))).status_code == 400
        async with websockets.connect(url, origin=origin, user_agent_header=BROWSER) as socket:
            with pytest.raises(websockets.ConnectionClosed):
                await socket.recv()
            assert socket.close_code == 1008 and socket.close_reason
        assert server.running.front.sessions == 0


async def test_what_the_original_has_is_accepted() -> None:
    query = "?model=AURA-2-Bass-de&speed=1.0&expressivity=2&tag=a&tag=b&unheard_of=1&encoding="
    async with speaking() as server:
        for connect, last in ((aura, "Flushed"), (flux, "SpeechMetadata")):
            async with connect(server, query) as client:
                await client.send("Speak", text="Hello.", voice=None, unheard_of={"a": None})
                await client.send("Flush", speech_id=None)
                assert len(sound_of(await client.until(last))) == len("Hello.") * FRAME


# What cannot be taken ends the socket, and no other.


@pytest.mark.parametrize("connect", [aura, flux])
@pytest.mark.parametrize(
    ("raw", "code", "close"),
    [
        ("", "MESSAGE-0000", 1003),
        ("}{", "MESSAGE-0000", 1003),
        ("[1]", "MESSAGE-0000", 1003),
        ("[" * 9_999, "MESSAGE-0000", 1003),
        (b"\xff\xfe", "MESSAGE-0000", 1003),
        ('{"type": "Speak"}', "MESSAGE-0000", 1003),
        ('{"type": "Speak", "text": 7}', "MESSAGE-0000", 1003),
        ('{"type": "Speak", "text": null}', "MESSAGE-0000", 1003),
        ("{}", "DATA-0000", 1008),
        ('{"type": ["Speak"]}', "DATA-0000", 1008),
        ('{"type": "speak", "text": "\\ud800"}', "DATA-0000", 1008),
        (json.dumps({"type": "Speak", "text": "a" * 20_000}), "BIG-0000", 1009),
    ],
)
async def test_what_cannot_be_taken_ends_the_socket(
    connect: Any, raw: str | bytes, code: str, close: int
) -> None:
    async with speaking(engine=SLOW) as server, aura(server) as other:
        await other.say("Hello ", flush=False)
        async with connect(server, "") as client:
            await client.say("Hello ", flush=False)
            await client.socket.send(raw)
            error, found, reason = await client.refused()
            assert (error["code"], found, reason) == (code, close, code)
            assert error["description"] and error["reason"]
        await other.say("there.")
        await other.until("Flushed")
        assert server.running.front.sessions == 1


async def test_half_characters_are_spoken_over() -> None:
    async with speaking() as server, aura(server) as client:
        await client.socket.send('{"type": "Speak", "text": "Half \\ud83d of it."}')
        await client.send("Flush")
        assert sound_of(await client.until("Flushed"))


async def test_floods_end_the_socket() -> None:
    limits = LimitsConfig(message_burst=50, messages_per_second=50)
    async with speaking(ServerConfig(port=0, limits=limits)) as server, flux(server) as client:
        for _ in range(200):
            await client.send("Flush")
        error, close, _ = await client.refused()
        assert (error["reason"], close) == ("rate_limited", 1008)
        await server.settled()


async def test_a_flush_too_many_is_left_out_with_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("realtime_tts.dialects.context._MAX_SEGMENTS", 1)
    text = "That answer takes its time. " * 2  # 4.5 s, of which 3 s are sent ahead
    async with speaking(engine=SLOW) as server, aura(server) as client:
        await client.say(text)
        await client.send("Flush")
        warning = (seen := await client.until("Warning"))[-1]
        assert warning["code"] == "EXCESSIVE_FLUSH" and "1 flushes" in warning["description"]
        seen += await client.until("Flushed")
        assert len(sound_of(seen)) == len(text) * FRAME
        await client.say("Next.")
        seen = await client.until("Flushed")
        assert seen[-1]["sequence_id"] == 1 and len(sound_of(seen)) == len("Next.") * FRAME


# Overload, failure, end.


@pytest.mark.parametrize("connect", [aura, flux])
async def test_a_failure_of_the_engine_ends_the_socket(connect: Any) -> None:
    faults = Faults()
    async with speaking(engine=SLOW, faults=faults) as server, connect(server, "") as client:
        await client.say("A text that will fail in the middle. ", flush=False)
        await client.until("sound")
        faults.numerics.update(server.engine._rows)
        error, close, reason = await client.refused()
        assert (error["code"], close, reason) == ("NET-0000", 1011, "NET-0000")
        await server.settled()


async def test_a_drain_lets_speech_finish() -> None:
    async with speaking() as server, aura(server) as client:
        await client.say("To the end of it.")
        await client.until("sound")
        server.running.front.drain()
        assert types_of(await client.rest())[-1] == "Flushed"
        assert client.socket.close_code == 1001


# Keys.

KEY = "sesame-open-12345"


@pytest.mark.parametrize("connect", [aura, flux])
async def test_keys_in_headers_and_subprotocols(connect: Any) -> None:
    async with speaking(ServerConfig(port=0, api_keys=(KEY,))) as server:
        for kind in ("Token", "token", "Bearer"):
            headers = {"Authorization": f"{kind} {KEY}"}
            async with connect(server, "", additional_headers=headers) as client:
                await client.say("Yes.")
                await client.until("Flushed")
        for kind in ("token", "bearer"):
            async with connect(server, "", subprotocols=[kind, KEY]) as client:
                assert client.socket.subprotocol == kind
                await client.say("Yes.")
                await client.until("Flushed")
        for wrong in ({}, {"additional_headers": {"Authorization": "Token wrong"}}):
            response = await denied(connect(server, f"?token={KEY}", **wrong))
            assert response.status_code == 401 and "key" in response.headers["dg-error"]
            assert json.loads(response.body or b"")["err_code"] == "INVALID_AUTH"
