"""A collector: an HTTP server that takes OTLP as protobuf, as `POST /v1/traces` has it."""

from __future__ import annotations

import contextlib
import gzip
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT_ID = "00f067aa0ba902b7"
TRACEPARENT = f"00-{TRACE_ID}-{PARENT_ID}-01"


@dataclass(frozen=True)
class Seen:
    """A span that came. `begins` and `ends`: nanoseconds since 1970."""

    name: str
    trace_id: str
    span_id: str
    parent_id: str
    begins: int
    ends: int
    attributes: dict[str, Any]
    events: list[tuple[str, dict[str, Any]]]
    failed: bool
    resource: dict[str, Any]


@dataclass
class Collector:
    """Where a server sends its spans; `endpoint` is for `OTEL_EXPORTER_OTLP_ENDPOINT`. `answers`:
    with this status."""

    endpoint: str
    answers: int = 200
    spans: list[Seen] = field(default_factory=list)
    raw: list[bytes] = field(default_factory=list)

    @property
    def turns(self) -> list[Seen]:
        """The spans of turns, in the order in which they ended."""
        found = [span for span in self.spans if "realtime_tts.turn.id" in span.attributes]
        return sorted(found, key=lambda span: span.ends)

    def parts(self, turn: Seen) -> list[Seen]:
        """The children of a turn's span, in the order in which they began."""
        found = [span for span in self.spans if span.parent_id == turn.span_id]
        return sorted(found, key=lambda span: (span.begins, span.ends))

    def names(self, turn: Seen) -> set[str]:
        return {part.name for part in self.parts(turn)}

    def took(self, body: bytes) -> None:
        request = ExportTraceServiceRequest.FromString(body)
        self.raw.append(body)
        for resource_spans in request.resource_spans:
            resource = _attributes(resource_spans.resource.attributes)
            for scope_spans in resource_spans.scope_spans:
                self.spans += [_seen(span, resource) for span in scope_spans.spans]


def _seen(span: Any, resource: dict[str, Any]) -> Seen:
    return Seen(
        span.name,
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        span.start_time_unix_nano,
        span.end_time_unix_nano,
        _attributes(span.attributes),
        [(event.name, _attributes(event.attributes)) for event in span.events],
        span.status.code == 2,
        resource,
    )


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}


@contextlib.contextmanager
def collecting(before: Callable[[], object] = lambda: None) -> Iterator[Collector]:
    """A collector for a block; `before` it answers, this is called."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            before()
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            assert self.path == "/v1/traces"
            collector.took(body)
            answer = ExportTraceServiceResponse().SerializeToString()
            self.send_response(collector.answers)
            self.send_header("content-type", "application/x-protobuf")
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *args: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    collector = Collector(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield collector
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def wall_ns() -> int:
    """Now, as spans have it."""
    return time.time_ns()
