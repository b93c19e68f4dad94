"""Deepgram's `/v2/speak`, Flux: turns in brackets, and interrupts that tell what was heard."""

from __future__ import annotations

import json
import re
import uuid
from typing import Any

import pytest

from realtime_tts.config import LimitsConfig, ServerConfig
from realtime_tts.dialects.deepgram_flux import _Turn
from realtime_tts.dialects.deepgram_messages import account
from realtime_tts.engine.fake import FakeEngineConfig
from realtime_tts.text.speech_times import SpokenSpan
from tests.dialects.asking import SLOW
from tests.dialects.deepgrams import Client, flux, types_of
from tests.dialects.tones import FRAME, TENTH
from tests.server.speaking import speaking
from tests.server.talking import of_type, sound_of

PIPECAT = "?model=flux-heather-en&encoding=linear16&sample_rate=24000&expressivity=1&tag=a&tag=b"
LONG = "A long answer that nobody wants to hear. " * 8
ALL = ["SpeechStarted", "sound", "Flushed", "SpeechMetadata"]


def milliseconds(text: str) -> int:
    return len(text) * 80


async def test_a_socket_is_greeted() -> None:
    async with speaking() as server, flux(server, PIPECAT) as client:
        greeting = client.greeting
        assert greeting["type"] == "Connected" and greeting["model_name"] == "flux-heather-en"
        assert uuid.UUID(greeting["request_id"])
        assert [uuid.UUID(one) for one in greeting["model_uuids"]]


async def test_a_turn_is_a_bracket_around_its_sound() -> None:
    text = "Sure, I can help you."
    async with speaking() as server, flux(server) as client:
        await client.say("Su", "re, I c", "an help", " you.")
        seen = await client.until("SpeechMetadata")
        assert types_of(seen) == ALL
        assert len(sound_of(seen)) == len(text) * FRAME
        speech_id = seen[0]["speech_id"]
        assert re.fullmatch("dg_sp_[0-9a-f]{12}", speech_id)
        assert seen[-2]["speech_id"] == speech_id
        assert seen[-1] == {
            "type": "SpeechMetadata",
            "speech_id": speech_id,
            "audio_duration_ms": milliseconds(text),
            "input_character_count": len(text),
            "billable_character_count": len(text),
            "controls_applied": {
                "pronunciations_applied": 0,
                "breaks_applied": 0,
                "pronunciation_warnings": 0,
            },
        }


async def test_the_start_is_told_with_the_first_text_and_sound_before_the_flush() -> None:
    async with speaking() as server, flux(server) as client:
        await client.say(" ", flush=False)
        assert types_of([await client.next()]) == ["SpeechStarted"]
        await client.say("The answer to that ", flush=False)
        await client.until("sound")
        await client.say("is long.")
        seen = await client.until("SpeechMetadata")
        assert seen[-1]["input_character_count"] == len(" The answer to that is long.")


async def test_turns_that_wait_come_one_by_one() -> None:
    async with speaking() as server, flux(server) as client:
        texts = ("This is one.", "This is the second.", "And three.")
        for text in texts:
            await client.say(text)
        speech_ids = set()
        for text in texts:
            seen = await client.until("SpeechMetadata")
            assert types_of(seen) == ALL
            assert len(sound_of(seen)) == len(text) * FRAME
            speech_ids |= {one["speech_id"] for one in seen if not isinstance(one, bytes)}
        assert len(speech_ids) == 3
        await server.settled_engine()


async def test_a_pause_does_not_end_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("realtime_tts.dialects.socket.SpeechSocket.hold_seconds", 0.2)
    first, second = "Let me look that up", " and here it is."
    async with speaking() as server, flux(server) as client:
        await client.say(first, flush=False)
        seen = await client.until("sound")
        while len(sound_of(seen)) < len(first) * FRAME:
            seen += await client.until("sound")
        await client.say(second)
        seen += await client.until("SpeechMetadata")
        assert types_of(seen) == ALL
        assert seen[-1]["audio_duration_ms"] == milliseconds(first + second.strip())
        assert seen[-1]["input_character_count"] == len(first + second)
        # A pause at the end of it, and the flush after that.
        await client.say("Done.", flush=False)
        seen = await client.until("sound")
        while len(sound_of(seen)) < len("Done.") * FRAME:
            seen += await client.until("sound")
        await client.send("Flush")
        seen += await client.until("SpeechMetadata")
        assert types_of(seen) == ALL


