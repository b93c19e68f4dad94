"""Speech: text in, packets out, segment after segment; for owners that are no session."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from realtime_tts.audio.formats import parse_format
from realtime_tts.audio.packets import FramedPackets
from realtime_tts.engine.fake import FakeEngineConfig
from realtime_tts.engine.link import Open
from realtime_tts.errors import RequestError
from realtime_tts.protocol.effects import TurnFailure
from realtime_tts.server.track import Delivery, Done, Sound
from tests.server.opening import open_speech
from tests.server.speaking import speaking
from tests.waiting import SECONDS, until

FRAME_BYTES = 3_840


def delivery(**options: Any) -> Delivery:
    return Delivery(FramedPackets, **options)


async def given_by(one: Any) -> list[Any]:
    """Everything that is to come."""
    found = []
    async with asyncio.timeout(SECONDS):
        while (what := await one.next()) is not None:
            found.append(what)
    return found


async def rest(one: Any) -> bytes:
    packets = [what.data for what in await given_by(one) if isinstance(what, Sound)]
    assert all(0 < len(packet) <= 4_096 for packet in packets)
    return b"".join(packets)


async def test_deltas_go_in_and_packets_come_out_before_the_text_is_complete() -> None:
    async with speaking() as server:
        one = open_speech(server)
        one.feed("Hello there, ")
        first = await one.next()
        assert first.data
        one.feed("you.")
        one.end()
        assert len(first.data + await rest(one)) == len("Hello there, you.") * FRAME_BYTES
        assert one.last.text_tokens == 17 and one.last.reason == "complete"
        assert await one.next() is None, "and again"
        one.close()
        await server.settled()


async def test_packets_that_lie_ready_are_taken_each_in_a_round_of_its_own() -> None:
    """All of them in one would keep the packets of others from them."""
    async with speaking() as server:
        one = open_speech(server)
        one.feed("A text.")
        one.end()
        await server.settled_engine()
        rounds, packets, going = 0, 0, True

        async def count() -> None:
            nonlocal rounds
            while going:
                rounds += 1
                await asyncio.sleep(0)

        counting = asyncio.create_task(count())
        while await one.next() is not None:
            packets += 1
        going = False
        await counting
        one.close()
        assert packets > 5 and rounds >= packets


async def test_text_that_the_filter_holds_is_released_by_the_clock() -> None:
    async with speaking() as server:
        one = open_speech(server)
        one.feed("Hi [")  # the beginning of a link, perhaps
        held = one.last.text_tokens
        await until(lambda: one.last.text_tokens != held)
        one.close()


async def test_ones_of_one_owner_speak_at_once() -> None:
    async with speaking() as server:
        ones = [open_speech(server, f"s{n}", voice=v) for n, v in enumerate(("alto", "bass"))]
        for one in ones:
            one.feed("Both of us.")
            one.end()
        alto, bass = await asyncio.gather(*map(rest, ones))
        assert len(alto) == len(bass) and alto != bass
        for one in ones:
            one.close()
        await server.settled()


async def test_a_one_that_is_closed_early_is_counted_so_and_says_no_more() -> None:
    async with speaking(engine=FakeEngineConfig(step_seconds=0.02)) as server:
        one = open_speech(server)
        one.feed("Rather a long text, this is.")
        await one.next()
        waiting = asyncio.create_task(rest(one))
        await asyncio.sleep(0.05)
        one.close()
        one.close()
        await waiting
        await server.settled()
        assert server.value("tts_turns_total", reason="closed") == 1
        assert server.value("tts_open_turns") == 0


async def test_nothing_to_speak_is_over_at_once() -> None:
    async with speaking() as server:
        one = open_speech(server)
        one.feed("…")
        one.end()
        assert [type(what) for what in await given_by(one)] == [Done]
        one.close()
        assert server.value("tts_turns_total", reason="complete") == 1


async def test_who_waits_is_told_why_it_ended() -> None:
    async with speaking(engine=FakeEngineConfig(step_seconds=0.02)) as server:
        one = open_speech(server)
        one.feed("Some text.")
        await one.next()
        one.fail(TurnFailure("going_away", "bye", True))
        with pytest.raises(TurnFailure, match="bye"):
            await one.next()
        one.close()
        await server.settled()
        assert server.value("tts_turns_total", reason="error") == 1
        assert server.value("tts_refused_total", reason="going_away") == 1


@pytest.mark.parametrize("begun", [False, True])
async def test_one_that_failed_is_not_spoken_and_says_why_however_late_it_is_asked(
    begun: bool,
) -> None:
    """Its owner's client may be slow, and send text meanwhile."""
    async with speaking() as server:
        commands = server.spy_on_commands()
        one = open_speech(server)
        if begun:
            one.feed("Good morning to you. ")
            await until(lambda: commands)
        one.fail(TurnFailure("key_limit_reached", "no"))
        one.feed(" there, and good morning.", ends=True)
        one.cut()
        await asyncio.sleep(0.1)
        assert sum(isinstance(command, Open) for command in commands) == int(begun)
        with pytest.raises(TurnFailure, match="no"):
            one.take()
        one.close()
        await server.settled_engine()


