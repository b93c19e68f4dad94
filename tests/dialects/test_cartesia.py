"""Cartesia's API over a WebSocket: what goes in, what comes out, and what is wrong with either."""

from __future__ import annotations

import json
from typing import Any

import pytest

from realtime_tts.config import LimitsConfig, ServerConfig
from realtime_tts.dialects.cartesia import CartesiaSocket
from realtime_tts.dialects.cartesia_messages import DEFAULT_BUFFER_DELAY_MS
from realtime_tts.server.track import STALL_SECONDS
from tests.dialects.asking import SLOW, full, used_up
from tests.dialects.cartesian import RAW, VOICE, cartesian, sound_of
from tests.dialects.document import prose
from tests.dialects.tones import FRAME
from tests.engine.faulty import Faults
from tests.server.speaking import speaking
from tests.server.talking import denied


def test_the_figures_in_the_document_are_the_code_s() -> None:
    section = prose("Cartesia")
    limits, server = LimitsConfig(), ServerConfig()
    assert f"up to {CartesiaSocket.max_contexts} contexts" in section
    assert f"for {limits.turn_idle_ms / 1000:.0f} s (`turn_idle_ms`)" in section
    assert f"by default {DEFAULT_BUFFER_DELAY_MS:,}." in section
    assert f"({server.lead_seconds:.0f} s) ahead" in section
    assert f"up to {limits.max_lead_ms / 1000:.0f} s." in section
    assert f"more than {STALL_SECONDS} s" in section
    assert f"nothing for {server.socket.write_stall:.0f} s" in section
    assert f"{CartesiaSocket.idle_seconds / 60:.0f} minutes" in section


# Speech.


async def test_one_request_is_one_context() -> None:
    async with speaking() as server, cartesian(server) as client:
        await client.say("Hello there.", continue_=False)
        seen = await client.until("done")
        assert len(sound_of(seen)) == len("Hello there.") * FRAME
        first, last = seen[0], seen[-1]
        assert (first["context_id"], first["flush_id"], first["status_code"]) == ("one", 1, 206)
        assert first["done"] is False and first["step_time"] >= 0
        assert last == {
            "type": "done",
            "done": True,
            "status_code": 200,
            "reason": "complete",
            "context_id": "one",
        }


async def test_three_turns_over_one_socket() -> None:
    async with speaking() as server, cartesian(server) as client:
        for turn in ("one", "two", "three"):
            await client.say("This is turn ", turn, continue_=True)
            await client.say(turn, turn, continue_=False)
            seen = await client.until("done")
            assert {message["context_id"] for message in seen} == {turn}
            assert len(sound_of(seen)) == len("This is turn " + turn) * FRAME


async def test_fifty_contexts_at_once() -> None:
    async with speaking() as server, cartesian(server) as client:
        names = [f"c{number}" for number in range(50)]
        for name in names:
            await client.say(f"Hello from {name}.", name, continue_=False)
        seen: list[dict[str, Any]] = []
        for _ in names:
            seen += await client.until("done")
        for name in names:
            assert len(sound_of(seen, name)) == len(f"Hello from {name}.") * FRAME


async def test_flushes_are_numbered_and_done_one_by_one() -> None:
    async with speaking() as server, cartesian(server) as client:
        await client.say("First.", continue_=True)
        await client.say("", continue_=True, flush=True)
        await client.say("Second one.", continue_=True, flush=True)
        await client.say("Third.", continue_=False)
        seen = await client.until("done")
        flushes = [message["flush_id"] for message in seen if message["type"] == "flush_done"]
        assert flushes == [1, 2]
        for number, text in ((1, "First."), (2, "Second one."), (3, "Third.")):
            chunks = [message for message in seen if message.get("flush_id") == number]
            assert len(sound_of(chunks)) == len(text) * FRAME
        first_done = next(n for n, m in enumerate(seen) if m["type"] == "flush_done")
        assert all(message["flush_id"] == 1 for message in seen[: first_done + 1])


