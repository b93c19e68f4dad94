"""Traces: a span for every turn, by OpenTelemetry, where `serve --tracing` asks for it.

Spans are written after the fact, from moments that the server notes anyway. docs/tracing.md has
what is in them; it is never text.
"""
