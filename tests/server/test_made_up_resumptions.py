"""Resumptions that no server has given: each is answered by name, and nobody else notices."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from base64 import b64decode, b64encode
from collections import Counter
from random import Random
from typing import Any

import msgspec
import pytest
import websockets

from realtime_tts.config import LimitsConfig, ServerConfig
from realtime_tts.engine.fake import FakeEngineConfig
from tests.server.made_up import conversation
from tests.server.resuming import Kept, hear, spoken, whole
from tests.server.speaking import speaking
from tests.waiting import SECONDS

ON = "?resume=on&lead_ms=30000"
TEXT = 'Wait.<break time="300ms"/> Go on. The tide is coming in. It costs $2, or so: good morning!'
CONVERSATIONS = 40


async def kept_after(server: Any, packets: int) -> Kept:
    kept = Kept("a")
    async with server.talk(ON) as talker:
        await talker.send("text", turn_id="a", text=TEXT, end=True)
        await hear(talker, kept, packets)
    return kept


async def hold(server: Any, raw: list[str]) -> Counter[str]:
    """Say all that; gives the codes of errors and warnings. Every turn that began is done, once."""
    async with server.talk(ON) as talker:
        with contextlib.suppress(websockets.ConnectionClosed):
            for message in [*raw, '{"type": "session.close"}']:
                await talker.socket.send(message)
        messages = [message for message in await talker.rest() if isinstance(message, dict)]
        assert talker.socket.close_code in (1000, 1008)
    done = [message["turn_id"] for message in messages if message["type"] == "turn.done"]
    assert len(done) == len(set(done))
    assert done or not any(message["type"] == "turn.started" for message in messages)
    return Counter(message.get("code", "") for message in messages)


@pytest.mark.parametrize("aligned", [False, True])
async def test_made_up_resumptions_are_answered_by_name_and_hurt_nobody(
    aligned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    config = ServerConfig(port=0, limits=LimitsConfig(max_bad_messages=100))
    engine = FakeEngineConfig(frames_per_token=1, slots=8, aligned=aligned)
    found: Counter[str] = Counter()
    async with speaking(config, engine) as server:
        alone = await spoken(lambda: server.talk(ON + "&seed=5"), whole(TEXT))
        kept = [await kept_after(server, packets) for packets in (2, 3, 9)]
        for seed in range(CONVERSATIONS):
            chance = Random(f"{aligned} {seed}")
            async with asyncio.timeout(SECONDS):
                found += await hold(server, conversation(chance, kept, TEXT))
            if seed % 10 == 0:
                beside = await spoken(lambda: server.talk(ON + "&seed=5"), whole(TEXT))
                assert beside.audio == alone.audio
        await server.settled()
        assert not server.engine.open_utterances
        assert server.value("tts_audio_seconds_total") < 60 * CONVERSATIONS
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert {"cannot_resume", "bad_message", "turn_known"} <= set(found)
    assert not {"internal", "engine_restarted"} & set(found)


async def test_a_part_that_is_cut_where_its_text_ends_is_the_last() -> None:
    """Made up here: the next part is empty and nothing opens it, so it must not be waited for."""
    async with speaking(engine=FakeEngineConfig(frames_per_token=1)) as server:
        kept = await kept_after(server, 3)
        state = unpacked_state(kept)
        state[5], state[7] = 0, 0  # nothing was released, and a commit closed that
        kept.state = packed_state(state)
        async with server.talk(ON) as talker, asyncio.timeout(SECONDS):
            for message in kept.resume():
                await talker.socket.send(json.dumps(message))
            await talker.send("turn.end", turn_id="a")
            assert (await talker.until("turn.done"))[-1]["reason"] == "complete"


async def test_speech_that_was_heard_elsewhere_is_not_counted_here() -> None:
    async with speaking(engine=FakeEngineConfig(frames_per_token=1)) as server:
        kept = await kept_after(server, 3)
        await server.settled()
        before = {name: server.value(name) for name in COUNTED}
        async with server.talk(ON) as talker:
            for message in kept.resume():
                await talker.socket.send(json.dumps(message))
            await talker.send("text", turn_id="a", text=TEXT, end=True)
            done = (await talker.until("turn.done"))[-1]
            # And one that never gets on the air, of a client that says what it likes.
            await talker.send("text", turn_id="b", text=TEXT)
            await talker.send("turn.resume", turn_id="c", samples=2**53, text_chars=0)
            await talker.send("interrupt", turn_id="c")
            await talker.until("turn.done")
            await talker.send("interrupt")
            rest = (await talker.until("turn.done"))[-1]
        here = done["samples"] - kept.samples + rest["samples"]
        now = {name: server.value(name) - before[name] for name in COUNTED}
    assert now["tts_audio_seconds_total"] == pytest.approx(here / 24_000)
    assert now["tts_ttfa_seconds_count"] <= 1, "the first sound of the other turn"
    assert now["tts_packets_total"] > 0


COUNTED = ("tts_audio_seconds_total", "tts_ttfa_seconds_count", "tts_packets_total")


def unpacked_state(kept: Kept) -> list[Any]:
    state: list[Any] = msgspec.msgpack.decode(b64decode(kept.state))
    return state


def packed_state(state: list[Any]) -> str:
    return b64encode(msgspec.msgpack.encode(state)).decode()
