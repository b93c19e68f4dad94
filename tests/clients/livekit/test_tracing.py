"""The framework's span around a reply is the parent of the server's span of the turn."""

from __future__ import annotations

import pytest
from livekit.agents import telemetry
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from realtime_tts.adapters.livekit import TTS
from tests.clients.livekit_rig import Way, read, say
from tests.clients.serving import serving
from tests.tracing.collector import collecting
from tests.waiting import until


@pytest.mark.parametrize("way", [say, read])
async def test_a_reply_is_one_trace(way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    telemetry.set_tracer_provider(TracerProvider())
    with collecting() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint)
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
        with serving("--engine", "fake", "--tracing") as server:
            tracer = TracerProvider().get_tracer("an agent")
            async with TTS(server.url) as speaker:
                with tracer.start_as_current_span("a reply") as reply:
                    await way(speaker, "Hello." if way is read else ("Hel", "lo."))
                await until(lambda: collector.turns)
    (turn,) = collector.turns
    assert turn.trace_id == trace.format_trace_id(reply.get_span_context().trace_id)
    # The parent is the framework's own span of the request, which is in the reply's.
    assert turn.parent_id not in ("", trace.format_span_id(reply.get_span_context().span_id))
