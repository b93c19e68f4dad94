"""The span around a framework's call, for the server's spans to be a part of its trace."""

from __future__ import annotations

import sys
from typing import Any


def current_traceparent() -> str | None:
    """That of the current span. None without one, and in a process that does not trace: whoever has
    a span has imported OpenTelemetry."""
    api = sys.modules.get("opentelemetry.trace")
    return None if api is None else traceparent_of(api.get_current_span())


def traceparent_of(span: Any) -> str | None:
    """A span of OpenTelemetry as in the W3C header; None for one that is none."""
    context = span.get_span_context()
    if not context.is_valid:
        return None
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags & 1:02x}"
