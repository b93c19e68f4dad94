"""Every way to a turn is traced: other APIs over HTTP and sockets, several fronts, engines that
fail in the middle of it, and a collector that is away."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
import websockets
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from realtime_tts.adapters.tracing import current_traceparent
from realtime_tts.client import RealtimeTTS
from realtime_tts.config import ServerConfig
from realtime_tts.engine.fake import FakeEngineConfig
from realtime_tts.errors import ConfigError
from realtime_tts.server.checks import check_tracing
from realtime_tts.server.run import running
from realtime_tts.tracing.tracer import Tracer
from tests.engine.test_failover_processes import processes
from tests.fronts.running import serving, sessions
from tests.server.asking import answer_to
from tests.server.speaking import byte_tokenizer, speaking
from tests.server.talking import Talker
from tests.serving import serve_command
from tests.tracing.collector import PARENT_ID, TRACE_ID, TRACEPARENT, Collector, collecting
from tests.waiting import until

TRACED = ServerConfig(port=0, tracing=True)
HEADERS = {"traceparent": TRACEPARENT}
OURS = "realtime_tts."


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/audio/speech", {"model": "tts-1", "input": "Hello.", "voice": "alto"}),
        ("/v1/text-to-speech/alto/stream", {"text": "Hello."}),
        ("/v1/speak?model=alto", {"text": "Hello."}),
    ],
)
async def test_requests_of_other_apis(
    collector: Collector, path: str, body: dict[str, str]
) -> None:
    async with speaking(TRACED) as server:
        answer = await answer_to(server, "POST", path, json=body, headers=HEADERS)
        assert answer.status_code == 200, answer.text
        await until(lambda: collector.turns)
    (turn,) = collector.turns
    assert (turn.trace_id, turn.parent_id) == (TRACE_ID, PARENT_ID)
    assert {"tokenise", "queue", "prefill", "first_packet", "encode", "drain"} == collector.names(
        turn
    )
    assert turn.attributes[f"{OURS}characters"] == len("Hello.")


async def test_each_segment_of_a_socket_of_another_api_is_a_turn(collector: Collector) -> None:
    path = "/v1/text-to-speech/alto/stream-input?output_format=pcm_24000"
    async with speaking(TRACED) as server:
        url = f"ws://127.0.0.1:{server.port}{path}"
        async with websockets.connect(url, additional_headers=HEADERS, proxy=None) as socket:
            await socket.send(json.dumps({"text": " "}))
            await socket.send(json.dumps({"text": "Hello there. ", "flush": True}))
            await socket.send(json.dumps({"text": "And again. ", "flush": True}))
            await socket.send(json.dumps({"text": ""}))
            async for _ in socket:
                pass
        await until(lambda: len(collector.turns) == 2)
    for turn in collector.turns:
        assert (turn.trace_id, turn.parent_id) == (TRACE_ID, PARENT_ID)
        assert turn.attributes[f"{OURS}reason"] == "complete"
        assert {"tokenise", "queue", "prefill", "encode"} <= collector.names(turn)


async def test_a_turn_that_moves_to_another_engine_says_so(collector: Collector) -> None:
    link = processes(frames_per_token=1)
    async with running(TRACED, link, byte_tokenizer) as server:
        async with websockets.connect(server.websocket_url, proxy=None) as socket:
            talker = Talker(socket)
            await talker.until("ready")
            fields = {"text": "A long text, " * 6, "traceparent": TRACEPARENT}
            await talker.send("text", end=True, **fields)
            await talker.up_to(lambda found: isinstance(found, bytes))
            os.kill(link.pid or 0, signal.SIGKILL)
            done = (await talker.until("turn.done"))[-1]
        await until(lambda: collector.turns)
    (turn,) = collector.turns
    assert done["moves"] == turn.attributes[f"{OURS}moves"] == 1
    assert [name for name, _ in turn.events].count("moved") == 1
    prefills = [part for part in collector.parts(turn) if part.name == "prefill"]
    assert len(prefills) == 2 and turn.trace_id == TRACE_ID
    spoke = [part.attributes[f"{OURS}engine"] for part in [*prefills, turn]]
    assert spoke == [link.name] * 3


async def test_every_front_traces_its_turns_and_the_sum_has_examples(
    collector: Collector,
) -> None:
    async with serving(fronts=2, tracing=True) as server:
        async with sessions(server, 4, additional_headers=HEADERS) as opened:
            for one in opened:
                await one.say("Hello.")
                await one.until("turn.done")
        await until(lambda: len(collector.turns) == 4)
        accept = {"accept": "application/openmetrics-text; version=1.0.0"}
        answer = await server.get("/metrics", headers=accept)
    assert {turn.resource[f"{OURS}front"] for turn in collector.turns} == {1, 2}
    assert {turn.attributes[f"{OURS}engine"] for turn in collector.turns} == {"cpu"}
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    assert answer.text.endswith("# EOF\n")
    (line,) = (
        line
        for line in answer.text.splitlines()
        if line.startswith('tts_turns_total{reason="complete"}')
    )
    value, _, example = line.partition(" # ")
    assert value.split()[-1] == "4.0" and TRACE_ID in example
    last = max(collector.turns, key=lambda turn: turn.ends)
    assert last.span_id in example


async def test_a_collector_that_is_away_costs_its_spans_and_one_warning(
    monkeypatch: pytest.MonkeyPatch,
    logged: Callable[[], list[dict[str, Any]]],
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
    async with speaking(TRACED) as server:
        for turns in (1, 2):
            async with server.talk() as talker:
                await talker.send("text", text="Hello.", end=True)
                done = (await talker.until("turn.done"))[-1]
                assert done["reason"] == "complete"
            await until(lambda: server.value("tts_spans_dropped_total") >= turns)  # noqa: B023
    found = [line for line in logged() if line["level"] in ("warning", "error")]
    assert [line["event"] for line in found] == ["tracing.spans_lost"]


async def test_a_collector_that_wants_another_key_is_quoted(
    collector: Collector,
    logged: Callable[[], list[dict[str, Any]]],
) -> None:
    collector.answers = 401
    async with speaking(TRACED) as server, server.talk() as talker:
        await talker.send("text", text="Hello.", end=True)
        await talker.until("turn.done")
        await until(lambda: server.value("tts_spans_dropped_total"))
    (line,) = [line for line in logged() if line["event"] == "tracing.spans_lost"]
    assert "401" in line["why"]


async def test_a_collector_that_hangs_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()
    with collecting(lambda: release.wait(90)) as slow:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", slow.endpoint)
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "1")
        began = time.monotonic()
        async with speaking(TRACED) as server, server.talk() as talker:
            for _ in range(5):
                await talker.send("text", text="Hello.", end=True)
                await talker.until("turn.done")
                await asyncio.sleep(0.02)
            spoken = time.monotonic() - began
        release.set()
        assert spoken < 60
        assert time.monotonic() - began < spoken + 30  # the end waits two seconds


async def test_variables_say_what_the_service_is_called(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "voices")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=staging")
    async with speaking(TRACED) as server, server.talk() as talker:
        await talker.send("text", text="Hello.", end=True)
        await talker.until("turn.done")
        await until(lambda: collector.turns)
    resource = collector.turns[0].resource
    assert resource["service.name"] == "voices"
    assert resource["deployment.environment.name"] == "staging"


@pytest.mark.parametrize(
    ("service", "attributes", "name"),
    [
        (None, "service.name=voices", "voices"),
        ("", "service.name=voices", "voices"),
        ("voices", "service.name=others", "voices"),
        ("", "", "realtime-tts"),
    ],
)
def test_every_way_to_name_the_service_is_heeded(
    monkeypatch: pytest.MonkeyPatch, service: str | None, attributes: str, name: str
) -> None:
    if service is not None:
        monkeypatch.setenv("OTEL_SERVICE_NAME", service)
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", attributes)
    tracer = Tracer(lambda spans: None, {"front": 1})
    found = tracer._provider.resource.attributes
    tracer.close()
    assert found["service.name"] == name
    assert found["host.name"] == socket.gethostname()
    assert found["front"] == 1 and found["telemetry.sdk.language"] == "python"


def test_a_protocol_that_is_not_spoken_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    check_tracing(TRACED)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    check_tracing(ServerConfig())
    with pytest.raises(ConfigError, match="http/protobuf, got 'grpc'"):
        check_tracing(TRACED)


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        (
            "OTEL_BSP_MAX_QUEUE_SIZE",
            "100",
            "OTEL_BSP_MAX_EXPORT_BATCH_SIZE must be less than or equal to OTEL_BSP_MAX_QUEUE_SIZE",
        ),
        ("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "-1", "must be a non-negative integer but got -1"),
    ],
)
def test_what_the_sdk_does_not_take_is_said_before_the_start(
    variable: str, value: str, message: str
) -> None:
    done = subprocess.run(  # the SDK reads some when it is imported
        serve_command("--engine", "fake", "--tracing"),
        env=os.environ | {variable: value},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2, done.stderr
    assert message in done.stderr and "Traceback" not in done.stderr


def test_without_the_extra_the_flag_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "realtime_tts.tracing.tracer", None)
    check_tracing(ServerConfig())
    with pytest.raises(ConfigError, match=r"pip install -e '\.\[tracing\]'"):
        check_tracing(TRACED)


async def test_our_client_names_a_span_for_each_turn_also_where_it_goes_on(
    collector: Collector,
) -> None:
    engine = FakeEngineConfig(frames_per_token=1, step_seconds=0.005)
    async with speaking(TRACED, engine) as server:
        async with RealtimeTTS(server.running.websocket_url, lead_ms=30_000) as tts:
            turn = await tts.turn(traceparent=TRACEPARENT)
            await turn.send("The tide is coming in. ")
            await anext(turn)
            cut_off(tts)
            await turn.send("Good morning to you, and to all.", end=True)
            async for _ in turn:
                pass
            assert turn.resumes == 1
            async for _ in tts.speak("Alone."):
                pass
        await until(lambda: len(collector.turns) == 3)
    first, second, alone = collector.turns
    assert [first.parent_id, second.parent_id, alone.parent_id] == [PARENT_ID, PARENT_ID, ""]
    assert second.attributes[f"{OURS}resumed"] is True


async def test_the_span_around_an_adapters_call_is_passed_on() -> None:
    assert current_traceparent() is None
    tracer = TracerProvider().get_tracer("a framework")
    with tracer.start_as_current_span("reply") as span:
        context = span.get_span_context()
        assert current_traceparent() == f"00-{context.trace_id:032x}-{context.span_id:016x}-01"
    with trace.use_span(trace.NonRecordingSpan(trace.SpanContext(1, 2, is_remote=True))):
        assert current_traceparent() == f"00-{1:032x}-{2:016x}-00"


def cut_off(tts: RealtimeTTS) -> None:
    """Break the client's socket."""
    connection = tts._connection
    assert connection is not None
    connection._socket.transport.abort()
