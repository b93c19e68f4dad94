"""`turn.words`: the turn's own text, in time with its audio, over a real socket."""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from realtime_tts.engine.fake import FakeEngineConfig
from realtime_tts.engine.link import Audio
from realtime_tts.server.listener import Listener
from realtime_tts.server.session_turn import SessionTurn
from realtime_tts.server.speech import Speech
from realtime_tts.text import speech_times
from realtime_tts.text.pipeline import TextPipeline
from realtime_tts.text.speech_times import SpokenSpan, SpokenText
from realtime_tts.text.tokenizer import Qwen2Tokenizer
from tests.engine.faulty import Faults
from tests.server.speaking import byte_tokenizer, speaking
from tests.server.talking import of_type

RATE = 24_000
ON = "?word_times=on"
AT_ONCE = "&lead_ms=30000"  # sound is sent as it is made, for what is no matter of time
TEXTS = [
    "The tide is coming in. Good morning to you, and to all who are with you!",
    "One **bold** word 🙂 and [a link](https://an.example/of/some/length) in between.",
    'Wait.<break time="300ms"/> Go on, please.<break time="100ms"/>',
    "今天天气很好。我们去公园。",
    "It costs $3.50, and that is 42 in all.\n\n- a list\n- of two  ",
    "Hi.",
]


def words_in(messages: list[Any]) -> list[dict[str, Any]]:
    return [word for message in of_type(messages, "turn.words") for word in message["words"]]


def joined(messages: list[Any]) -> str:
    return "".join(word["text"] for word in words_in(messages))


def assert_in_time(messages: list[Any]) -> None:
    """In order, and none beyond the audio that came before it (s16le)."""
    samples, at = 0, 0.0
    for message in messages:
        if isinstance(message, bytes):
            samples += len(message) // 2
        elif message["type"] == "turn.words":
            assert message["words"]
            for word in message["words"]:
                assert at <= word["start_ms"] <= word["end_ms"] <= samples * 1000 / RATE
                at = word["end_ms"]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("size", [1, 7, 1000])
async def test_words_joined_are_the_text_however_it_came(text: str, size: int) -> None:
    engine = FakeEngineConfig(frames_per_token=1, languages=("auto", "english", "chinese"))
    async with speaking(engine=engine) as server, server.talk(ON + AT_ONCE) as talker:
        for start in range(0, len(text), size):
            await talker.send("text", turn_id="a", text=text[start : start + size])
        await talker.send("turn.end", turn_id="a")
        messages = await talker.until("turn.done")
    assert joined(messages) == text
    assert_in_time(messages)
    kinds = [m["type"] for m in messages if isinstance(m, dict)]
    assert kinds[-1] == "turn.done" and "turn.words" in kinds


async def test_without_being_asked_for_there_are_none() -> None:
    async with speaking() as server, server.talk("?lead_ms=30000") as talker:
        await talker.send("text", text=TEXTS[0], end=True)
        messages = await talker.until("turn.done")
    assert not of_type(messages, "turn.words")


async def test_they_come_while_the_turn_is_spoken() -> None:
    config = FakeEngineConfig(frames_per_token=1, step_seconds=0.01)
    async with speaking(engine=config) as server, server.talk(ON) as talker:
        await talker.send("text", turn_id="a", text="One two three four five six.")
        before = await talker.until("turn.words")
        assert joined(before).strip(), "a word, although the text goes on"
        await talker.send("text", turn_id="a", text=" Seven.", end=True)
        after = await talker.until("turn.done")
    assert joined(before + after) == "One two three four five six. Seven."
    assert_in_time(before + after)


async def test_the_setting_counts_for_turns_that_begin_after_it() -> None:
    async with speaking() as server, server.talk() as talker:
        await talker.send("text", turn_id="a", text="Good ")
        await talker.until("turn.started")
        await talker.send("session.start", word_times="on")
        await talker.send("text", turn_id="a", text="morning.", end=True)
        first = await talker.until("turn.done")
        await talker.send("text", turn_id="b", text="Good night.", end=True)
        second = await talker.until("turn.done")
    assert of_type(first, "ready")[0]["settings"]["word_times"] == "on"
    assert not of_type(first, "turn.words")
    assert {message["turn_id"] for message in of_type(second, "turn.words")} == {"b"}
    assert joined(second) == "Good night."


