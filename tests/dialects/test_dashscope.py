"""DashScope's Qwen-TTS-Realtime: what goes in, what comes out, in which order."""

from __future__ import annotations

import asyncio
import io
import wave
from functools import partial
from typing import Any

import pytest

from realtime_tts.config import LimitsConfig, ServerConfig
from realtime_tts.dialects import dashscope
from realtime_tts.dialects.dashscope import (
    HOLD_SECONDS,
    SENTENCE_HOLD_SECONDS,
    DashScopeSocket,
    ends_sentence,
)
from realtime_tts.dialects.dashscope_messages import our_voice
from realtime_tts.engine.link import Open
from realtime_tts.server.track import STALL_SECONDS
from tests.dialects.asking import SLOW, full, used_up
from tests.dialects.document import prose
from tests.dialects.qwen_realtime import (
    CLOSING,
    OPENING,
    qwen_realtime,
    responses,
    sound_of,
    types,
)
from tests.dialects.tones import FRAME
from tests.engine.faulty import Faults
from tests.server.speaking import speaking
from tests.server.talking import denied

DELTA = "response.audio.delta"
RESPONSE = [*OPENING, DELTA, *CLOSING]


def test_the_figures_in_the_document_are_the_code_s() -> None:
    limits, server = LimitsConfig(), ServerConfig()
    for figure in (
        f"at most {limits.max_text_chars:,} characters a message",
        f"at most {limits.max_instructions_chars:,} characters",
        f"pauses: for {HOLD_SECONDS:.0f} s, or for {SENTENCE_HOLD_SECONDS:.0f} s",
        f"`lead_seconds` ({server.lead_seconds:.0f} s)",
        f"more than {STALL_SECONDS} s",
        f"nothing for {server.socket.write_stall:.0f} s",
        f"for {DashScopeSocket.idle_seconds / 60:.0f} minutes",
    ):
        assert figure in prose("DashScope"), figure


def test_the_voices_in_the_document_are_the_code_s() -> None:
    for name, others, ours in (
        ("Cherry", ("ava", "ray"), "ava"),
        ("Ethan", ("ava", "ray"), "ray"),
        ("Cherry", ("vivian", "ryan", "serena"), "serena"),
        ("Ethan", ("vivian", "ryan", "serena"), "ryan"),
        ("Ono Anna", ("vivian", "ono_anna"), "ono_anna"),
        ("Cherry", ("somebody",), None),
        ("SOMEBODY", ("somebody",), "somebody"),
    ):
        assert our_voice(name, others) == ours


async def test_the_greeting_tells_the_session() -> None:
    async with speaking() as server, qwen_realtime(server) as client:
        session = client.created["session"]
        assert client.created["event_id"].startswith("event_")
        assert session["id"].startswith("sess_")
        assert session | {"id": ""} == {
            "id": "",
            "object": "realtime.session",
            "model": "qwen3-tts-flash-realtime",
            "voice": "tenor",
            "mode": "server_commit",
            "language_type": "Auto",
            "response_format": "pcm",
            "sample_rate": 24_000,
        }


# The mode `server_commit`.


async def test_deltas_are_spoken_as_they_come_and_a_commit_ends_the_response() -> None:
    async with speaking() as server, qwen_realtime(server) as client:
        await client.update(voice="bass", mode="server_commit")
        for turn in ("one", "two", "three"):
            await client.append("This is", " tur", f"n {turn}", ".")
            await client.until(DELTA)  # before the text is complete
            await client.commit()
            response = await client.response()
            assert response["status"] == "completed" and response["voice"] == "bass"
            assert response["usage"] == {"characters": len(f"This is turn {turn}.")}


async def test_every_event_of_a_response_in_its_order_and_with_its_ids() -> None:
    async with speaking() as server, qwen_realtime(server) as client:
        await client.update(mode="commit")
        await client.say("Hello there.")
        committed, *seen = await client.until("response.done")
        assert committed["type"] == "input_text_buffer.committed"
        assert types(seen) == RESPONSE
        assert len({event["event_id"] for event in seen}) == len(seen)
        created, done = seen[0]["response"], seen[-1]["response"]
        assert created["id"] == done["id"] and created["status"] == "in_progress"
        assert created["output"] == [] and created["object"] == "realtime.response"
        (item,) = done["output"]
        assert (item["id"], item["status"]) == (committed["item_id"], "completed")
        for event in seen[1:-1]:
            assert event["response_id"] == created["id"] and event["output_index"] == 0
            named = event["item"]["id"] if "item" in event else event["item_id"]
            assert named == item["id"]
            assert "item" in event or event["content_index"] == 0
        assert len(sound_of(seen)) == len("Hello there.") * FRAME