async def test_nothing_to_speak_is_a_little_silence_and_a_warning() -> None:
    async with speaking() as server, flux(server) as client:
        await client.say("…")
        seen = await client.until("SpeechMetadata")
        assert types_of(seen) == ["SpeechStarted", "sound", "Warning", *ALL[2:]]
        assert sound_of(seen) == TENTH and seen[-1]["audio_duration_ms"] == 100
        assert of_type(seen, "Warning")[0]["code"] == "NO_SYNTHESIZABLE_TEXT"
        await client.say(" \n ")
        seen = await client.until("SpeechMetadata")
        assert types_of(seen) == ["SpeechStarted", "sound", "Warning", *ALL[2:]]
        assert seen[-1]["audio_duration_ms"] == 100


async def test_a_position_beyond_what_was_sent_is_not_believed() -> None:
    """Else the next interrupt, with the right position, would be one that goes back."""
    async with speaking() as server, flux(server) as client:
        for position in (900_000_000, 1_000_000):
            await client.say("Hello there.")
            await client.until("SpeechMetadata")
            await client.send("Speak", text="And more.")
            await client.until("sound")
            assert (await interrupted(client, position))["audio_played_ms"] < 20_000


async def test_a_flush_without_a_turn_is_warned_of() -> None:
    async with speaking() as server, flux(server) as client:
        await client.send("Flush")
        assert (await client.next())["code"] == "NO_ACTIVE_SPEECH"
        await client.send("Speak", text="")
        await client.send("Flush")
        assert (await client.next())["code"] == "NO_ACTIVE_SPEECH"
        await client.say("Hi.")
        await client.send("Flush")
        seen = await client.until("SpeechMetadata")
        assert of_type(seen, "Warning")[0]["code"] == "NO_ACTIVE_SPEECH"


async def test_speed_can_be_configured() -> None:
    async with speaking() as server, flux(server) as client:
        await client.send("Configure", speed=1.0)
        assert await client.next() == {"type": "ConfigureSuccess", "applied": {"speed": 1.0}}
        await client.send("Configure", speed=None)
        assert types_of([await client.next()]) == ["ConfigureSuccess"]
        await client.send("Configure", speed=1.15)
        assert await client.next() == {"type": "ConfigureSuccess", "applied": {"speed": 1.15}}
        await client.send("Configure", speed=1.5)
        assert await client.next() == {"type": "ConfigureSuccess", "applied": {"speed": 1.4}}
        assert (await client.next())["code"] == "SPEED_NOT_SUPPORTED"
        await client.send("Configure", speed=3)
        failure = await client.next()
        assert (failure["code"], failure["value"]) == ("SPEED_OUT_OF_RANGE", 3)
        await client.say("Fine.")
        await client.until("SpeechMetadata")


async def test_a_speed_is_that_of_the_next_turn_that_nothing_is_spoken_before() -> None:
    """And positions go on counting the session's sound."""
    async with speaking() as server, flux(server) as client:
        lengths = []
        for speed in (None, 1.25, None):
            if speed is not None:
                await client.send("Configure", speed=speed)
            await client.say("Hello there.")
            done = (await client.until("SpeechMetadata"))[-1]
            lengths.append(done["audio_duration_ms"])
        assert lengths == [960, 768, 768]
        await client.send("Close")
        session = (await client.until("SessionMetadata"))[-1]
        assert session["total_audio_duration_ms"] == sum(lengths)


# Interrupts.


def offset(value: Any) -> dict[str, Any]:
    return {"playback_offset": {"type": "time_ms", "value": value}}


