"""Tracer: OpenTelemetry's SDK, as the standard `OTEL_*` variables set it up, and OTLP over HTTP.

Spans leave in batches, from a thread of the SDK's. If the collector is away, the spans that are
lost are counted, and one line is logged; nothing waits for it.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import NonRecordingSpan, Span, SpanContext, SpanKind, Status, StatusCode
from opentelemetry.trace import TraceFlags as Flags

from realtime_tts.errors import ConfigError
from realtime_tts.outage import Outage
from realtime_tts.protocol.effects import Begun
from realtime_tts.tracing import names
from realtime_tts.tracing.turn import TurnTrace
from realtime_tts.version import __version__

log = logging.getLogger(__name__)

_SERVICE = "realtime-tts"
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_CLOSE_SECONDS = 2.0
_MOST_SAID = 300
_TALKS = ("opentelemetry.exporter.otlp", "opentelemetry.sdk._shared_internal")
"""Loggers that report each batch that was lost; `_Counted` does so once, with their words."""


class Tracer:
    """Writes the spans of turns. `dropped` is called with how many spans were lost. `attributes`
    are those of the resource, besides the environment's, which `check_environment` checks."""

    def __init__(
        self, dropped: Callable[[int], None], attributes: Mapping[str, Any] | None = None
    ) -> None:
        for name in _TALKS:
            talks = logging.getLogger(name)
            talks.propagate, talks.handlers = False, [_SAID]
        own = {
            "service.name": _SERVICE,
            "service.version": __version__,
            "host.name": socket.gethostname(),  # of several servers, which it was
            **(attributes or {}),
        }
        # Once more over our own: what the environment says wins.
        resource = Resource.create(own).merge(OTELResourceDetector().detect())
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._processor = BatchSpanProcessor(_Counted(OTLPSpanExporter(), dropped))
        self._provider.add_span_processor(self._processor)
        self._tracer = self._provider.get_tracer("realtime_tts", __version__)

    def begin(
        self, turn_id: str, session: str, begun: Begun, model: str | None = None
    ) -> TurnTrace:
        """Begin the span of a turn that began at `begun.at` on the monotonic clock."""
        to_wall = time.time() - time.monotonic()
        named = {} if model is None else {names.REQUEST_MODEL: model}
        span = self._tracer.start_span(
            names.OPERATION if model is None else f"{names.OPERATION} {model}",
            context=_parent(begun.traceparent),
            kind=SpanKind.SERVER,
            start_time=int((begun.at + to_wall) * 1e9),
            attributes={
                names.OPERATION_NAME: names.OPERATION,
                names.PROVIDER: "realtime_tts",
                names.OUTPUT_TYPE: "speech",
                names.SESSION: session,
                names.TURN: turn_id,
                **named,
            },
        )
        return TurnTrace(self, span, begun, to_wall)

    def child(
        self, of: Span, name: str, begins: int, ends: int, attributes: Mapping[str, Any]
    ) -> None:
        """Write the span of a part of a turn, between these nanoseconds since 1970."""
        context = trace.set_span_in_context(of, Context())
        span = self._tracer.start_span(name, context, start_time=begins, attributes=attributes)
        span.end(max(begins, ends))

    def refused(
        self, parent: str, began: int, *, method: str, path: str, status: int | None, code: str
    ) -> None:
        """Write a span, child of `parent`, for a request that began at `began`, in nanoseconds
        since 1970, and was refused now. `status` None: it followed the upgrade."""
        answered = {} if status is None else {names.STATUS: status}
        span = self._tracer.start_span(
            names.REFUSED,
            context=_parent(parent),
            kind=SpanKind.SERVER,
            start_time=began,
            attributes={names.METHOD: method, names.PATH: path, **answered},
        )
        self.mark_failed(span, code)
        span.end()

    def mark_failed(self, span: Span, code: str) -> None:
        """Mark a span as failed with this code."""
        span.set_attribute(names.ERROR_TYPE, code)
        span.set_status(Status(StatusCode.ERROR))

    def close(self) -> None:
        """Send the spans that wait, for at most two seconds."""
        # In a thread that ends with the program: a collector that is away may be tried again for
        # long.
        closing = threading.Thread(target=self._provider.shutdown, name="traces", daemon=True)
        closing.start()
        closing.join(_CLOSE_SECONDS)


class _Said(logging.Handler):
    """The first thing that an exporter says about a batch that it cannot send: later ones only say
    that it has given up."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.first = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.first = self.first or record.getMessage()[:_MOST_SAID]


_SAID = _Said()


class _Counted(SpanExporter):
    """An exporter whose losses are counted, and logged once until it works again."""

    def __init__(self, exporter: SpanExporter, dropped: Callable[[int], None]) -> None:
        self._exporter, self._dropped = exporter, dropped
        self._outage = Outage(log, "tracing.spans_lost", "tracing.exports_again", logging.WARNING)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Export spans, in the SDK's thread."""
        _SAID.first = ""
        try:
            result = self._exporter.export(spans)
        except Exception as error:
            self._lost(len(spans), type(error).__name__)
            return SpanExportResult.FAILURE
        if result is not SpanExportResult.SUCCESS:
            self._lost(len(spans), _SAID.first or "the collector does not take them")
        else:
            self._outage.end()
        return result

    def shutdown(self) -> None:
        """Close the exporter."""
        self._exporter.shutdown()

    def _lost(self, spans: int, why: str) -> None:
        self._dropped(spans)
        self._outage.begin(spans=spans, why=why)


def _parent(traceparent: str | None) -> Context:
    """Return the context of the caller's span; an empty one without a span."""
    if traceparent is None:
        return Context()
    _, trace_id, span_id, flags = traceparent.split("-")
    context = SpanContext(
        int(trace_id, 16), int(span_id, 16), is_remote=True, trace_flags=Flags(int(flags, 16) & 1)
    )
    return trace.set_span_in_context(NonRecordingSpan(context), Context())


def check_environment() -> None:
    """Raise ConfigError if the environment asks for what a `Tracer` cannot do, and ValueError for
    what the SDK does not take."""
    for name in _PROTOCOLS:
        asked = os.environ.get(name, "http/protobuf")
        if asked != "http/protobuf":
            raise ConfigError(
                f"{name} must be http/protobuf, got {asked!r}: spans are sent by OTLP over HTTP, "
                f"mostly to port 4318"
            )
    Tracer(lambda spans: None).close()