async def test_an_owner_that_takes_nothing_loses_the_one(monkeypatch: pytest.MonkeyPatch) -> None:
    async with speaking() as server:
        front = server.running.front
        monkeypatch.setattr(front, "max_outbox", lambda: 20_000)
        one = open_speech(server)
        one.feed("A text of more than five frames.")
        one.end()
        await server.settled_engine()
        with pytest.raises(TurnFailure, match="wait for the client") as caught:
            await one.next()
        assert caught.value.code == "slow_reader"
        one.close()


async def test_a_fault_in_one_speech_leaves_the_others_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with speaking() as server:
        bad, good = open_speech(server, "bad"), open_speech(server, "good")
        monkeypatch.setattr(bad.utterances, "take", lambda *_: 1 / 0)
        for one in (bad, good):
            one.feed("Me too.")
            one.end()
        assert len(await rest(good)) == 7 * FRAME_BYTES
        with pytest.raises(TurnFailure, match="fault of the server"):
            await rest(bad)
        bad.close()
        good.close()
        await server.settled()


async def test_what_the_checkpoint_cannot_do_takes_no_place() -> None:
    async with speaking() as server:
        with pytest.raises(RequestError, match="unknown voice"):
            open_speech(server, voice="nobody")
        with pytest.raises(RequestError, match="lead_ms"):
            open_speech(server, lead_ms=3_600_000)
        assert server.running.front.sessions == 0


# Segments.


async def test_cuts_end_segments_one_after_another_and_each_is_reported() -> None:
    async with speaking() as server:
        one = open_speech(server)
        first = one.feed("One.")
        assert one.cut() is first and first.ended
        second = one.feed("And ")
        assert one.feed("two.") is second and [*one.segments] == [first, second]
        empty = one.cut() and one.cut()
        one.end()
        found = await given_by(one)
        ends = [what.segment for what in found if isinstance(what, Done)]
        assert ends == [first, second, empty] and [end.number for end in ends] == [0, 1, 2]
        for segment, text in ((first, "One."), (second, "And two."), (empty, "")):
            samples = sum(w.samples for w in found if isinstance(w, Sound) and w.segment is segment)
            assert samples == segment.samples == len(text) * FRAME_BYTES // 2
        one.close()
        assert server.value("tts_turns_total", reason="complete") == 2, "one had no text"
        assert server.value("tts_text_chars_total") == len("One.And two.")


async def test_a_segment_is_in_the_engine_when_the_one_before_was_sent() -> None:
    async with speaking() as server:
        commands = server.spy_on_commands()
        one = open_speech(server)
        for text in ("One.", "Two."):
            one.feed(text)
            one.cut()
        await server.settled_engine()
        opened = [command.id for command in commands if type(command).__name__ == "Open"]
        assert opened == ["s1"]
        one.end()
        await given_by(one)
        last = [command for command in commands if type(command).__name__ == "Open"][-1]
        assert last.id == "s1-1" and last.listener_free_after > 0.2
        one.close()


@pytest.mark.parametrize("continuous", [True, False])
async def test_segments_share_an_encoder_or_have_one_each(continuous: bool) -> None:
    async with speaking() as server:
        one = open_speech(server, how=delivery(continuous=continuous), audio=parse_format("wav"))
        for text in ("One.", "Two."):
            one.feed(text)
            one.cut()
        one.end()
        found = b"".join(w.data for w in await given_by(one) if isinstance(w, Sound))
        assert found.count(b"RIFF") == (1 if continuous else 2)
        one.close()


