"""`speed`: a turn is as long as it should be, and all that is counted is what is played."""

from __future__ import annotations

import time
from math import ceil
from typing import Any

import numpy as np
import pytest

from realtime_tts.engine.fake import FakeEngineConfig
from tests.engine.faulty import Faults
from tests.server.speaking import speaking
from tests.server.talking import sound_of
from tests.server.test_connection import explode_once
from tests.server.test_word_times import assert_in_time, joined, words_in

RATE = 24_000
FRAME = 1_920
TEXT = "The tide is coming in. Good morning to you, and to all who are with you!"
PAUSES = 'Wait a bit.<break time="500ms"/> Go on, please.'
TELLS = FakeEngineConfig(aligned=True)
SPEEDS = (0.7, 0.9, 1.25, 1.4)


async def said(server: Any, query: str, text: str = TEXT, size: int = 1000) -> list[Any]:
    async with server.talk("?lead_ms=30000" + query) as talker:
        for at in range(0, len(text), size):
            await talker.send("text", turn_id="a", text=text[at : at + size])
        await talker.send("turn.end", turn_id="a")
        messages: list[Any] = await talker.until("turn.done")
        return messages


@pytest.mark.parametrize("speed", SPEEDS)
async def test_a_turn_takes_its_time_divided_by_the_speed(speed: float) -> None:
    async with speaking() as server:
        plain, changed = await said(server, ""), await said(server, f"&speed={speed}")
    samples = len(sound_of(plain)) // 2
    assert len(sound_of(changed)) // 2 == ceil(samples / speed) == changed[-1]["samples"]
    assert changed[-1]["reason"] == "complete"


async def test_at_a_speed_of_one_nothing_is_touched() -> None:
    async with speaking() as server:
        assert sound_of(await said(server, "&speed=1")) == sound_of(await said(server, ""))


@pytest.mark.parametrize("speed", SPEEDS)
async def test_pauses_are_as_long_as_the_text_says(speed: float) -> None:
    async with speaking() as server:
        plain = sound_of(await said(server, "", PAUSES))
        changed = sound_of(await said(server, f"&speed={speed}", PAUSES))

    def longest_silence(pcm: bytes) -> float:
        heard = np.flatnonzero(np.frombuffer(pcm, "<i2"))
        return float(np.diff(heard).max()) / RATE

    assert longest_silence(plain) == pytest.approx(0.5, abs=0.01)
    assert longest_silence(changed) == pytest.approx(0.5, abs=0.01)


async def test_other_formats_are_made_of_what_is_played() -> None:
    async with speaking() as server:
        plain = await said(server, "&encoding=pcm_mulaw")
        changed = await said(server, "&encoding=pcm_mulaw&speed=1.25")
    assert len(sound_of(changed)) == pytest.approx(len(sound_of(plain)) / 1.25, abs=1)


@pytest.mark.parametrize("speed", SPEEDS)
@pytest.mark.parametrize("size", [7, 1000])
async def test_words_are_told_when_they_are_heard(speed: float, size: int) -> None:
    async with speaking(engine=TELLS) as server:
        asked = "&word_times=on&trim_silence=off"
        plain = await said(server, asked, size=size)
        changed = await said(server, f"{asked}&speed={speed}", size=size)
    assert joined(changed) == TEXT
    assert_in_time(changed)
    for one, other in zip(words_in(plain), words_in(changed), strict=True):
        assert other["start_ms"] == pytest.approx(one["start_ms"] / speed, abs=0.3)


@pytest.mark.parametrize("speed", SPEEDS)
async def test_an_interrupt_knows_what_was_heard(speed: float) -> None:
    """The position that the client tells is one of the sound that it was sent."""
    async with speaking(engine=TELLS) as server:
        query = f"?lead_ms=30000&trim_silence=off&speed={speed}"
        async with server.talk(query) as talker:
            await talker.send("text", turn_id="a", text=TEXT, end=True)
            await talker.until("turn.done")
            coming = TEXT.index("coming") * 240 / speed
            await talker.send("interrupt", turn_id="a", played_ms=coming + 10)
            told = (await talker.until("turn.interrupted"))[-1]
    assert told["text_spoken"].strip() == "The tide is"
    assert told["played_ms"] == pytest.approx(coming + 10, abs=0.1)


@pytest.mark.alone
async def test_a_listener_of_fast_speech_hears_no_gap() -> None:
    """The engine makes no more than the lead, and knows that it is played faster than made."""
    engine = FakeEngineConfig(frames_per_token=1, step_seconds=0.03)
    async with speaking(engine=engine) as server:
        async with server.talk("?speed=1.4&lead_ms=400") as talker:
            await talker.send("text", turn_id="a", text=TEXT, end=True)
            messages = await talker.until("turn.done")
    assert messages[-1]["underruns"] == 0
    assert len(sound_of(messages)) // 2 == pytest.approx(len(TEXT) * FRAME / 1.4, abs=1)


@pytest.mark.parametrize("speed", [0.7, 1.4])
async def test_the_lead_is_seconds_of_what_is_played(speed: float) -> None:
    async with speaking() as server:
        async with server.talk(f"?speed={speed}&lead_ms=1000") as talker:
            await talker.send("text", turn_id="a", text=TEXT * 2, end=True)
            began, samples = None, 0
            while samples < 2.5 * RATE:
                message = await talker.next()
                if isinstance(message, bytes):
                    began = began or time.monotonic()
                    samples += len(message) // 2
                    ahead = samples / RATE - (time.monotonic() - began)
                    # And one step of the codec, and what the scheduler's grain is.
                    assert ahead < 1.0 + 6 * FRAME / RATE / speed


@pytest.mark.parametrize("speed", [0.8, 1.3])
async def test_a_turn_that_loses_its_engine_sounds_as_if_it_had_not(speed: float) -> None:
    faults = Faults()
    async with speaking(faults=faults) as server:
        undisturbed = await said(server, f"&speed={speed}")
        async with server.talk(f"?lead_ms=30000&speed={speed}") as talker:
            await talker.send("text", turn_id="a", text=TEXT, end=True)
            messages = [await talker.next() for _ in range(8)]
            explode_once(faults)
            messages += await talker.until("turn.done")
    assert sound_of(messages) == sound_of(undisturbed)


async def test_a_turn_keeps_the_speed_that_it_was_begun_with() -> None:
    async with speaking() as server, server.talk("?lead_ms=30000&speed=0.8") as talker:
        sizes = []
        for turn, speed in (("a", 1.25), ("b", None), ("c", None)):
            await talker.send("text", turn_id=turn, text="Hello")
            await talker.send("session.start", speed=speed)
            await talker.send("turn.end", turn_id=turn)
            sizes.append(len(sound_of(await talker.until("turn.done"))) // 2)
    assert sizes == [ceil(5 * FRAME / speed) for speed in (0.8, 1.25, 1.0)]


async def test_a_speed_out_of_range_is_refused() -> None:
    async with speaking() as server, server.talk() as talker:
        await talker.send("session.start", speed=1.5)
        error = (await talker.until("error"))[-1]
        assert error["code"] == "bad_message"
        assert "0.7 to 1.4" in error["message"]