async def test_a_pause_after_a_sentence_ends_the_response(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("realtime_tts.dialects.dashscope.SENTENCE_HOLD_SECONDS", 0.05)
    async with speaking() as server, qwen_realtime(server) as client:
        await client.append("A whole ", "sentence.")
        seen = await client.until("response.done")
        assert types(seen) == RESPONSE
        assert len(sound_of(seen)) == len("A whole sentence.") * FRAME
        await client.commit()  # too late, but nothing to be told off for
        seen = await client.until("response.done")
        assert types(seen) == ["input_text_buffer.committed", "response.created", "response.done"]
        assert seen[-1]["response"]["usage"] == {"characters": 0}


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("Yes.", True),
        ("He said “no.” ", True),
        ("好的。", True),
        ("(Really?)", True),
        ("Wait…", True),
        ("one, two,", False),
        ("Hello", False),
        ("3.5 l", False),
    ],
)
def test_what_ends_a_sentence(text: str, ends: bool) -> None:
    assert ends_sentence(text) is ends


async def test_finish_speaks_the_rest_and_then_closes() -> None:
    async with speaking() as server, qwen_realtime(server) as client:
        await client.say("First. ")
        await client.append("And the last wor", "ds")
        await client.send("session.finish")
        seen = await client.rest()
        assert types(seen) == [
            "input_text_buffer.committed",
            *RESPONSE,
            *RESPONSE,
            "session.finished",
        ]
        assert len(sound_of(seen)) == len("First. And the last words") * FRAME
        assert client.socket.close_code == 1000
        await server.settled()


# The mode `commit`.


async def test_nothing_is_spoken_before_the_commit() -> None:
    async with speaking() as server, qwen_realtime(server) as client:
        await client.update(mode="commit")
        commands = server.spy_on_commands()
        await client.append("Not ", "this. ")
        await client.send("input_text_buffer.clear")
        assert types(await client.until("input_text_buffer.cleared")) == [
            "input_text_buffer.cleared"
        ]
        await client.append("But th", "is.")
        assert not commands
        await client.commit()
        seen = await client.until("response.done")
        assert len(sound_of(seen)) == len("But this.") * FRAME


async def test_commits_wait_for_each_other() -> None:
    texts = ["One.", "Number two.", "And three."]
    async with speaking() as server, qwen_realtime(server) as client:
        await client.update(mode="commit")
        for text in texts:
            await client.say(text)
        seen: list[dict[str, Any]] = []
        for text in texts:
            heard = await client.until("response.done")
            assert len(sound_of(heard)) == len(text) * FRAME
            seen += heard
        seen = [event for event in seen if event["type"] != "input_text_buffer.committed"]
        assert types(seen) == RESPONSE * 3


async def test_finish_commits_what_waits() -> None:
    async with speaking() as server, qwen_realtime(server) as client:
        await client.update(mode="commit")
        await client.append("Said at the end.")
        await client.send("session.finish")
        seen = await client.rest()
        assert types(seen) == [*RESPONSE, "session.finished"]


async def test_finish_with_nothing_said_closes_at_once() -> None:
    async with speaking() as server, qwen_realtime(server) as client:
        await client.send("session.finish")
        assert types(await client.rest()) == ["session.finished"]
        assert client.socket.close_code == 1000


async def test_an_empty_commit_is_an_error() -> None:
    async with speaking() as server, qwen_realtime(server) as client:
        for mode in ("commit", "server_commit"):
            await client.update(mode=mode)
            event_id = await client.send("input_text_buffer.commit")
            error = await client.refused()
            assert "empty" in error["message"] and error["event_id"] == event_id
            assert (error["type"], error["code"]) == ("invalid_request_error", "invalid_value")


# Cancelling.