async def test_silence_stands_in_for_sound_that_is_missing() -> None:
    async with speaking() as server:
        for fills, samples in ((True, 2_400), (False, 0)):
            one = open_speech(server, f"s{fills}", delivery(fills=fills))
            one.feed("\u2026")
            one.end()
            found = await given_by(one)
            assert sum(w.samples for w in found if isinstance(w, Sound)) == samples
            one.close()


async def test_a_stall_is_filled_and_the_words_behind_it_are_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("realtime_tts.server.speech.STALL_SECONDS", 0.05)
    async with speaking() as server:
        one = open_speech(server, how=delivery(fills=True))
        one.feed("Wait.")
        words, samples = [], 0
        while samples < 5 * 1_920 + 2_400:
            samples += (await one.next(fill=True)).samples
            words += one.take_words()
        one.feed(" Go on.")
        one.end()
        while await one.next() is not None:
            words += one.take_words()
        assert "".join(word.text for word in words) == "Wait. Go on."
        went_on = next(word for word in words if "Go" in word.text)
        assert went_on.start >= (5 * 1_920 + 2_400) / 24_000 - 0.01
        assert words[-1].end == pytest.approx(one.track.seconds)
        one.close()


async def test_text_that_pauses_is_spoken_to_its_end() -> None:
    async with speaking() as server:
        one = open_speech(server, options={"hold_seconds": 0.1})
        one.feed("A pause")
        assert len(await until_done(one)) == 7 * FRAME_BYTES
        one.feed("follows.")
        assert len(await until_done(one)) == 8 * FRAME_BYTES
        one.close()


async def until_done(one: Any) -> bytes:
    found = b""
    async with asyncio.timeout(SECONDS):
        while isinstance(what := await one.next(), Sound):
            found += what.data
    return found


async def test_one_that_waits_to_start_keeps_its_text() -> None:
    async with speaking() as server:
        commands = server.spy_on_commands()
        one = open_speech(server, options={"starts": False})
        one.feed("Not ")
        one.feed("yet.")
        await asyncio.sleep(0.05)
        assert commands == []
        one.start()
        one.end()
        assert len(await rest(one)) == len("Not yet.") * FRAME_BYTES
        one.close()


async def test_silence_says_what_was_heard_and_stops_the_engine() -> None:
    async with speaking(engine=FakeEngineConfig(step_seconds=0.02)) as server:
        one = open_speech(server)
        one.feed("Quite a number of words to speak. " * 4)
        sent = 0
        while sent < 24_000:
            sent += (await one.next()).samples
        report = one.silence(played_samples=12_000)
        assert (report.samples_sent, report.played_ms) == (sent, 500)
        assert report.text_spoken and report.text_spoken + report.text_remaining == (
            "Quite a number of words to speak. " * 4
        )
        await server.settled_engine()
        one.close()
        assert one.silence(played_samples=12_000) == report, "also later"


@pytest.mark.parametrize("continuous", [True, False])
@pytest.mark.parametrize("name", ["pcm", "ulaw_8000", "mp3_44100_128"])
async def test_all_text_is_told_once_in_order_and_within_the_sound(
    name: str, continuous: bool
) -> None:
    """On one timeline, segment after segment, in formats with delay and without."""
    if name.startswith("mp3"):
        pytest.importorskip("av")
    texts = ["One and two. ", "…", "Three<break time='200ms'/> and four, ", "five!"]
    async with speaking() as server:
        how = delivery(continuous=continuous, fills=True)
        one = open_speech(server, how=how, audio=parse_format(name))
        for text in texts:
            one.feed(text)
            one.cut()
        one.end()
        told: list[str] = [""]
        last = made = 0.0
        while (what := await one.next()) is not None:
            for word in one.take_words():
                told[-1] += word.text
                assert last <= word.start <= word.end
                last = word.end
            if isinstance(what, Done):
                told.append("")
                made = one.track.seconds
                assert last <= made + 0.15, "an encoder may hold the end of a segment"
        assert told == ["One and two. ", "", "Three<break time='200ms'/> and four, ", "five!", ""]
        assert last == pytest.approx(one.track.seconds, abs=0.02)
        one.close()