async def hear(client: Client, count: int) -> list[Any]:
    """Everything until so many bytes of sound have come."""
    seen: list[Any] = []
    while len(sound_of(seen)) < count:
        seen += await client.until("sound")
    return seen


async def interrupted(client: Client, *position: float) -> dict[str, Any]:
    """The answer to an interrupt, by a listener who has heard so many milliseconds."""
    await client.send("Interrupt", **(offset(*position) if position else {}))
    report: Any = (await client.until("SpeechInterrupted"))[-1]
    return report


async def test_what_pipecat_sends() -> None:
    """Tokens; an interrupt without a position; then no `Close`, the socket just ends."""
    headers = {"Authorization": "Token none"}
    async with speaking(engine=SLOW) as server:
        async with flux(server, PIPECAT, additional_headers=headers) as client:
            await client.say(*LONG.split(" "), flush=False)
            heard = sound_of(await client.until("sound"))
            await client.send("Interrupt")
            seen = await client.until("SpeechInterrupted")
            heard += sound_of(seen)
            report = seen[-1]
            assert "text_spoken" not in report and "text_remaining" not in report
            assert report["audio_played_ms"] == report["metadata"]["audio_duration_ms"]
            assert report["audio_played_ms"] >= len(heard) // 48
            await client.say("It is warm. ", "Come in. ")
            seen = await client.until("SpeechMetadata")
            assert types_of(seen) == ALL, "something followed the interrupt"
            assert len(sound_of(seen)) == len("It is warm. Come in. ") * FRAME
        await server.settled()
        assert server.value("tts_turns_total", reason="interrupted") == 1


async def test_an_interrupt_tells_what_was_heard() -> None:
    async with speaking(engine=SLOW) as server, flux(server) as client:
        await client.say(LONG)
        seen = await hear(client, 96_000)
        report = await interrupted(client, 1_500)
        assert report["audio_played_ms"] == 1_500
        assert report["text_spoken"] + report["text_remaining"] == LONG
        assert 0 < len(report["text_spoken"]) < 60, "1.5 s are about 22 characters"
        assert report["text_spoken"][-1:].strip() and report["text_remaining"][0] == " "
        assert report["metadata"]["speech_id"] == seen[0]["speech_id"]
        assert report["metadata"]["input_character_count"] == len(LONG)
        await client.send("Close")
        (total,) = await client.rest()
        assert total["total_audio_duration_ms"] == 1_500, "it counts what was heard"


async def test_positions_count_the_sound_of_all_turns() -> None:
    async with speaking(engine=SLOW) as server, flux(server) as client:
        await client.say("Yes, of course.")
        await client.until("SpeechMetadata")
        before = milliseconds("Yes, of course.")
        await client.say(LONG, flush=False)
        await hear(client, 96_000)
        report = await interrupted(client, before + 1_000)
        assert report["audio_played_ms"] == before + 1_000
        assert report["text_spoken"] + report["text_remaining"] == LONG
        assert 0 < len(report["text_spoken"]) < 40
        # What comes now begins where the listener stopped.
        await client.say(LONG, flush=False)
        await client.until("sound")
        report = await interrupted(client, before + 1_000)
        assert report["text_spoken"] == "" and report["text_remaining"] == LONG
        await server.settled_engine()


