"""Text that pauses, over a socket: it is spoken to its end, and the turn goes on behind it."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from realtime_tts.config import LimitsConfig, ServerConfig
from realtime_tts.engine.fake import FakeEngineConfig
from realtime_tts.engine.link import Finish, Open
from tests.server.speaking import speaking
from tests.server.talking import of_type, sound_of
from tests.waiting import SECONDS, settled, until
from tts_scheduler import SchedulerConfig

FRAME = 1_920
THREE = FakeEngineConfig(frames_per_token=3)


def samples(messages: list[Any]) -> int:
    return len(sound_of(messages)) // 2


def words(messages: list[Any]) -> str:
    told = of_type(messages, "turn.words")
    return "".join(word["text"] for message in told for word in message["words"])


async def heard(talker: Any, count: int) -> list[Any]:
    """Messages until so many samples came."""
    seen: list[Any] = []
    async with asyncio.timeout(SECONDS):
        while samples(seen) < count:
            seen.append(await talker.next())
    return seen


async def test_a_flush_is_spoken_to_its_end_and_the_turn_goes_on() -> None:
    async with speaking(engine=THREE) as server, server.talk("?lead_ms=30000&seed=7") as talker:
        commands = server.spy_on_commands()
        await talker.send("text", turn_id="a", text="Hi the")
        await talker.send("flush")
        first = await heard(talker, 3 * len("Hi the") * FRAME)
        await server.settled_engine()
        await talker.send("text", turn_id="a", text="re. ")
        await talker.send("flush")
        await talker.send("flush")
        await talker.send("text", turn_id="a", text=" You.", end=True)
        rest = await talker.until("turn.done")
        opened = [command for command in commands if isinstance(command, Open)]
        finished = [command.id for command in commands if isinstance(command, Finish)]
    assert samples(first + rest) == 3 * len("Hi there.You.") * FRAME == rest[-1]["samples"]
    assert rest[-1]["reason"] == "complete"
    assert [command.id for command in opened] == finished and len(set(finished)) == 3
    assert [command.continues for command in opened] == [False, True, True]
    assert len({command.spec.seed for command in opened}) == 3
    assert opened[0].spec.seed == 7


async def test_a_text_that_stalls_is_spoken_without_being_told_to() -> None:
    """A tool call: the engine is free meanwhile, and the wait counts as held."""
    text = "One moment. "
    async with speaking(engine=THREE) as server, server.talk("?word_times=on") as talker:
        await talker.send("text", turn_id="a", text=text)
        seen = await heard(talker, 3 * len("One moment.") * FRAME)
        await server.settled_engine()
        await asyncio.sleep(0.3)
        await talker.send("text", turn_id="a", text="Here it is.", end=True)
        seen += await talker.until("turn.done")
    assert samples(seen) == 3 * len("One moment.Here it is.") * FRAME
    assert words(seen) == text + "Here it is."
    done = seen[-1]
    assert done["reason"] == "complete" and done["held_ms"] >= 300
    assert done.get("held_inside_word", 0) == 0


async def test_a_last_word_that_may_go_on_is_spoken_when_the_turn_idles() -> None:
    """Nobody ends or flushes the text: what was known before was heard in its time."""
    config = ServerConfig(port=0, limits=LimitsConfig(turn_idle_ms=4000))
    async with speaking(config, engine=THREE) as server, server.talk("?word_times=on") as talker:
        await talker.send("text", turn_id="a", text="Hello there")
        seen = await heard(talker, 3 * len("Hello") * FRAME)
        await server.settled_engine()
        assert samples(seen) == 3 * len("Hello") * FRAME, "the last word waits"
        seen += await talker.until("turn.done")
    kinds = [m.get("code", m["type"]) for m in seen if isinstance(m, dict)]
    assert kinds.index("turn_idle") < kinds.index("turn.done")
    assert (seen[-1]["reason"], words(seen)) == ("idle", "Hello there")
    assert samples(seen) == 3 * len("Hellothere") * FRAME
    assert seen[-1].get("held_inside_word", 0) == 0


async def test_an_interrupt_at_a_seam_says_what_was_heard_and_what_was_not() -> None:
    async with speaking() as server, server.talk("?lead_ms=30000") as talker:
        await talker.send("text", turn_id="a", text="One moment. Fo")
        await heard(talker, len("One moment.") * FRAME)
        await server.settled_engine()
        played = len("One moment.") * FRAME
        await talker.send("interrupt", turn_id="a", played_samples=played)
        answer = (await talker.until("turn.interrupted"))[-1]
    assert (answer["text_spoken"], answer["text_remaining"]) == ("One moment. ", "Fo")
    assert answer["samples_sent"] == played


async def test_a_long_text_is_spoken_in_several_utterances_to_its_end() -> None:
    text = "All of this is said. " * 17 + "And this."
    engine = FakeEngineConfig(frames_per_token=1, safe_tokens=100, max_frames=150)
    for layout in ("auto", "streaming", "full_text"):
        query = f"?lead_ms=30000&word_times=on&layout={layout}"
        async with speaking(engine=engine) as server, server.talk(query) as talker:
            commands = server.spy_on_commands()
            await talker.send("text", text=text, end=True)
            seen = await talker.until("turn.done")
            opened = sum(isinstance(command, Open) for command in commands)
        assert (seen[-1]["reason"], words(seen)) == ("complete", text)
        assert opened == 5 and samples(seen) == (len(text) - 4) * FRAME, "no space at a seam"


async def test_a_turn_that_goes_on_waits_for_a_full_server() -> None:
    """Its place was free while it waited for its text."""
    scheduler = SchedulerConfig(slots=1, max_queue=0, queue_timeout=0.1)
    engine = FakeEngineConfig(slots=1, frames_per_token=1)
    async with (
        speaking(engine=engine, scheduler=scheduler) as server,
        server.talk() as talker,
        server.talk() as other,
    ):
        await talker.send("text", turn_id="a", text="Hi.")
        await talker.send("flush")
        await heard(talker, 3 * FRAME)
        await server.settled_engine()
        await other.send("text", turn_id="b", text="x" * 50, end=True)
        await other.until("turn.started")
        await talker.send("text", turn_id="a", text="You.", end=True)
        assert (await other.until("turn.done"))[-1]["reason"] == "complete"
        assert (await talker.until("turn.done"))[-1]["samples"] == 7 * FRAME


KEPT = {
    "pcm_s16le, 44100": 0.03,
    "pcm_mulaw, 8000": 0.08,
    "mp3, 24000": 0.11,
    "mp3, 8000": 0.45,
    "opus, 24000": 0.05,
    "aac, 24000": 0.13,
    "flac, 24000": 0.11,
}
"""Seconds of sound, at most, that an encoder keeps until more of it comes."""


@pytest.mark.parametrize(
    "audio",
    [
        {},
        {"encoding": "pcm_s16le", "sample_rate": 44_100},
        {"encoding": "pcm_mulaw"},
        {"encoding": "pcm_s16le", "packet_ms": 1000},
        {"encoding": "mp3"},
        {"encoding": "mp3", "sample_rate": 8000},
        {"encoding": "opus"},
        {"encoding": "opus", "container": "webm"},
        {"encoding": "aac"},
        {"encoding": "flac"},
    ],
    ids=str,
)
async def test_what_an_encoder_keeps_of_a_text_that_stalls_holds_no_commit_up(
    audio: dict[str, Any],
) -> None:
    """Nor are its known words kept with it, but for the encoder's last frame."""
    async with speaking(engine=THREE) as server, server.talk() as talker:
        await talker.send("session.start", audio=audio)
        settings = (await talker.until("ready"))[-1]["settings"]["audio"]
        commands = server.spy_on_commands()
        await talker.send("text", turn_id="a", text="One moment. Fo")
        await until(lambda: any(isinstance(command, Finish) for command in commands))
        await server.settled_engine()
        await settled(lambda: server.value("tts_packets_total"))
        await talker.send("interrupt", turn_id="a")
        answer = (await talker.until("turn.interrupted"))[-1]
    made = 3 * len("One moment.") * FRAME
    kept = KEPT.get(f"{settings['encoding']}, {settings['sample_rate']}", 0.0)
    assert made - kept * 24_000 <= answer["samples_sent"] <= made