async def test_an_interrupt_ends_them_and_agrees_with_them() -> None:
    """The fake speaks 80 ms a letter, which is slower than expected: the answer knows no better
    before the speech is complete, so it says what the words have said."""
    text = TEXTS[0] * 3
    config = FakeEngineConfig(frames_per_token=1, step_seconds=0.01)
    async with speaking(engine=config) as server, server.talk(ON) as talker:
        await talker.send("text", turn_id="a", text=text)
        seen: list[Any] = []
        while len(words_in(seen)) < 5:
            seen.append(await talker.next())
        played = words_in(seen)[3]["end_ms"] + 1
        await talker.send("interrupt", turn_id="a", played_ms=played)
        seen += await talker.until("turn.interrupted")
        answer = seen[-1]
        after = await talker.until("turn.done")
        await talker.send("text", turn_id="b", text="Next.", end=True)
        after += await talker.until("turn.done")
    heard = "".join(word["text"] for word in words_in(seen) if word["end_ms"] <= played)
    assert answer["text_spoken"] == heard
    assert {message["turn_id"] for message in of_type(after, "turn.words")} == {"b"}
    assert_in_time(seen)


@pytest.mark.parametrize("query", ["&encoding=pcm_mulaw", "&sample_rate=48000", "&encoding=mp3"])
async def test_times_are_those_of_the_audio_whatever_its_format(query: str) -> None:
    async with speaking() as server, server.talk(ON + AT_ONCE + query) as talker:
        await talker.send("text", text=TEXTS[0], end=True)
        messages = await talker.until("turn.done")
    words = words_in(messages)
    assert joined(messages) == TEXTS[0]
    assert all(one["end_ms"] <= later["start_ms"] for one, later in pairwise(words))
    assert words[-1]["end_ms"] == pytest.approx(messages[-1]["samples"] / RATE * 1000, abs=0.1)


async def test_a_text_with_nothing_to_speak_has_no_words() -> None:
    async with speaking() as server, server.talk(ON) as talker:
        await talker.send("text", text="🙂", end=True)
        messages = await talker.until("turn.done")
    assert not of_type(messages, "turn.words") and messages[-1]["samples"] == 0


@pytest.mark.parametrize("rest", [" morning.", " morning **now** 🙂"])
async def test_a_guard_that_ends_the_silence_behind_a_text_leaves_no_word_untold(rest: str) -> None:
    faults = Faults()
    async with speaking(faults=faults) as server, server.talk(ON + AT_ONCE) as talker:
        await talker.send("text", text="The tide is coming in. Good")
        first = await talker.until("turn.started")
        faults.runaway.update(server.engine._rows)
        await talker.send("text", text=rest, end=True)
        messages = first + await talker.until("turn.done")
    assert messages[-1]["reason"] == "guard_silence"
    assert joined(messages) == "The tide is coming in. Good" + rest
    assert_in_time(messages)


@pytest.mark.parametrize("frames", [10, 30])
async def test_of_a_turn_cut_at_its_longest_only_what_sounded_counts(frames: int) -> None:
    config = FakeEngineConfig(frames_per_token=1, max_frames=frames)
    async with speaking(engine=config) as server, server.talk(ON) as talker:
        await talker.send("text", turn_id="a", text=TEXTS[0], end=True)
        messages = await talker.until("turn.done")
        samples = messages[-1]["samples"]
        await talker.send("interrupt", turn_id="a", played_samples=samples)
        answer = (await talker.until("turn.interrupted"))[-1]
    assert messages[-1]["reason"] == "max_length"
    assert answer["text_spoken"] == joined(messages)
    assert 0 < len(answer["text_spoken"]) < len(TEXTS[0]) / 2
    assert answer["text_spoken"] + answer["text_remaining"] == TEXTS[0]


async def test_behind_a_model_that_ends_by_itself_the_turn_goes_on() -> None:
    text = "Good morning. The tide is coming in. "
    async with speaking() as server, server.talk(ON) as talker:
        await talker.send("text", turn_id="a", text=text)
        messages = await talker.until("turn.started")
        for row in server.engine._rows.values():
            row.tokens, row.finished = 20, True
        await server.settled_engine()
        await talker.send("text", turn_id="a", text="It is late.", end=True)
        messages += await talker.until("turn.done")
        await talker.send("interrupt", turn_id="a", played_samples=messages[-1]["samples"])
        answer = (await talker.until("turn.interrupted"))[-1]
    spoken = 20 + len("It is late.")
    assert (messages[-1]["reason"], messages[-1]["samples"]) == ("complete", spoken * 1_920)
    assert joined(messages) == answer["text_spoken"] == text + "It is late."
    assert_in_time(messages)


