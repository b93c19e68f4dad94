"""The aligned transcript: words with times, beside the audio frames."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest
from livekit.agents.types import USERDATA_TIMED_TRANSCRIPT
from livekit.agents.voice.io import TimedString

from realtime_tts.adapters.livekit import TTS
from tests.clients.livekit.stand_in import Peer, stand_in
from tests.clients.livekit_rig import DELTAS, ONCE, TEXT, Events, read, say, seconds
from tests.clients.serving import Server


def words_of(events: Events) -> list[TimedString]:
    return [
        word for event in events for word in event.frame.userdata.get(USERDATA_TIMED_TRANSCRIPT, [])
    ]


@pytest.mark.parametrize("whole", [False, True])
async def test_words_joined_are_the_text_in_the_time_of_the_audio(
    server: Server, whole: bool
) -> None:
    async with TTS(server.url) as speaker:
        assert speaker.capabilities.aligned_transcript
        events = await (read(speaker, TEXT) if whole else say(speaker, DELTAS))
    words = words_of(events)
    assert "".join(words) == TEXT
    assert [str(word).strip() for word in words] == TEXT.split()
    assert words[0].start_time == 0.0
    assert all(word.start_time <= word.end_time for word in words)
    assert all(one.end_time <= later.start_time for one, later in pairwise(words))
    assert words[-1].end_time <= seconds(events) + 0.01


@pytest.mark.parametrize("whole", [False, True])
async def test_a_text_with_nothing_to_speak_is_in_the_transcript_as_well(
    server: Server, whole: bool
) -> None:
    async with TTS(server.url) as speaker:
        events = await (read(speaker, "🙂 🎉") if whole else say(speaker, ["🙂", " 🎉"]))
        (word,) = words_of(events)
        assert str(word) == "🙂 🎉"
        assert (word.start_time, word.end_time) == (0.0, pytest.approx(seconds(events)))
        speaker.update_options(word_times="off")
        assert words_of(await say(speaker, ["🙂"])) == []


async def test_they_come_with_the_audio_not_after_it(server: Server) -> None:
    async with TTS(server.url) as speaker, speaker.stream(conn_options=ONCE) as stream:
        stream.push_text(" ".join([TEXT] * 5))  # and its text does not end
        seen: Events = []
        async with asyncio.timeout(60):
            async for event in stream:
                seen.append(event)
                if words_of(seen):
                    break
    assert TEXT.startswith("".join(words_of(seen))[: len(TEXT)])


async def test_who_does_not_want_them_says_so(server: Server) -> None:
    async with TTS(server.url, word_times="off") as speaker:
        assert not speaker.capabilities.aligned_transcript
        assert words_of(await say(speaker)) == []
        speaker.update_options(word_times=None)
        assert speaker.capabilities.aligned_transcript
        assert "".join(words_of(await say(speaker))) == TEXT


async def test_where_a_text_needs_two_turns_the_times_go_on() -> None:
    async def script(peer: Peer) -> None:
        first = (await peer.receive("text"))["turn_id"]
        for turn_id, text in ((first, "One."), ("", " Two.")):
            if not turn_id:
                turn_id = (await peer.receive("text"))["turn_id"]
            await peer.send("turn.started", turn_id, layout="streaming")
            await peer.audio(1, 24_000)
            words = [{"text": text, "start_ms": 100.0, "end_ms": 900.0}]
            await peer.send("turn.words", turn_id, words=words)
            done = turn_id != first
            await peer.done(turn_id, "complete" if done else "idle", 24_000, len(text))
        await peer.socket.wait_closed()

    async with stand_in(script) as url, TTS(url) as speaker:
        async with speaker.stream(conn_options=ONCE) as stream:
            stream.push_text("One.")
            seen = [await anext(stream)]
            stream.push_text(" Two.")
            stream.end_input()
            seen += [event async for event in stream]
    words = words_of(seen)
    assert [(str(word), word.start_time, word.end_time) for word in words] == [
        ("One.", 0.1, 0.9),
        (" Two.", 1.1, 1.9),
    ]
