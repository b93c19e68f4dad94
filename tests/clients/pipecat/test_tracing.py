"""The framework's span of a reply is the parent of the server's span of the turn."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tests.clients.pipecat.our_service import service
from tests.clients.pipecat_rig import Rig, pipeline_with, response
from tests.clients.serving import Server, serving
from tests.tracing.collector import Collector, collecting
from tests.waiting import until


@contextmanager
def traced_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Server, Collector]]:
    with collecting() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint)
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
        with serving("--engine", "fake", "--tracing") as server:
            yield server, collector


async def until_turns(collector: Collector, count: int) -> None:
    await until(lambda: len(collector.turns) >= count)


async def test_each_reply_is_a_part_of_the_frameworks_span(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spans, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    trace.set_tracer_provider(provider)
    with traced_server(monkeypatch) as (server, collector):
        async with pipeline_with(Rig, service(server.url), traced=True) as rig:
            for count in (1, 2):
                await rig.send(*response("Hello ", "there."))
                await rig.until_stopped(count)
            await until_turns(collector, 2)
    finished = [span for span in spans.get_finished_spans() if span.name == "tts"]
    theirs = [context for span in finished if (context := span.get_span_context()) is not None]
    assert len(theirs) == 2
    assert [(turn.trace_id, turn.parent_id) for turn in collector.turns] == [
        (trace.format_trace_id(one.trace_id), trace.format_span_id(one.span_id)) for one in theirs
    ]


async def test_without_tracing_in_the_framework_a_turn_is_a_trace_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with traced_server(monkeypatch) as (server, collector):
        async with pipeline_with(Rig, service(server.url)) as rig:
            await rig.send(*response("Hello."))
            await rig.until_stopped()
            await until_turns(collector, 1)
    assert collector.turns[0].parent_id == ""