async def test_a_cancel_ends_every_response_and_the_next_turn_is_clean() -> None:
    async with speaking(engine=SLOW) as server, qwen_realtime(server) as client:
        await client.update(mode="commit")
        for _ in range(3):
            await client.say("A long answer that nobody wants to hear. " * 5)
        await client.until(DELTA)
        await client.send("response.cancel")
        await client.say("New.")
        seen: list[dict[str, Any]] = []
        for _ in range(4):
            seen += await client.until("response.done")
        dones = responses(seen)
        assert [done["status"] for done in dones] == ["incomplete"] * 3 + ["completed"]
        last = [event for event in seen if event.get("response_id") == dones[-1]["id"]]
        assert len(sound_of(last)) == len("New.") * FRAME
        after = seen[seen.index(next(e for e in seen if e["type"] == "response.done")) :]
        assert {event["response_id"] for event in after if event["type"] == DELTA} == {
            dones[-1]["id"]
        }
        await server.settled_engine()
        assert server.value("tts_turns_total", reason="interrupted") == 1


async def test_races_of_text_and_cancel_leave_whole_responses() -> None:
    async with speaking() as server, qwen_realtime(server) as client:
        for number in range(30):
            await client.append("Once more, from the top. ")
            if number % 3 == 0:
                await client.commit()
            await client.send("response.cancel")
        await client.append("Last.")
        await client.send("session.finish")
        seen = await client.rest()
        by_response: dict[str, list[dict[str, Any]]] = {}
        for event in seen:
            id = event.get("response_id") or event.get("response", {}).get("id")
            if id is not None:
                by_response.setdefault(id, []).append(event)
        assert len(by_response) == 31
        for events in by_response.values():
            found = [type for type in types(events) if type != DELTA]
            assert found in ([*OPENING, *CLOSING], ["response.created", "response.done"])
        last = list(by_response.values())[-1]
        assert len(sound_of(last)) == len("Last.") * FRAME
        await server.settled()


async def test_a_cancel_while_finishing_and_a_cancel_of_nothing() -> None:
    async with speaking(engine=SLOW) as server, qwen_realtime(server) as client:
        await client.send("response.cancel")  # nobody answers, nothing breaks
        await client.append("A text that takes its time. " * 5)
        await client.until(DELTA)
        await client.send("session.finish")
        await client.send("response.cancel")
        seen = await client.rest()
        assert types(seen)[-2:] == ["response.done", "session.finished"]
        assert seen[-2]["response"]["status"] == "incomplete"
        assert client.socket.close_code == 1000


# Settings.


async def test_a_voice_changes_between_texts_and_never_within_one() -> None:
    async with speaking() as server, qwen_realtime(server) as client:
        await client.update(voice="bass", mode="commit")
        await client.say("In a low voice.")
        await client.send("session.update", session={"voice": "alto", "response_format": "wav"})
        await client.say("In a high one.")
        seen = await client.until("response.done") + await client.until("response.done")
        dones = responses(seen)
        assert [done["voice"] for done in dones] == ["bass", "alto"]
        order = [
            event["type"]
            for event in seen
            if event["type"] in ("response.created", "response.done")
        ]
        assert order == ["response.created", "response.done"] * 2
        first, second = (
            sound_of([event for event in seen if event.get("response_id") == done["id"]])
            for done in dones
        )
        assert len(first) == len("In a low voice.") * FRAME
        with wave.open(io.BytesIO(second)) as opened:
            assert opened.getframerate() == 24_000
        assert len(second) == 44 + len("In a high one.") * FRAME
        assert server.running.front.sessions == 1


async def test_a_dialogue_sent_at_once() -> None:
    async with speaking() as server, qwen_realtime(server) as client:
        voices = ["alto", "bass"] * 20
        for voice in voices:
            await client.send("session.update", session={"voice": voice})
            await client.append("A line of it.")
        await client.send("session.finish")
        seen = await client.rest()
        dones = responses(seen)
        assert [done["voice"] for done in dones] == voices
        assert len(sound_of(seen)) == len(voices) * len("A line of it.") * FRAME
        await server.settled()


@pytest.mark.parametrize("how", ["cancel", "hang up", "close", "end"])
async def test_what_is_silenced_with_the_voice_before_it_never_begins(how: str) -> None:
    async with speaking(engine=SLOW) as server, qwen_realtime(server) as client:
        commands = server.spy_on_commands()
        await client.append("A text that takes its time. " * 5)
        await client.until("response.created")
        for voice in ("bass", "alto", "soprano"):
            await client.update(voice=voice)
            await client.append("What comes next.")
        await client.update(language_type="English")  # all was taken in
        if how == "cancel":
            await client.send("response.cancel")
        elif how == "hang up":
            client.socket.transport.abort()
        elif how == "close":
            for _ in range(LimitsConfig().max_bad_messages + 1):
                await client.socket.send("no JSON")
        else:
            server.running.front.end_sessions()
        await server.settled_engine()
        assert sum(isinstance(command, Open) for command in commands) == 1