async def test_the_voice_is_known_better_after_it_has_spoken() -> None:
    """The fake engine's 80 ms a letter are slower than expected. With the usual lead the times are
    told before the server knows how long the speech is."""
    text = "We all went down to the sea to see the ships and the boats of the whole town"
    off: list[float] = []
    async with speaking() as server, server.talk(ON + "&layout=streaming") as talker:
        for turn_id in ("a", "b"):
            await talker.send("text", turn_id=turn_id, text=text, end=True)
            messages = await talker.until("turn.done")
            ships = next(word for word in words_in(messages) if word["text"] == " ships")
            off.append(abs(ships["end_ms"] - 80 * len(text.split(" and")[0])))
    assert off[0] > 400
    assert off[1] < off[0] / 2


async def test_a_fault_in_the_estimate_ends_its_session_and_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fault(*_: object) -> None:
        raise RuntimeError("no such time")

    async with (
        speaking() as server,
        server.talk(ON + AT_ONCE) as talker,
        server.talk("?lead_ms=30000") as other,
    ):
        monkeypatch.setattr(SpokenText, "take", fault)
        await talker.send("text", text=TEXTS[0], end=True)
        messages = await talker.rest()
        assert of_type(messages, "error")[0]["code"] == "internal"
        assert talker.socket.close_code == 1011
        await other.send("text", text=TEXTS[0], end=True)
        assert (await other.until("turn.done"))[-1]["reason"] == "complete"


def quick_tokens() -> Qwen2Tokenizer:
    """Four characters a token: at a frame for each, speech is far faster than expected."""
    return Qwen2Tokenizer.from_folder(Path(__file__).parents[1] / "text/data/tiny_tokenizer")


async def test_many_words_that_wait_for_the_end_come_a_few_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(speech_times, "_LOOK", 20)
    text = TEXTS[0] * 5
    async with (
        speaking(load_tokenizer=quick_tokens) as server,
        server.talk(ON + AT_ONCE) as talker,
    ):
        await talker.send("text", text=text, end=True)
        messages = await talker.until("turn.done")
    assert joined(messages) == text
    assert_in_time(messages)
    told = of_type(messages, "turn.words")
    assert len(told) >= len(text) / 40
    assert max(len("".join(word["text"] for word in m["words"])) for m in told) <= 40


async def test_an_interrupt_between_a_turns_last_words_ends_that_turn_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(speech_times, "_LOOK", 20)
    take_words, next_frame, told = Speech.take_words, SessionTurn.next_frame, 0

    def at_the_end(one: Any) -> Any:
        waits = one.name.endswith("-1") and (one.track or not one.utterances.over)
        return [] if waits else take_words(one)

    def interrupting(turn: Any) -> Any:
        nonlocal told
        if turn.id == "a" and told == 3:
            connection, told = turn._over.__self__, 4
            raw = '{"type": "interrupt", "turn_id": "a", "played_ms": 0}'
            connection._carry_out(connection.session.receive(raw, time.monotonic()))
            return None
        frame = next_frame(turn)
        told += turn.id == "a" and isinstance(frame, str)
        return frame

    monkeypatch.setattr(Speech, "take_words", at_the_end)
    monkeypatch.setattr(SessionTurn, "next_frame", interrupting)
    async with (
        speaking(load_tokenizer=quick_tokens) as server,
        server.talk(ON + AT_ONCE) as talker,
    ):
        await talker.send("text", turn_id="a", text=TEXTS[0] * 5, end=True)
        await talker.send("text", turn_id="b", text="Good night.", end=True)
        first = await talker.until("turn.done")
        second = await talker.until("turn.done")
        await server.settled_engine()
    assert of_type(first, "turn.interrupted")[0]["text_spoken"] == ""
    assert len(of_type(first, "turn.words")) == 3 and told == 4
    assert [m["reason"] for m in (first[-1], second[-1])] == ["interrupted", "complete"]
    assert joined(second) == "Good night."


@pytest.mark.parametrize("frames", range(1, 60))
def test_all_words_are_told_when_the_last_sample_of_the_last_utterance_was_taken(
    frames: int,
) -> None:
    """To the last bit, of however many frames: behind a flush at the end nothing follows."""
    text = TextPipeline(byte_tokenizer())
    listener = Listener(text, None, 1.0, None)
    for part, piece in enumerate(("Yes. ", "It is ready now.")):
        if part:
            listener.begin(text.segments[part])
        text.feed(piece, 0.0)
        text.flush(0.0)
        text.commit()
        for _ in range(frames):
            listener.add_speech(Audio("a", bytes(3_840)))
    listener.begin(text.segments[-1])
    text.finish(0.0)
    listener.complete = listener.ended = True
    listener.take()
    words: list[SpokenSpan] = []
    while some := listener.take_words():
        words += some
    assert "".join(word.text for word in words) == "Yes. It is ready now."
