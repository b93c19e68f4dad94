"""Pauses that the text asks for: silence of that length, and speech on both sides of it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import realtime_tts
from realtime_tts.engine.fake import FakeEngineConfig
from realtime_tts.engine.link import Append, Cancel, Finish, Open
from realtime_tts.model.config_files import read_config
from realtime_tts.protocol.settings import SessionSettings
from realtime_tts.server.session_settings import number_language
from realtime_tts.server.track import Sound
from tests.server.commands import said_since
from tests.server.opening import open_speech
from tests.server.speaking import speaking
from tests.server.talking import of_type, sound_of
from tests.waiting import SECONDS

RATE = 24_000
FRAME = 1_920


def sound(messages: list[Any]) -> np.ndarray[Any, Any]:
    return np.frombuffer(sound_of(messages), dtype="<i2")


def silences(samples: np.ndarray[Any, Any]) -> list[tuple[int, int]]:
    """Where at least a hundredth of a second is exactly silent: start and length in samples."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], samples == 0, [0]))))
    runs = edges.reshape(-1, 2)
    return [(int(a), int(b - a)) for a, b in runs if b - a >= RATE // 100]


SPEECH = FRAME  # of one byte of text, in the tests' engine


@pytest.mark.parametrize("pieces", [1, 3, 100])
@pytest.mark.parametrize(("time", "seconds"), [("300ms", 0.3), ("0.5s", 0.5), ("1s", 1.0)])
async def test_a_pause_has_its_length_to_the_sample(pieces: int, time: str, seconds: float) -> None:
    text = f'Hello.<break time="{time}"/> You there.'
    async with speaking() as server, server.talk() as talker:
        size = -(-len(text) // pieces)
        for start in range(0, len(text), size):
            await talker.send("text", turn_id="a", text=text[start : start + size])
        await talker.send("turn.end", turn_id="a")
        messages = await talker.until("turn.done")
    samples = sound(messages)
    [(start, length)] = silences(samples)
    assert abs(length - round(seconds * RATE)) <= 2, "a tone may begin or end with zero samples"
    assert abs(start - len("Hello.") * SPEECH) <= 2
    assert len(samples) == len("Hello.You there.") * SPEECH + round(seconds * RATE)
    [done] = of_type(messages, "turn.done")
    assert (done["samples"], done["reason"]) == (len(samples), "complete")
    assert len(of_type(messages, "turn.started")) == 1


@pytest.mark.alone
@pytest.mark.parametrize("query", ["", "?trim_silence=off"])
async def test_a_pause_is_no_underrun(query: str) -> None:
    fake = FakeEngineConfig(frames_per_token=1, silence=1_000)
    async with speaking(engine=fake) as server, server.talk(query) as talker:
        text = 'Hello.<break time="300ms"/> You there.<break time="1s"/> And so on.'
        await talker.send("text", text=text, end=True)
        [done] = of_type(await talker.until("turn.done"), "turn.done")
    assert done["underruns"] == 0


@pytest.mark.parametrize("trimmed", [True, False])
async def test_the_models_silence_is_left_out_and_the_pause_asked_for_stays(trimmed: bool) -> None:
    """Of every piece of a turn, which begins with 1,000 silent samples: 5 ms of them stay."""
    query = "" if trimmed else "?trim_silence=off"
    fake = FakeEngineConfig(frames_per_token=1, silence=1_000)
    left_out = 1_001 - 120 if trimmed else 0  # the tone begins with a zero
    text = '<break time="100ms"/>Hello.<break time="300ms"/> You there.'
    async with speaking(engine=fake) as server, server.talk(query) as talker:
        await talker.send("text", text=text, end=True)
        messages = await talker.until("turn.done")
    samples = sound(messages)
    for (_, length), pause in zip(silences(samples), (2_400, 7_200), strict=True):
        assert abs(length - pause - (1_001 - left_out)) <= 2, "a tone may end with zeros"
    assert len(samples) == len("Hello.You there.") * SPEECH + 9_600 - 2 * left_out
    [done] = of_type(messages, "turn.done")
    assert (done["samples"], done["reason"]) == (len(samples), "complete")


async def test_the_segments_are_utterances_of_their_own_one_after_the_other() -> None:
    async with speaking() as server, server.talk() as talker:
        commands = server.spy_on_commands()
        await talker.send("text", text='One.<break time="200ms"/>Two.', end=True)
        await talker.until("turn.done")
        kinds = [type(c) for c in commands if isinstance(c, Open | Append | Finish)]
        assert kinds == [Open, Append, Finish, Open, Append, Finish]
        first, second = [c for c in commands if isinstance(c, Open)]
        assert first.id != second.id
        assert second.listener_free_after >= 0.2, "the pause is still to be heard"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('<break time="100ms"/>Hi.', [100]),
        ('Hi.<break time="100ms"/>', [100]),
        ('Hi.<break time="100ms"/><break time="50ms"/>You.', [150]),
        ('Hi.<break time="100ms"/>...<break time="50ms"/>You.', [150]),
        ('Hi.<break time="0ms"/>You.', []),
        ('Hi.<break time="99999s"/>You.<break time="1s"/>All.', [10_000]),
        ('Hi.<break time="6s"/>You.<break time="6s"/>All.', [6_000, 4_000]),
    ],
)
async def test_pauses_at_the_ends_in_a_row_and_beyond_the_limit(
    text: str, expected: list[int]
) -> None:
    async with speaking() as server, server.talk("?lead_ms=30000") as talker:
        await talker.send("text", text=text, end=True)
        messages = await talker.until("turn.done")
    found = [length for _, length in silences(sound(messages))]
    assert len(found) == len(expected)
    for length, milliseconds in zip(found, expected, strict=True):
        assert abs(length - milliseconds * RATE // 1000) <= 2
    [done] = of_type(messages, "turn.done")
    assert done["samples"] == len(sound(messages)) and done["reason"] == "complete"


async def test_a_turn_that_ends_after_its_last_speech_still_has_its_pause() -> None:
    async with speaking() as server, server.talk() as talker:
        await talker.send("text", turn_id="a", text='Hi.<break time="200ms"/>')
        heard: list[Any] = []
        while sound(heard).size < 3 * SPEECH + RATE // 5:
            heard.append(await talker.next())  # speech and pause are there before the end is
            if sound(heard).size >= 3 * SPEECH:
                break
        await talker.send("turn.end", turn_id="a")
        heard += await talker.until("turn.done")
        assert sound(heard).size == 3 * SPEECH + RATE // 5
        assert not of_type(heard, "warning")


async def test_pauses_alone_are_nothing_to_speak() -> None:
    async with speaking() as server, server.talk() as talker:
        commands = server.spy_on_commands()
        await talker.send("text", text='<break time="200ms"/>', end=True)
        warning, done = await talker.until("turn.done")
        assert warning["code"] == "no_speakable_text" and done["samples"] == 0
        assert commands == []


async def test_an_interrupt_in_the_pause_knows_what_was_said() -> None:
    async with speaking() as server, server.talk() as talker:
        text = 'Hello.<break time="5s"/> You there, my friend.'
        await talker.send("text", turn_id="a", text=text)
        heard: list[Any] = []
        while sound(heard).size < 6 * SPEECH + RATE:
            heard.append(await talker.next())
        played = 6 * SPEECH + RATE
        await talker.send("interrupt", turn_id="a", played_samples=played)
        messages = await talker.until("turn.done")
        [report] = of_type(messages, "turn.interrupted")
        assert report["text_spoken"] == "Hello."
        assert report["text_remaining"] == text.removeprefix("Hello.")
        await talker.send("text", turn_id="b", text="Next.", end=True)
        await talker.until("turn.done")


async def test_an_interrupt_behind_the_pause_counts_it() -> None:
    async with speaking() as server, server.talk() as talker:
        commands = server.spy_on_commands()
        text = 'Hello.<break time="1s"/> You there, my very best friend of all.'
        await talker.send("text", turn_id="a", text=text)
        heard: list[Any] = []
        while sound(heard).size < 16 * SPEECH + RATE:
            heard.append(await talker.next())
        played = 6 * SPEECH + RATE + 8 * SPEECH
        await talker.send("interrupt", turn_id="a", played_samples=played)
        [report] = of_type(await talker.until("turn.done"), "turn.interrupted")
        assert report["text_spoken"].startswith('Hello.<break time="1s"/> You')
        assert report["text_spoken"] + report["text_remaining"] == text
        assert len(report["text_spoken"]) < len(text)
        assert [c for c in commands if isinstance(c, Cancel)][-1].id.endswith(".1")


async def test_a_stream_without_a_session_has_pauses_too() -> None:
    async with speaking() as server:
        stream = open_speech(server)
        stream.feed('Hi.<break time="250ms"/>You.<break time="0.25s"/>')
        stream.end()
        pcm = b""
        async with asyncio.timeout(SECONDS):
            while (given := await stream.next()) is not None:
                pcm += given.data if isinstance(given, Sound) else b""
        assert len(pcm) // 2 == 7 * SPEECH + RATE // 2
        assert stream.last.reason == "complete"
        stream.close()
        await server.settled()


async def test_numbers_the_lexicon_and_settings_over_the_socket() -> None:
    async with speaking() as server, server.talk("?text_normalization=on") as talker:
        commands = server.spy_on_commands()
        await talker.send("session.start", lexicon={"SQL": "sequel"})
        [ready] = await talker.until("ready")
        assert ready["settings"]["lexicon"] == {"SQL": "sequel"}
        for piece in ("It costs $", "3", ".50 in S", "QL."):
            await talker.send("text", turn_id="a", text=piece)
        await talker.send("turn.end", turn_id="a")
        await talker.until("turn.done")
        assert said_since(commands) == "It costs three dollars and fifty cents in sequel."
        await talker.send("session.start", lexicon={"a b": "c"})
        [error] = await talker.until("error")
        assert error["code"] == "bad_settings" and "without spaces" in error["message"]


async def test_slow_steps_do_not_change_the_length_of_a_pause() -> None:
    engine = FakeEngineConfig(step_seconds=0.01, frames_per_token=1)
    async with speaking(engine=engine) as server:

        async def one(number: int) -> tuple[int, int]:
            async with server.talk() as talker:
                text = f'Listener {number}.<break time="700ms"/>Goes on.'
                await talker.send("text", text=text, end=True)
                messages = await talker.until("turn.done")
            [(_, length)] = silences(sound(messages))
            return length, of_type(messages, "turn.done")[0]["underruns"]

        for length, _ in await asyncio.gather(*map(one, range(8))):
            assert abs(length - RATE * 7 // 10) <= 2


class Checkpoint:
    """What is asked of a checkpoint to choose a language."""

    def __init__(self, languages: tuple[str, ...], text_normalization: bool) -> None:
        self.languages, self.text_normalization = languages, text_normalization


@pytest.mark.parametrize(
    ("wanted", "language", "languages", "misreads", "chosen"),
    [
        ("auto", None, ("auto", "english"), True, "english"),
        ("auto", None, ("auto", "english"), False, None),
        ("on", None, ("auto", "english"), False, "english"),
        ("off", "english", ("auto", "english"), True, None),
        ("on", "German", ("auto", "english", "german"), False, "german"),
        ("on", None, ("auto", "english", "german"), False, None),
        ("on", "auto", ("auto", "english", "german"), False, None),
        ("on", "japanese", ("auto", "japanese"), False, None),
    ],
)
def test_the_language_of_numbers_is_chosen_by_setting_checkpoint_and_language(
    wanted: Any, language: str | None, languages: Any, misreads: bool, chosen: str | None
) -> None:
    settings = SessionSettings(text_normalization=wanted, language=language)
    checkpoint: Any = Checkpoint(languages, misreads)
    found = number_language(settings, checkpoint)
    assert (found.name if found else None) == chosen


def test_the_demo_voice_says_that_it_misreads_numbers() -> None:
    folder = Path(realtime_tts.__file__).parent / "demo_voice" / "checkpoint"
    assert read_config(folder).text_normalization


@pytest.mark.alone
async def test_a_long_pause_outlasts_the_lead() -> None:
    async with speaking() as server, server.talk("?lead_ms=200") as talker:
        await talker.send("text", text='Hi.<break time="3s"/>You.', end=True)
        messages = await talker.until("turn.done")
        [done] = of_type(messages, "turn.done")
        assert (done["reason"], done["underruns"]) == ("complete", 0)
        assert done["samples"] == 7 * SPEECH + 3 * RATE