async def test_whole_sentences_get_the_space_between_them() -> None:
    sentences = ("Your table is free.", "Come at eight.", " It is warm.")
    verbatim = sum(map(len, sentences))
    for delay, chars in ((0, verbatim + 1), (None, verbatim)):
        async with speaking() as server, cartesian(server) as client:
            for sentence in sentences:
                await client.say(sentence, continue_=True, max_buffer_delay_ms=delay)
            await client.say("", continue_=False, max_buffer_delay_ms=delay)
            assert len(sound_of(await client.until("done"))) == chars * FRAME


async def test_text_that_waits_too_long_is_spoken_to_its_end() -> None:
    async with speaking() as server, cartesian(server) as client:
        await client.say("Let me look that up", continue_=True, max_buffer_delay_ms=300)
        heard = b""
        while len(heard) < len("Let me look that up") * FRAME:
            heard += sound_of([await client.next()])
        await client.say(" and here it is.", continue_=False)
        assert len(sound_of(await client.until("done"))) == len("and here it is.") * FRAME


async def test_times_of_words_come_with_the_sound() -> None:
    text = "The quick brown fox jumps over the lazy dog."
    async with speaking() as server, cartesian(server) as client:
        await client.say(text, continue_=False, add_timestamps=True)
        words: list[str] = []
        heard, last, early = 0, 0.0, False
        for message in await client.until("done"):
            heard += len(sound_of([message]))
            if message["type"] != "timestamps":
                continue
            times = message["word_timestamps"]
            words += times["words"]
            early = early or len(words) < len(text.split())
            for start, end in zip(times["start"], times["end"], strict=True):
                assert last <= start + 1e-3 and start <= end <= heard / 48_000 + 1e-3
                last = end
        assert words == text.split() and early
        await client.say(text, "two", continue_=False)
        assert {message["type"] for message in await client.until("done")} == {"chunk", "done"}


# Cancelling.


async def test_a_cancelled_context_is_silent_at_once_and_without_a_word() -> None:
    async with speaking(engine=SLOW) as server, cartesian(server) as client:
        await client.say("A long answer that nobody wants to hear. " * 5, "old", continue_=True)
        await client.until("chunk", "old")
        await client.send(context_id="old", cancel=True)
        await client.send(context_id="old", cancel=True)
        await client.send(context_id="never", cancel=True)
        await client.say("New.", "new", continue_=False)
        seen = await client.until("done", "new")
        late = [message for message in seen if message["context_id"] == "old"]
        assert {message["type"] for message in late} <= {"chunk"}
        assert len(sound_of(seen, "new")) == len("New.") * FRAME
        await server.settled_engine()


async def test_a_cancelled_id_may_begin_again() -> None:
    async with speaking() as server, cartesian(server) as client:
        for _ in range(30):
            await client.say("Once more, from the top. ", continue_=True)
            await client.send(context_id="one", cancel=True)
        await client.say("Last.", continue_=False)
        await client.until("done")
        await server.settled_engine()


# What cannot be taken.


async def refused(client: Any) -> dict[str, Any]:
    message: dict[str, Any] = (await client.until("error"))[-1]
    assert message["done"] is False and message["title"] and message["request_id"]
    assert isinstance(message["context_id"], str)
    return message


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        ({"voice": {"mode": "id", "id": "nobody"}}, "alto"),
        ({"voice": {"mode": "embedding", "embedding": [0.1]}}, "voice.id"),
        ({"voice": 7}, "voice"),
        ({"output_format": {**RAW, "sample_rate": 7}}, "7"),
        ({"output_format": {**RAW, "encoding": "pcm_s64be"}}, "pcm_s64be"),
        ({"output_format": {**RAW, "container": "avi"}}, "avi"),
        ({"output_format": "raw"}, "output_format"),
        ({"generation_config": {"volume": 0.5}}, "generation_config.volume"),
        ({"transcript": 5}, "transcript"),
        ({"transcript": "a" * 20_000}, "16384"),
        ({"transcript": None}, "transcript"),
        ({"continue": "yes"}, "continue"),
        ({"max_buffer_delay_ms": 5_001}, "max_buffer_delay_ms"),
        ({"context_id": ""}, "context_id"),
        ({"context_id": None, "continue": True}, "context_id"),
        ({"context_id": ["\ud800"]}, "context_id"),
    ],
)
async def test_what_is_wrong_is_said_and_the_socket_goes_on(
    fields: dict[str, Any], names: str
) -> None:
    whole = {"transcript": "Hello.", "voice": VOICE, "output_format": RAW, "context_id": "one"}
    async with speaking() as server, cartesian(server) as client:
        await client.send(**(whole | fields))
        error = await refused(client)
        assert names in error["message"] and error["status_code"] == 400
        await client.say("Fine.", "two", continue_=False)
        await client.until("done", "two")