STALLS = [
    ("Let me see. ", "Let me see.", "It is here."),
    ("Let me see if", "Let me see", " it is here."),
    ("Let me see th", "Let me see", "e list."),
    ("It is 2", "It is", "5 now."),
    ('Let me see.<break time="3', "Let me see.", '00ms"/>Here.'),
]
"""Text that stalls, what is known of it, and what comes later."""


@pytest.mark.alone
async def test_known_words_are_heard_in_their_time_however_long_the_text_stalls() -> None:
    """All of them are there 300 ms after they could have been, and the rest is lost by nobody."""

    async def heard_in_time(server: Any, before: str, known: str, behind: str) -> None:
        async with server.talk("?word_times=on") as talker:
            await talker.send("text", turn_id="a", text=before)
            first = await heard(talker, 1)
            began = time.monotonic()
            seen = first + await heard(talker, 3 * len(known) * FRAME - samples(first))
            assert time.monotonic() - began <= 3 * len(known) * 0.08 + 0.3, before
            assert samples(seen) == 3 * len(known) * FRAME, f"{before}: and no more of them"
            await asyncio.sleep(0.5)
            await talker.send("text", turn_id="a", text=behind, end=True)
            seen += await talker.until("turn.done")
        assert (seen[-1]["reason"], words(seen)) == ("complete", before + behind)
        assert seen[-1].get("held_inside_word", 0) == 0, before

    async with speaking(engine=THREE) as server, asyncio.TaskGroup() as together:
        for stall in STALLS:
            together.create_task(heard_in_time(server, *stall))
