"""Spans of turns, as a collector gets them: whose children they are, and what is in them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any

import pytest

from realtime_tts.config import LimitsConfig, ServerConfig
from realtime_tts.engine.fake import FakeEngineConfig
from tests.server.resuming import spoken, whole
from tests.server.speaking import speaking
from tests.tracing.collector import PARENT_ID, TRACE_ID, TRACEPARENT, Collector, Seen, wall_ns
from tests.waiting import until
from tts_scheduler import SchedulerConfig

TRACED = ServerConfig(port=0, tracing=True)
OTHER_ID = "0af7651916cd43dd8448eb211c80319c"
OTHER = f"00-{OTHER_ID}-b7ad6b7169203331-01"
OURS = "realtime_tts."
SECRET = "Zanzibar"


async def turns_of(collector: Collector, count: int = 1) -> list[Seen]:
    await until(lambda: len(collector.turns) >= count)
    assert len(collector.turns) == count
    return collector.turns


async def test_a_turn_is_a_span_with_its_parts_and_what_the_client_was_told(
    collector: Collector,
) -> None:
    before = wall_ns()
    async with speaking(TRACED) as server, server.talk(f"?traceparent={TRACEPARENT}") as talker:
        await talker.send("text", text=f"Hello {SECRET}.", end=True)
        done = (await talker.until("turn.done"))[-1]
        (turn,) = await turns_of(collector)
    parts = collector.parts(turn)
    assert (turn.trace_id, turn.parent_id) == (TRACE_ID, PARENT_ID)
    assert turn.name == f"text_to_speech {turn.attributes['gen_ai.request.model']}"
    expected = {
        "gen_ai.operation.name": "text_to_speech",
        "gen_ai.output.type": "speech",
        "gen_ai.usage.input_tokens": done["text_chars"],
        f"{OURS}turn.id": done["turn_id"],
        f"{OURS}reason": "complete",
        f"{OURS}characters": done["text_chars"],
        f"{OURS}audio.seconds": pytest.approx(done["samples"] / 24_000, abs=1e-4),
        f"{OURS}ttfa.seconds": pytest.approx(done["ttfa_ms"] / 1000),
        f"{OURS}underruns": done["underruns"],  # none, unless the machine stands still
        f"{OURS}moves": 0,
        f"{OURS}resumed": False,
    }
    assert {name: turn.attributes[name] for name in expected} == expected
    assert not turn.failed
    names = [part.name for part in parts]
    for name in ("tokenise", "queue", "prefill", "first_packet", "encode", "drain"):
        assert names.count(name) == 1, name
    assert all(part.trace_id == TRACE_ID for part in parts)
    assert before <= turn.begins <= min(part.begins for part in parts) + 1_000_000
    assert max(part.ends for part in parts) <= turn.ends <= wall_ns()
    by_name = {part.name: part for part in parts}
    assert by_name["tokenise"].ends == by_name["queue"].begins
    assert by_name["queue"].ends == by_name["prefill"].begins
    assert by_name["prefill"].ends == by_name["first_packet"].begins
    first = by_name["first_packet"].ends - turn.begins
    assert done["ttfa_ms"] - 0.1 <= first / 1e6 < done["ttfa_ms"] + 100
    assert turn.resource["service.name"] == "realtime-tts"
    assert SECRET.encode() not in b"".join(collector.raw)


async def test_the_nearest_span_that_a_client_names_is_the_parent(collector: Collector) -> None:
    headers = {"traceparent": TRACEPARENT}
    async with speaking(TRACED) as server:
        async with server.talk(additional_headers=headers) as talker:
            for fields in ({}, {"traceparent": OTHER}, {}):
                await talker.send("text", text="Hello.", end=True, **fields)
                await talker.until("turn.done")
            await talker.send("session.start", traceparent=OTHER)
            await talker.send("text", text="Hello.", end=True)
            await talker.until("turn.done")
            await talker.send("session.start", traceparent=None)
            await talker.send("text", text="Hello.", end=True)
            await talker.until("turn.done")
        async with server.talk() as talker:
            await talker.send("text", text="Hello.", end=True)
            await talker.until("turn.done")
        turns = await turns_of(collector, 6)
    assert [turn.trace_id for turn in turns[:5]] == [
        TRACE_ID,
        OTHER_ID,
        TRACE_ID,
        OTHER_ID,
        TRACE_ID,
    ]
    assert turns[5].parent_id == "" and turns[5].trace_id not in (TRACE_ID, OTHER_ID)


@pytest.mark.parametrize(
    "header",
    [
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
        "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
        "nonsense",
    ],
)
async def test_a_header_that_is_malformed_is_as_good_as_none(
    collector: Collector, header: str
) -> None:
    headers = {"traceparent": header}
    async with speaking(TRACED) as server, server.talk(additional_headers=headers) as talker:
        await talker.send("text", text="Hello.", end=True)
        await talker.until("turn.done")
        (turn,) = await turns_of(collector)
    assert turn.parent_id == "" and turn.trace_id != TRACE_ID


async def test_a_header_of_a_later_version_counts_as_far_as_it_is_known(
    collector: Collector,
) -> None:
    headers = {"traceparent": "01" + TRACEPARENT[2:] + "-more"}
    async with speaking(TRACED) as server, server.talk(additional_headers=headers) as talker:
        await talker.send("text", text="Hello.", end=True)
        await talker.until("turn.done")
        (turn,) = await turns_of(collector)
    assert (turn.trace_id, turn.parent_id) == (TRACE_ID, PARENT_ID)


async def test_a_traceparent_in_a_message_must_be_one() -> None:
    async with speaking(TRACED) as server, server.talk() as talker:
        await talker.send("text", text="Hello.", traceparent="nonsense")
        error = await talker.next()
        assert error["code"] == "bad_message" and "W3C traceparent" in error["message"]


async def test_a_caller_that_does_not_sample_gets_no_span(collector: Collector) -> None:
    async with speaking(TRACED) as server, server.talk() as talker:
        await talker.send("text", text="No.", end=True, traceparent=TRACEPARENT[:-2] + "00")
        await talker.until("turn.done")
        await talker.send("text", text="Yes.", end=True, traceparent=OTHER)
        await talker.until("turn.done")
        (turn,) = await turns_of(collector)
    assert turn.trace_id == OTHER_ID


async def test_pauses_of_the_text_are_holds(collector: Collector) -> None:
    engine = FakeEngineConfig(frames_per_token=1, step_seconds=0.001)
    async with speaking(TRACED, engine) as server, server.talk("?pacing=token") as talker:
        await talker.send("text", text="Well, ")
        await talker.until("turn.started")
        await asyncio.sleep(0.4)
        await talker.send("text", text="hello there.", end=True)
        done = (await talker.until("turn.done"))[-1]
        (turn,) = await turns_of(collector)
    holds = [part for part in collector.parts(turn) if part.name == "hold"]
    assert turn.attributes[f"{OURS}holds"] == len(holds) > 0
    assert turn.attributes[f"{OURS}held.seconds"] == pytest.approx(done["held_ms"] / 1000)
    held = sum(hold.ends - hold.begins for hold in holds) / 1e9
    assert held == pytest.approx(done["held_ms"] / 1000, abs=0.1) and held > 0.2


async def test_a_turn_that_waits_for_another_says_so(collector: Collector) -> None:
    engine = FakeEngineConfig(frames_per_token=1, step_seconds=0.005)
    async with speaking(TRACED, engine) as server, server.talk() as talker:
        await talker.send("text", turn_id="a", text="A first one, not short.", end=True)
        await talker.send("text", turn_id="b", text="And a second.", end=True)
        await talker.until("turn.done")
        await talker.until("turn.done")
        first, second = await turns_of(collector, 2)
    queue = next(part for part in collector.parts(second) if part.name == "queue")
    assert queue.attributes[f"{OURS}queue.of"] == "session"
    assert queue.begins == pytest.approx(second.begins, abs=1_000_000)
    assert queue.ends >= first.ends - 1_000_000
    queues = [part for part in collector.parts(first) if part.name == "queue"]
    assert [part.attributes[f"{OURS}queue.of"] for part in queues] == ["engine"]


async def test_an_interrupted_turn_ends_with_the_interrupt(collector: Collector) -> None:
    engine = FakeEngineConfig(frames_per_token=1, step_seconds=0.01)
    async with speaking(TRACED, engine) as server, server.talk() as talker:
        await talker.send("text", text="A long text, " * 20, end=True)
        await talker.up_to(lambda found: isinstance(found, bytes))
        await talker.send("interrupt")
        done = (await talker.until("turn.done"))[-1]
        (turn,) = await turns_of(collector)
    assert turn.attributes[f"{OURS}reason"] == "interrupted" and not turn.failed
    assert turn.attributes[f"{OURS}audio.seconds"] == pytest.approx(
        done["samples"] / 24_000, abs=1e-4
    )
    assert {"prefill", "first_packet"} <= collector.names(turn)
    assert "drain" not in collector.names(turn)


async def test_a_refused_turn_is_a_span_that_failed(
    collector: Collector, logged: Callable[[], list[dict[str, Any]]]
) -> None:
    config = ServerConfig(port=0, tracing=True, limits=LimitsConfig(max_queued_turns=1))
    engine = FakeEngineConfig(frames_per_token=1, step_seconds=0.01)
    async with speaking(config, engine) as server, server.talk() as talker:
        for turn_id in "abc":
            fields = {"traceparent": OTHER} if turn_id == "c" else {}
            await talker.send("text", turn_id=turn_id, text="One of three.", end=True, **fields)
        for _ in "abc":
            await talker.until("turn.done")
        turns = await turns_of(collector, 3)
    refused = next(turn for turn in turns if turn.failed)
    assert refused.attributes["error.type"] == "queue_full"
    assert (refused.attributes[f"{OURS}turn.id"], refused.trace_id) == ("c", OTHER_ID)
    assert collector.parts(refused) == []
    lines = [line for line in logged() if line.get("turn") == "c"]
    assert [line["event"] for line in lines] == ["session.error", "turn.done"]
    assert {(line["trace_id"], line["span_id"]) for line in lines} == {(OTHER_ID, refused.span_id)}


async def test_a_turn_that_the_engine_refuses_waited_for_it(collector: Collector) -> None:
    config = SchedulerConfig(slots=1, max_queue=0)
    engine = FakeEngineConfig(frames_per_token=1, step_seconds=0.01, slots=1)
    async with speaking(TRACED, engine, scheduler=config) as server:
        async with server.talk() as one, server.talk() as other:
            await one.send("text", text="A long text, " * 20, end=True)
            await one.up_to(lambda found: isinstance(found, bytes))
            await other.send("text", text="Refused.", end=True)
            await other.until("turn.done")
            (turn,) = await turns_of(collector)
    assert turn.failed and turn.attributes["error.type"] == "overloaded"
    assert {"tokenise", "queue"} <= collector.names(turn)
    assert "prefill" not in collector.names(turn)


async def test_a_resumed_turn_is_in_the_trace_that_it_was_begun_in(collector: Collector) -> None:
    text = "The tide is coming in. Good morning to you, and to all who are with you!"
    async with speaking(TRACED) as server:
        query = f"?resume=on&lead_ms=30000&traceparent={TRACEPARENT}"
        kept = await spoken(lambda: server.talk(query), whole(text), [3])
        assert kept.done is not None
        first, second = await turns_of(collector, 2)
    assert {first.trace_id, second.trace_id} == {TRACE_ID}
    assert first.attributes[f"{OURS}reason"] == "closed"
    assert second.attributes[f"{OURS}reason"] == "complete"
    assert [turn.attributes[f"{OURS}resumed"] for turn in (first, second)] == [False, True]


async def test_a_turn_goes_on_at_the_next_sample_in_whatever_trace(collector: Collector) -> None:
    text = "The tide is coming in. Good morning to you, and to all who are with you!"
    async with speaking(TRACED) as server:
        queries = iter([f"&traceparent={TRACEPARENT}", f"&traceparent={OTHER}", "", ""])

        def connect() -> Any:
            return server.talk(f"?resume=on&lead_ms=30000{next(queries)}")

        kept = await spoken(connect, whole(text), [3, 6])
        undisturbed = await spoken(connect, whole(text))
        assert kept.audio == undisturbed.audio
        assert not [one for one in kept.messages if one["type"] == "warning"]
        turns = await turns_of(collector, 4)
    assert [turn.trace_id for turn in turns[:2]] == [TRACE_ID, OTHER_ID]


async def test_lines_of_the_log_belong_to_spans(
    collector: Collector, logged: Callable[[], list[dict[str, Any]]]
) -> None:
    headers = {"traceparent": TRACEPARENT}
    async with speaking(TRACED) as server:
        async with server.talk(additional_headers=headers) as talker:
            await talker.send("text", text="Hello.", end=True)
            await talker.until("turn.done")
        (turn,) = await turns_of(collector)
        await server.settled()
    found = {line["event"]: line for line in logged() if line["event"].split(".")[0] != "server"}
    for name in ("session.open", "session.closed"):
        assert (found[name]["trace_id"], found[name]["span_id"]) == (TRACE_ID, PARENT_ID)
    assert (found["turn.done"]["trace_id"], found["turn.done"]["span_id"]) == (
        TRACE_ID,
        turn.span_id,
    )


async def test_without_tracing_nothing_is_sent_and_the_log_has_no_ids(
    collector: Collector, logged: Callable[[], list[dict[str, Any]]]
) -> None:
    async with speaking() as server, server.talk(f"?traceparent={TRACEPARENT}") as talker:
        await talker.send("text", text="Hello.", end=True)
        await talker.until("turn.done")
    assert collector.spans == []
    assert not [line for line in logged() if "trace_id" in line]


async def test_values_are_tied_to_traces_where_openmetrics_is_accepted(
    collector: Collector,
) -> None:
    async with speaking(TRACED) as server, server.talk(f"?traceparent={TRACEPARENT}") as talker:
        await talker.send("text", text="Hello.", end=True)
        await talker.until("turn.done")
        (turn,) = await turns_of(collector)
        page = server.running.front.metrics.render("application/openmetrics-text; version=1.0.0")
        plain = server.running.front.metrics.render("text/plain")
    tied = [line for line in page.text.decode().splitlines() if TRACE_ID in line]
    tied = [line for line in tied if "underrun" not in line]  # where the machine stood still
    assert [re.split(r"[{ ]", line)[0] for line in tied] == [
        "tts_ttfa_seconds_bucket",
        "tts_turns_total",
        "tts_slo_turns_total",
        "tts_slo_good_turns_total",
    ]
    assert all(turn.span_id in line for line in tied)
    assert TRACE_ID not in plain.text.decode()
