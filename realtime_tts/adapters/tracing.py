"""The span around a framework's call, so that the server's spans are a part of its trace."""

from __future__ import annotations

import sys
from typing import Any


def current_traceparent() -> str | None:
    """Return the traceparent of the current span. None without one, and in a process that does not
    trace: a program with a span has imported OpenTelemetry."""
    api = sys.modules.get("opentelemetry.trace")
    return None if api is None else traceparent_of(api.get_current_span())


def traceparent_of(span: Any) -> str | None:
    """Return a span of OpenTelemetry as in the W3C header; None for an invalid one."""
    context = span.get_span_context()
    if not context.is_valid:
        return None
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags & 1:02x}"