async def test_a_change_of_voice_needs_no_second_place() -> None:
    config = ServerConfig(port=0, limits=LimitsConfig(max_sessions=1))
    async with speaking(config, engine=SLOW) as server, qwen_realtime(server) as client:
        await client.append("A text that takes its time.")
        await client.update(voice="bass")
        await client.append("And another.")
        await client.send("session.finish")
        seen = await client.rest()
        dones = responses(seen)
        assert [done["voice"] for done in dones] == ["tenor", "bass"]


async def test_updates_add_up_and_null_is_nothing() -> None:
    async with speaking() as server, qwen_realtime(server) as client:
        await client.update(voice="BASS", mode="commit", instructions="Calmly.")
        session = await client.update(
            sample_rate=16_000,
            voice=None,
            enable_tn=True,
            optimize_instructions=False,
            language_type="English",
            volume=50,
            speech_rate=1.0,
            pitch_rate=1,
            unheard_of={"a": 1},
        )
        assert (session["voice"], session["mode"]) == ("bass", "commit")
        assert (session["sample_rate"], session["instructions"]) == (16_000, "Calmly.")
        await client.say("Hello.")
        heard = sound_of(await client.until("response.done"))
        assert abs(len(heard) - len("Hello.") * FRAME * 2 / 3) <= 2


async def test_dashscope_s_voices_get_one_of_ours() -> None:
    async with speaking() as server, qwen_realtime(server) as client:
        for name in ("Cherry", "Ethan", "Ono Anna"):
            assert (await client.update(voice=name))["voice"] == "tenor"


async def test_text_in_the_buffer_is_spoken_when_the_server_takes_over() -> None:
    async with speaking() as server, qwen_realtime(server) as client:
        await client.update(mode="commit")
        await client.append("Kept ")
        await client.update(mode="server_commit")
        await client.say("and spoken.")
        heard = sound_of(await client.until("response.done"))
        assert len(heard) == len("Kept and spoken.") * FRAME


@pytest.mark.parametrize(
    ("format", "magic"), [("mp3", b"\xff"), ("opus", b"OggS"), ("wav", b"RIFF")]
)
async def test_each_response_is_a_file_of_its_own(format: str, magic: bytes) -> None:
    async with speaking() as server, qwen_realtime(server) as client:
        await client.update(response_format=format, mode="commit", bit_rate=64)
        for _ in range(2):
            await client.say("Hello there, all of you.")
            assert sound_of(await client.until("response.done")).startswith(magic)


@pytest.mark.parametrize(
    ("format", "more", "sample_rate", "length"),
    [
        ("pcm_16000", {}, 16_000, 2_560),
        ("ulaw_8000", {}, 8_000, 640),
        ("ulaw", {}, 8_000, 640),
        ("pcm_16000", {"sample_rate": 8_000}, 8_000, 1_280),
    ],
)
async def test_a_rate_in_the_format_s_name_counts(
    format: str, more: dict[str, Any], sample_rate: int, length: int
) -> None:
    async with speaking() as server, qwen_realtime(server) as client:
        session = await client.update(response_format=format, **more)
        assert session["sample_rate"] == sample_rate
        await client.say("Hello.")
        sound = sound_of(await client.until("response.done"))
        assert len(sound) == pytest.approx(len("Hello.") * length, abs=2)


# What cannot be taken.


@pytest.mark.parametrize(
    ("session", "names"),
    [
        ({"voice": "nobody"}, "alto"),
        ({"voice": 7}, "session.voice"),
        ({"mode": "auto"}, "session.mode"),
        ({"mode": "\ud800"}, "session"),
        ({"response_format": "avi"}, "avi"),
        ({"sample_rate": 7}, "7"),
        ({"sample_rate": "high"}, "session.sample_rate"),
        ({"response_format": "mp3", "bit_rate": 63}, "63"),
        ({"pitch_rate": 0.5}, "session.pitch_rate"),
        ({"volume": 80}, "session.volume"),
        ({"instructions": "a" * 3_000}, "instructions"),
        ({"seed": -1}, "session.seed"),
        ("loud", "session"),
    ],
)
async def test_a_bad_update_changes_nothing(session: Any, names: str) -> None:
    async with speaking() as server, qwen_realtime(server) as client:
        await client.update(voice="bass")
        event_id = await client.send("session.update", session=session)
        error = await client.refused()
        assert names in error["message"] and error["event_id"] == event_id
        await client.say("Fine.")
        done = await client.response()
        assert (done["voice"], done["status"]) == ("bass", "completed")