async def test_a_turn_that_is_over_may_still_be_interrupted_in_the_listener_s_ears() -> None:
    text = "One two three four five six."
    async with speaking() as server, flux(server) as client:
        await client.say(text)
        whole = (await client.until("SpeechMetadata"))[-1]
        await client.send("Interrupt")
        assert (await client.next())["code"] == "NO_ACTIVE_SPEECH"
        await client.send("Interrupt", **offset(whole["audio_duration_ms"]))
        assert (await client.next())["code"] == "NO_ACTIVE_SPEECH"
        await client.send("Interrupt", **offset(whole["audio_duration_ms"] // 2))
        report = await client.next()
        assert report["type"] == "SpeechInterrupted"
        assert report["metadata"] == {
            name: value for name, value in whole.items() if name != "type"
        }
        assert report["text_spoken"] in ("One two three", "One two")
        assert report["text_spoken"] + report["text_remaining"] == text
        await client.send("Interrupt", **offset(whole["audio_duration_ms"] // 2 + 1))
        assert (await client.next())["code"] == "NO_ACTIVE_SPEECH"


async def test_a_position_in_an_earlier_turn_gets_the_text_of_that_turn() -> None:
    """What is sent is ahead of the listener, so later turns may have begun, or be over, too."""
    first, second, heard = "One two three four five six.", "Seven.", 0
    async with speaking() as server, flux(server) as client:
        for later in (second, LONG):
            await client.say(first)
            whole = (await client.until("SpeechMetadata"))[-1]
            await client.say(later)
            await client.until("SpeechMetadata" if later == second else "sound")
            report = await interrupted(client, heard + whole["audio_duration_ms"] // 2)
            heard = report["audio_played_ms"]
            assert report["text_spoken"] in ("One two three", "One two")
            assert report["text_spoken"] + report["text_remaining"] == first
            assert report["metadata"]["speech_id"] == whole["speech_id"]
        await server.settled_engine()


async def test_an_interrupt_before_any_sound() -> None:
    async with speaking() as server, flux(server) as client:
        await client.send("Interrupt")
        assert (await client.next())["code"] == "NO_AUDIO_GENERATED"
        for _ in range(20):  # with text there, nothing of it is spoken
            await client.say("Never mind.")
            await client.send("Interrupt", playback_offset=None)
            report = (await client.until("SpeechInterrupted"))[-1]
            assert report["audio_played_ms"] >= 0
        await client.say("Now.")
        assert len(sound_of(await client.until("SpeechMetadata"))) == len("Now.") * FRAME
        await server.settled_engine()


async def test_an_interrupt_takes_back_turns_that_wait() -> None:
    async with speaking(engine=SLOW) as server, flux(server) as client:
        await client.say(LONG)
        await client.say("One moment.")
        await client.say("And ", flush=False)
        await client.until("sound")
        await interrupted(client)
        await client.say("New.")
        seen = await client.until("SpeechMetadata")
        assert types_of(seen) == ALL and len(sound_of(seen)) == len("New.") * FRAME


async def test_a_position_that_goes_back_is_warned_of() -> None:
    async with speaking(engine=SLOW) as server, flux(server) as client:
        await client.say(LONG)
        seen = await hear(client, 48_000)
        await interrupted(client, 800)
        await client.say("A text that goes on. " * 4)
        await client.until("sound")
        await client.send("Interrupt", **offset(799))
        seen = await client.until("SpeechMetadata")
        assert [one["code"] for one in of_type(seen, "Warning")] == ["INVALID_INTERRUPT_OFFSET"]
        assert not of_type(seen, "SpeechInterrupted")


async def test_a_position_after_an_interrupt_without_one_is_obeyed() -> None:
    """The listener has heard less than was sent; the agent must be silent all the same."""
    async with speaking(engine=SLOW) as server, flux(server) as client:
        await client.say(LONG)
        await hear(client, 48_000)
        await interrupted(client)
        await client.say(LONG)
        await client.until("sound")
        report = await interrupted(client, 500)
        assert (report["audio_played_ms"], report["text_spoken"]) == (500, "")
        await server.settled_engine()


async def test_speech_that_was_cut_short_is_told() -> None:
    short = FakeEngineConfig(frames_per_token=1, max_frames=10)
    async with speaking(engine=short) as server, flux(server) as client:
        await client.say("More than ten characters.")
        seen = await client.until("SpeechMetadata")
        assert [one["code"] for one in of_type(seen, "Warning")] == ["SPEECH_CUT_SHORT"]
        assert len(sound_of(seen)) == 10 * FRAME


@pytest.mark.parametrize(
    "given",
    [800, [], {}, {"type": "time_ms"}, {"type": "samples", "value": 1}]
    + [{"value": value} for value in (-1, True, "1", 1e30, [1])],
)
async def test_positions_that_are_none_end_the_socket(given: Any) -> None:
    async with speaking() as server, flux(server) as client:
        await client.send("Interrupt", playback_offset=given)
        error, close, _ = await client.refused()
        assert (error["code"], close) == ("MESSAGE-0000", 1003)
        assert "playback_offset" in error["description"]


@pytest.mark.parametrize("given", ["fast", True, [1], 10**400, -(10**400), float("nan")])
async def test_speeds_that_are_none_end_the_socket(given: Any) -> None:
    async with speaking() as server, flux(server) as client:
        await client.send("Configure", speed=given)
        assert (await client.refused())[0]["code"] == "MESSAGE-0000"


async def test_a_turn_has_an_end() -> None:
    limits = LimitsConfig(max_text_chars=100, max_turn_chars=250)
    config = ServerConfig(port=0, limits=limits)
    async with speaking(config, engine=SLOW) as server, flux(server) as client:
        await client.say("a" * 100, "b" * 100, "c" * 51, flush=False)
        error, _, _ = await client.refused()
        assert "250" in error["description"]
        await server.settled()


# The end.


async def test_close_speaks_what_there_is_first() -> None:
    async with speaking() as server, flux(server) as client:
        await client.say("First.")
        await client.say("And this without a flush.", flush=False)
        await client.send("Close")
        await client.say("Nobody hears this.")
        seen = await client.rest()
        assert types_of(seen) == [*ALL, "SpeechStarted", "sound", "SpeechMetadata"] + [
            "SessionMetadata"
        ]
        text = "First.And this without a flush."
        assert seen[-1] == {
            "type": "SessionMetadata",
            "total_audio_duration_ms": milliseconds(text),
            "total_input_character_count": len(text),
            "total_billable_character_count": len(text),
        }
        assert client.socket.close_code == 1000


async def test_what_livekit_sends_to_a_fresh_socket() -> None:
    async with speaking() as server, flux(server) as client:
        await client.send("Flush")
        await client.send("Close")
        assert types_of(await client.rest()) == ["Warning", "SessionMetadata"]
        assert client.socket.close_code == 1000


async def test_an_interrupt_after_close_ends_it() -> None:
    async with speaking(engine=SLOW) as server, flux(server) as client:
        await client.say(LONG)
        await client.until("sound")
        await client.send("Close")
        await client.send("Interrupt")
        assert types_of(await client.rest())[-2:] == ["SpeechInterrupted", "SessionMetadata"]
        await server.settled()


async def test_the_error_is_the_last_word() -> None:
    async with speaking(engine=SLOW) as server, flux(server) as client:
        await client.say(LONG, flush=False)
        await client.until("sound")
        await client.socket.send(json.dumps({"type": "Clear"}))
        seen = await client.rest()
        assert types_of(seen)[-1] == "Error" and "SessionMetadata" not in types_of(seen)
        assert "Interrupt" in seen[-1]["description"]


# The split of a text.


def test_a_text_is_split_at_a_word() -> None:
    turn = _Turn(pieces=["  One ", "two, ", "three.", " "], began=2.0)
    turn.spans = [SpokenSpan("One two,", 2.0, 3.0), SpokenSpan(" three. ", 3.0, 4.0)]
    text = "  One two, three. "
    for played, spoken in ((-1, ""), (0, ""), (0.5, "  One"), (1.0, "  One two,")):
        assert turn.split(played) == (spoken, text[len(spoken) :])
    assert turn.split(9.0) == ("  One two, three.", " ")
    turn.over, turn.seconds = True, 2.0
    assert turn.split(2.0) == (text, "") and turn.split(1.99) == ("  One two, three.", " ")


@pytest.mark.parametrize("before", [0, 49_572, 100_003, 1_234_567])
def test_a_turn_is_as_long_as_its_samples_wherever_it_begins(before: int) -> None:
    for samples in (0, 11, 12, 13, 36, 49_572, 49_573, 99_144):
        seconds = (before + samples) / 24_000 - before / 24_000
        assert account("turn", seconds, 0)["audio_duration_ms"] == round(samples / 24)