async def test_more_text_after_the_end_is_refused() -> None:
    async with speaking(engine=SLOW) as server, cartesian(server) as client:
        await client.say("A text that takes its time.", continue_=False)
        await client.say("More.", continue_=True)
        assert "ended" in (await refused(client))["message"]


async def test_what_other_servers_have_is_accepted() -> None:
    async with speaking() as server, cartesian(server) as client:
        await client.send(
            transcript="Hello.",
            context_id="x",
            model_id="sonic-9",
            output_format=RAW,
            voice={"mode": "id", "id": "6ccbfb76-1fc6-48f7-b71d-91ac6298247b"},
            language="tlh",
            add_phoneme_timestamps=True,
            use_normalized_timestamps=None,
            speed="normal",
            pronunciation_dict_id=None,
            generation_config={"speed": 1.0, "emotion": "calm"},
            unheard_of={"a": None},
            duration=None,
        )
        assert len(sound_of(await client.until("done"))) == len("Hello.") * FRAME
        await client.send(transcript="Hi.", voice="BASS", output_format=RAW)  # no id, and done
        assert len((await client.until("done"))[-1]["context_id"]) == 16


@pytest.mark.parametrize("raw", ["}{", '{"context_id": 1}'])
async def test_garbage_is_an_error_of_the_last_context(raw: str) -> None:
    async with speaking() as server, cartesian(server) as client:
        await client.say("Hello ", "mine", continue_=True)
        await client.socket.send(raw)
        assert (await refused(client))["context_id"] == "mine"
        await client.say("there.", "mine", continue_=False)
        await client.until("done")


async def test_half_open_contexts_end_by_themselves() -> None:
    limits = LimitsConfig(turn_idle_ms=100)
    async with speaking(ServerConfig(port=0, limits=limits)) as server, cartesian(server) as client:
        for number in range(20):
            await client.say("", f"c{number}", continue_=True)
        for _ in range(20):
            await client.until("done")
        assert server.running.front.sessions == 1


# Overload, failure, end.


async def test_no_place_for_a_context_is_an_error_of_it_alone() -> None:
    config = ServerConfig(port=0, limits=LimitsConfig(max_sessions=1))
    async with speaking(config) as server, cartesian(server) as client:
        await client.say("Hello ", "a", continue_=True)
        await client.say("Hello ", "b", continue_=True)
        error = await refused(client)
        assert (error["status_code"], error["context_id"]) == (503, "b")
        assert error["error_code"] == "concurrency_limited"
        await client.say("there.", "a", continue_=False)
        await client.until("done", "a")


@pytest.mark.parametrize("rest", [{"continue": False}, {"cancel": True}])
async def test_a_context_whose_first_text_is_refused_is_not_spoken_in_part(
    rest: dict[str, Any],
) -> None:
    async with speaking() as server, cartesian(server) as client:
        with full(server):
            await client.say("The beginning ", continue_=True)
            assert (await refused(client))["status_code"] == 503
        await client.say("and the middle ", continue_=True)
        await client.say("and the end.", **rest)
        await client.say("Next.", continue_=False)
        assert len(sound_of(await client.until("done"))) == len("Next.") * FRAME