@pytest.mark.parametrize(
    "raw",
    [
        "}{",
        '{"type": "response.create"}',
        '{"type": ["input_text_buffer.append"]}',
        '{"type": "input_text_buffer.append"}',
        "{}",
        '{"type": "input_text_buffer.append", "text": 5}',
        '{"type": "input_text_buffer.append", "text": "' + "a" * 20_000 + '"}',
    ],
)
async def test_a_message_that_is_none_is_an_error_without_an_id(raw: str) -> None:
    async with speaking() as server, qwen_realtime(server) as client:
        await client.append("Hello ")
        await client.socket.send(raw)
        error = await client.refused()
        assert error["type"] == "invalid_request_error" and "event_id" not in error
        await client.say("there.")
        await client.until("response.done")


async def test_no_text_after_finish() -> None:
    async with speaking(engine=SLOW) as server, qwen_realtime(server) as client:
        await client.append("A text that takes its time.")
        await client.send("session.finish")
        await client.append("More.")
        assert "session.finish" in (await client.refused())["message"]
        assert types(await client.rest())[-1] == "session.finished"


async def test_a_flood_of_text_is_bounded() -> None:
    limits = LimitsConfig(max_text_chars=500, max_turn_chars=1_000)
    async with speaking(ServerConfig(port=0, limits=limits)) as server:
        for mode in ("commit", "server_commit"):
            async with qwen_realtime(server) as client:
                await client.update(mode=mode)
                for _ in range(6):
                    await client.append("a" * 200)
                assert "1000" in (await client.refused())["message"]


# Overload, failure, end.


async def test_a_failure_of_the_engine_ends_what_was_promised() -> None:
    faults = Faults()
    async with speaking(engine=SLOW, faults=faults) as server, qwen_realtime(server) as client:
        await client.update(mode="commit")
        for text in ("A text that will fail in the middle. ", "Another."):
            await client.say(text)
        await client.until(DELTA)
        faults.numerics.update(server.engine._rows)
        error = await client.refused()
        assert error["type"] == "server_error"
        failed, lost = [await client.response() for _ in range(2)]
        assert (failed["status"], lost["status"]) == ("failed", "failed")
        await client.say("Well.")
        assert (await client.response())["status"] == "completed"


async def test_a_response_whose_beginning_is_refused_is_not_spoken_in_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dashscope, "HOLD_SECONDS", 60.0)
    async with speaking() as server, qwen_realtime(server) as client:
        await client.update(mode="server_commit")
        with full(server):
            await client.append("The beginning ")
            await client.refused()
        await client.say("and the rest.")
        assert (await client.response())["usage"] == {"characters": 0}
        await client.say("Next.")
        assert (await client.response())["usage"] == {"characters": len("Next.")}


@pytest.mark.parametrize("middle", ["and the middle ", "a" * 20_000])
async def test_a_response_has_no_hole_where_a_text_was_refused(
    monkeypatch: pytest.MonkeyPatch, middle: str
) -> None:
    monkeypatch.setattr(dashscope, "HOLD_SECONDS", 60.0)
    async with speaking() as server, qwen_realtime(server) as client:
        await client.append("The beginning ")
        await client.until(DELTA)
        with used_up():
            await client.append(middle)
            await client.refused()
        await client.say("and more ", "and the end.")
        for text in ("The beginning ", "Next."):
            assert (await client.response())["usage"] == {"characters": len(text)}
            await client.say("Next.")


async def test_text_that_waits_has_no_hole_where_one_was_too_much() -> None:
    limits = LimitsConfig(max_text_chars=30, max_turn_chars=30)
    async with speaking(ServerConfig(port=0, limits=limits)) as server:
        async with qwen_realtime(server) as client:
            await client.update(mode="commit")
            for finish in (client.commit, partial(client.send, "input_text_buffer.clear")):
                await client.append("The beginning ", "and the middle, too much, ")
                await client.refused()
                await client.append("and the end.")
                await finish()
            await client.say("Next.")
            for text in ("The beginning ", "Next."):
                assert (await client.response())["usage"] == {"characters": len(text)}


