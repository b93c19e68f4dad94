"""Log lines: JSON or for a terminal, never a line that a client could forge, never any text.

Every line goes through one handler that writes in a thread of its own: a log pipe that is not read
must not stop the event loop, so lines are dropped (and counted) when 10,000 wait. What is spoken is
never logged, only its length; query strings are cut off, because settings such as `instructions`
travel in them.
"""

from __future__ import annotations

import json
import logging
import queue
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, TextIO

from realtime_tts.config import LogFormat

_QUEUE_LINES = 10_000
_CLOSE_SECONDS = 1.0
_TOGETHER_SECONDS, _TOGETHER_LINES = 0.01, 100
_TOGETHER_BYTES = 4_096
"""The most bytes that a pipe takes in one piece, so that lines of several processes do not mix."""
_SHORT_LEVELS = {"WARNING": "WARN", "CRITICAL": "FATAL"}


def event(logger: logging.Logger, level: int, name: str, **fields: object) -> None:
    """Log `name` with fields. Values may be anything; they are escaped when written."""
    logger.log(level, name, extra={"fields": fields})


class JsonFormatter(logging.Formatter):
    """One JSON object a line, ASCII only: control, bidi and escape characters come escaped."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": _timestamp(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
        }
        line.update(getattr(record, "fields", {}))
        if trace := _trace(self, record):
            line["exception"] = trace
        return json.dumps(line, ensure_ascii=True, default=str)


class TextFormatter(logging.Formatter):
    """A line for people: time, level, event, key=value. Control characters come escaped."""

    def format(self, record: logging.LogRecord) -> str:
        clock = time.strftime("%H:%M:%S", time.localtime(record.created))
        level = _SHORT_LEVELS.get(record.levelname, record.levelname)
        fields = getattr(record, "fields", {})
        parts = [record.getMessage(), *(f"{key}={value}" for key, value in fields.items())]
        line = f"{clock} {level:5} " + _printable("  ".join(parts))
        if trace := _trace(self, record):
            line = "\n".join([line, *map(_printable, trace.splitlines())])
        return line


class HideQueries(logging.Filter):
    """Cuts the query string off the request targets that uvicorn logs."""

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple):
            record.args = tuple(
                arg.split("?", 1)[0] if isinstance(arg, str) and arg.startswith("/") else arg
                for arg in record.args
            )
        return True


class AddFields(logging.Filter):
    """Adds the same fields to every line."""

    def __init__(self, fields: Mapping[str, object]) -> None:
        super().__init__()
        self._fields = dict(fields)

    def filter(self, record: logging.LogRecord) -> bool:
        record.fields = {**self._fields, **getattr(record, "fields", {})}
        return True


class BackgroundHandler(logging.Handler):
    """Formats at once, writes in a thread. `dropped` counts lines that found the queue full."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self.dropped = 0
        self._stream = stream
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._write, name="log", daemon=True)
        self._thread.start()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            if self._lines.qsize() >= _QUEUE_LINES:
                self.dropped += 1
            else:
                self._lines.put(self.format(record))
        except Exception:
            self.handleError(record)

    def close(self) -> None:
        """Write what waits, for at most a second; a blocked stream must not hold up the exit."""
        self._lines.put(None)
        self._thread.join(timeout=_CLOSE_SECONDS)
        super().close()

    def _write(self) -> None:
        """Write lines that arrive close together in one piece: a thread that wakes for each of them
        takes the interpreter from the event loop each time."""
        while (line := self._lines.get()) is not None:
            if self._lines.empty():
                time.sleep(_TOGETHER_SECONDS)
            lines, size = [line], len(line)
            while len(lines) < _TOGETHER_LINES and not self._lines.empty():
                if (line := self._lines.get()) is None:
                    break
                if size + len(line) + len(lines) >= _TOGETHER_BYTES:
                    self._put(lines)
                    lines, size = [], 0
                lines.append(line)
                size += len(line)
            self._put(lines)
            if line is None:
                return

    def _put(self, lines: list[str]) -> None:
        try:
            self._stream.write("".join(f"{line}\n" for line in lines))
            self._stream.flush()
        except (OSError, ValueError):
            # The disk is full or the pipe is closed. There is nowhere left to say so; speech
            # goes on.
            self.dropped += len(lines)


def configure_logging(
    log_format: LogFormat = "json",
    level: str = "info",
    *,
    access_log: bool = True,
    stream: TextIO | None = None,
    fields: Mapping[str, object] | None = None,
) -> Callable[[], None]:
    """Send everything, uvicorn's lines included, to `stream` (stderr). `fields` are in every line.
    Returns what undoes it."""
    handler = BackgroundHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if log_format == "json" else TextFormatter())
    handler.addFilter(HideQueries())
    if fields:
        handler.addFilter(AddFields(fields))
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(level.upper())
    # Below warning uvicorn logs what our own lines have, and the WebSocket library every frame.
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    access = logging.getLogger("uvicorn.access")
    access.setLevel(logging.INFO if access_log else logging.ERROR)
    access.propagate = True  # a server without an access log in this process may have cut it off

    def undo() -> None:
        root.removeHandler(handler)
        handler.close()

    return undo


def _trace(formatter: logging.Formatter, record: logging.LogRecord) -> str | None:
    """Return the record's traceback; one from an engine's process is text already."""
    return formatter.formatException(record.exc_info) if record.exc_info else record.exc_text


def _timestamp(created: float) -> str:
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(created))
    return f"{whole}.{int(created % 1 * 1000):03d}Z"


def _printable(line: str) -> str:
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)
