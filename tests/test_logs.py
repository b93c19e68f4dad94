"""Log lines cannot be forged, hold no text, and never hold up the event loop."""

from __future__ import annotations

import io
import json
import logging
import os
import threading
import time
from collections.abc import Iterator

import pytest

from realtime_tts.logs import BackgroundHandler, configure_logging, event

log = logging.getLogger("tests.logs")


@pytest.fixture(autouse=True)
def patient_close(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine the writing thread may need longer than a server would wait."""
    monkeypatch.setattr("realtime_tts.logs._CLOSE_SECONDS", 10.0)


@pytest.fixture
def root_level() -> Iterator[None]:
    level = logging.getLogger().level
    yield
    logging.getLogger().setLevel(level)


def lines_of(log_format: str, *records: tuple[str, dict[str, object]]) -> list[str]:
    stream = io.StringIO()
    undo = configure_logging(log_format, stream=stream)  # type: ignore[arg-type]
    for name, fields in records:
        event(log, logging.INFO, name, **fields)
    undo()
    return stream.getvalue().splitlines()


EVIL = '\r\n{"level":"fatal"}\x1b[31m\u202e\u2028\x00\ud800'


@pytest.mark.usefixtures("root_level")
def test_json_lines_are_one_object_each_and_ascii() -> None:
    lines = lines_of("json", ("turn.done", {"turn": EVIL, "samples": 3}), ("next", {}))
    assert len(lines) == 2
    first = json.loads(lines[0])
    assert first["event"] == "turn.done"
    assert first["turn"] == EVIL
    assert first["level"] == "info"
    assert lines[0].isascii() and lines[0].isprintable()


@pytest.mark.usefixtures("root_level")
def test_text_lines_hold_no_control_character_of_a_client() -> None:
    lines = lines_of("text", ("turn.done", {"turn": EVIL}))
    assert len(lines) == 1
    assert lines[0].isprintable()
    assert "turn.done" in lines[0]


@pytest.mark.usefixtures("root_level")
@pytest.mark.parametrize("log_format", ["json", "text"])
def test_a_traceback_is_logged_and_escaped(log_format: str) -> None:
    stream = io.StringIO()
    undo = configure_logging(log_format, stream=stream)  # type: ignore[arg-type]
    try:
        raise ValueError("\x1b[31m red")
    except ValueError:
        log.exception("bug")
    undo()
    assert "ValueError" in stream.getvalue()
    assert "\x1b" not in stream.getvalue()


@pytest.mark.usefixtures("root_level")
def test_query_strings_are_cut_off() -> None:
    stream = io.StringIO()
    undo = configure_logging("json", stream=stream)
    access = logging.getLogger("uvicorn.access")
    access.info('%s - "%s %s HTTP/%s" %d', "1.2.3.4:5", "GET", "/v1/tts?i=secret", "1.1", 426)
    undo()
    assert "/v1/tts" in stream.getvalue()
    assert "secret" not in stream.getvalue()


@pytest.mark.usefixtures("root_level")
def test_fields_of_a_process_are_in_every_line_and_a_lines_own_come_before_them() -> None:
    stream = io.StringIO()
    undo = configure_logging("json", stream=stream, fields={"front": 2})
    event(log, logging.INFO, "turn.done", samples=3)
    event(log, logging.INFO, "front.died", front=1)
    log.warning("plain")
    undo()
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [line["front"] for line in lines] == [2, 1, 2] and lines[0]["samples"] == 3


@pytest.mark.usefixtures("root_level")
def test_lines_of_several_processes_do_not_mix_in_a_pipe() -> None:
    """What is written at once is whole lines, and no more than a pipe takes in one piece."""

    class Pipe(io.StringIO):
        pieces: list[str] = []

        def write(self, text: str) -> int:
            self.pieces.append(text)
            return super().write(text)

    pipe = Pipe()
    undo = configure_logging("json", stream=pipe)
    for number in range(300):
        event(log, logging.INFO, "turn.done", number=number, filling="x" * (number % 90 * 20))
    undo()
    assert [json.loads(line)["number"] for line in pipe.getvalue().splitlines()] == [*range(300)]
    assert all(piece.endswith("\n") and len(piece) <= 4_096 for piece in pipe.pieces)
    assert len(pipe.pieces) < 200, "most lines travel with others"


def test_a_pipe_nobody_reads_holds_nobody_up() -> None:
    read_end, write_end = os.pipe()
    with os.fdopen(write_end, "w") as pipe, os.fdopen(read_end) as reader:
        handler = BackgroundHandler(pipe)
        record = log.makeRecord("n", logging.INFO, "f", 1, "x" * 1_000, (), None)
        started = time.monotonic()
        for _ in range(11_000):
            handler.emit(record)
        assert time.monotonic() - started < 60
        assert handler.dropped > 0
        drain = threading.Thread(target=reader.read)
        drain.start()
        handler.close()
        pipe.close()
        drain.join()


def test_a_closed_stream_is_no_error() -> None:
    stream = io.StringIO()
    stream.close()
    handler = BackgroundHandler(stream)
    handler.emit(log.makeRecord("n", logging.INFO, "f", 1, "hello", (), None))
    handler.close()
    assert handler.dropped == 1