@pytest.mark.parametrize(("middle", "status"), [("and the middle ", 429), ("a" * 20_000, 400)])
async def test_a_context_has_no_hole_where_a_text_was_refused(middle: str, status: int) -> None:
    async with speaking(engine=SLOW) as server, cartesian(server) as client:
        await client.say("The beginning ", continue_=True)
        await client.until("chunk")
        with used_up():
            await client.say(middle, continue_=True)
            error = await refused(client)
        assert (error["context_id"], error["status_code"]) == ("one", status)
        await client.say("and more ", continue_=True)
        await client.say("and the end.", continue_=False)
        await client.say("Next.", continue_=False)
        assert len(sound_of(await client.until("done"))) == len("Next.") * FRAME
        await server.settled_engine()


async def test_a_first_text_that_is_too_long_leaves_no_hole() -> None:
    async with speaking() as server, cartesian(server) as client:
        await client.say("a" * 20_000, continue_=True)
        assert (await refused(client))["status_code"] == 400
        await client.say("and the end.", continue_=False)
        await client.say("Next.", continue_=False)
        assert len(sound_of(await client.until("done"))) == len("Next.") * FRAME


@pytest.mark.parametrize("last", [False, True])
async def test_a_flush_that_is_refused_leaves_its_context(
    monkeypatch: pytest.MonkeyPatch, last: bool
) -> None:
    monkeypatch.setattr("realtime_tts.dialects.context._MAX_SEGMENTS", 2)
    async with speaking(engine=SLOW) as server, cartesian(server) as client:
        await client.say("The beginning.", continue_=True, flush=True)
        await client.say("", continue_=True, flush=True)
        await client.say("", continue_=not last, flush=True)
        seen = await client.up_to(lambda found: found["type"] == "error", past_errors=True)
        assert "2 flushes" in seen[-1]["message"]
        if not last:
            seen += await client.until("flush_done")
            await client.say("The end.", continue_=False)
        text = "The beginning." if last else "The beginning.The end."
        assert len(sound_of(seen + await client.until("done"))) == len(text) * FRAME


async def test_a_last_text_that_is_refused_ends_its_context() -> None:
    async with speaking(engine=SLOW) as server, cartesian(server) as client:
        await client.say("The beginning ", continue_=True)
        await client.until("chunk")
        with used_up():
            await client.say("and the end.", continue_=False)
            await refused(client)
        await client.say("Next.", continue_=False)
        assert len(sound_of(await client.until("done"))) == len("Next.") * FRAME


async def test_a_message_with_a_wrong_field_may_be_corrected() -> None:
    async with speaking() as server, cartesian(server) as client:
        for text, more in (("One, ", True), ("two.", False)):
            await client.say(text, continue_=more, max_buffer_delay_ms=-1)
            assert (await refused(client))["status_code"] == 400
            await client.say(text, continue_=more)
        assert len(sound_of(await client.until("done"))) == len("One, two.") * FRAME


async def test_a_failure_of_the_engine_is_an_error_of_its_context() -> None:
    faults = Faults()
    async with speaking(engine=SLOW, faults=faults) as server, cartesian(server) as client:
        await client.say("A text that will fail in the middle. ", "bad", continue_=True)
        await client.until("chunk", "bad")
        faults.numerics.update(server.engine._rows)
        error = await refused(client)
        assert error["context_id"] == "bad" and error["status_code"] >= 500
        await client.say("And the rest.", "bad", continue_=False)
        await client.say("Well.", "good", continue_=False)
        assert {message["context_id"] for message in await client.until("done")} == {"good"}


# Keys.


async def test_the_key_in_header_or_query() -> None:
    key = "sesame-open-12345"
    async with speaking(ServerConfig(port=0, api_keys=(key,))) as server:
        for query, headers in (
            ("", {"X-API-Key": key}),
            ("", {"Authorization": f"Bearer {key}"}),
            (f"&api_key={key}", {}),
            (f"&access_token={key}", {}),
        ):
            async with cartesian(server, query, additional_headers=headers) as client:
                await client.say("Hello.", continue_=False)
                await client.until("done")
        for query in ("", "&api_key=wrong"):
            response = await denied(cartesian(server, query))
            assert response.status_code == 401
            assert json.loads(response.body)["title"] == "Unauthorized"