async def test_text_after_a_response_that_was_refused_in_the_middle_waits_for_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where the response waits behind another, its text may pause for longer."""
    monkeypatch.setattr(dashscope, "HOLD_SECONDS", 0.1)
    async with speaking(engine=SLOW) as server, qwen_realtime(server) as client:
        await client.say("A text that takes its time. " * 2)
        await client.append("The beginning ")
        with used_up():
            await client.append("and the middle ")
            await client.refused()
        await asyncio.sleep(0.2)
        await client.say("and the end.")
        await client.until("response.done")
        assert (await client.response())["usage"] == {"characters": len("The beginning ")}


@pytest.mark.parametrize("mode", ["server_commit", "commit"])
async def test_an_update_ends_a_response_that_was_refused(mode: str) -> None:
    async with speaking() as server, qwen_realtime(server) as client:
        with full(server):
            await client.append("The beginning ")
            await client.refused()
        await client.update(mode=mode)
        await client.say("Next.")
        assert (await client.response())["usage"] == {"characters": len("Next.")}


async def test_text_that_waits_has_no_hole_after_an_update() -> None:
    limits = LimitsConfig(max_text_chars=30, max_turn_chars=30)
    async with speaking(ServerConfig(port=0, limits=limits)) as server:
        async with qwen_realtime(server) as client:
            await client.update(mode="commit")
            await client.append("The beginning ", "and the middle, too much, ")
            await client.refused()
            await client.update(voice="bass")
            await client.say("and the end.")
            assert (await client.response())["usage"] == {"characters": len("The beginning ")}


async def test_a_pause_ends_a_response_that_was_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dashscope, "SENTENCE_HOLD_SECONDS", 0.2)
    async with speaking() as server, qwen_realtime(server) as client:
        await client.update(mode="server_commit")
        with full(server):
            await client.append("The beginning ")
            await client.refused()
        await client.append("and the rest.")
        await asyncio.sleep(0.3)
        await client.append("Next.")
        assert (await client.response())["usage"] == {"characters": len("Next.")}


async def test_the_rest_of_a_response_that_fails_is_not_spoken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dashscope, "HOLD_SECONDS", 60.0)
    faults = Faults()
    async with speaking(engine=SLOW, faults=faults) as server, qwen_realtime(server) as client:
        await client.update(mode="server_commit")
        await client.append("A text that will fail in the middle ")
        await client.until(DELTA)
        faults.numerics.update(server.engine._rows)
        await client.refused()
        assert (await client.response())["status"] == "failed"
        await client.say("and the rest.")
        assert (await client.response())["usage"] == {"characters": 0}


async def test_the_server_s_end_ends_the_response() -> None:
    async with speaking(engine=SLOW) as server, qwen_realtime(server) as client:
        await client.append("A long text. " * 10)
        await client.until(DELTA)
        server.running.front.end_sessions()
        assert types(await client.rest())[-1] == "response.done"
        await server.settled()


async def test_an_idle_socket_is_closed_with_1000(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DashScopeSocket, "idle_seconds", 0.1)
    async with speaking() as server, qwen_realtime(server) as client:
        assert await client.rest() == []
        assert client.socket.close_code == 1000


async def test_the_key_as_bearer() -> None:
    key = "sesame-open-12345"
    async with speaking(ServerConfig(port=0, api_keys=(key,))) as server:
        headers = {"Authorization": f"Bearer {key}"}
        async with qwen_realtime(server, additional_headers=headers) as client:
            await client.append("Hello.")
            await client.send("session.finish")
            assert types(await client.rest())[-1] == "session.finished"
        response = await denied(
            qwen_realtime(server, additional_headers={"Authorization": "Bearer no"})
        )
        assert response.status_code == 401
        assert b'"InvalidApiKey"' in response.body


async def test_sockets_do_not_mix() -> None:
    async with speaking() as server:
        async with qwen_realtime(server) as one, qwen_realtime(server) as two:
            short, long = "Yes.", "A somewhat longer answer."
            await one.append(short)
            await two.say(long)
            heard = sound_of(await two.until("response.done"))
            await one.commit()
            assert len(heard) == len(long) * FRAME
            assert len(sound_of(await one.until("response.done"))) == len(short) * FRAME
