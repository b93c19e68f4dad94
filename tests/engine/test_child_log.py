"""The log of an engine's process, on its way to the parent."""

import logging
import socket

import pytest

from realtime_tts.engine import wire
from realtime_tts.engine.child import LineHandler
from realtime_tts.engine.line import Line, Waiting
from realtime_tts.engine.stream import Stream


def test_a_library_that_logs_nonsense_does_not_end_the_engine(
    capsys: pytest.CaptureFixture[str],
) -> None:
    ours, theirs = socket.socketpair()
    line, parent = Line(ours, Waiting()), Stream(theirs)
    log = logging.Logger("library")
    log.addHandler(LineHandler(line))
    log.warning("%d rows", "many")
    log.warning("%d rows", 2)
    assert "Logging error" in capsys.readouterr().err
    (told,) = map(wire.decode_up, parent.received())
    assert isinstance(told, wire.LogLine) and told.message == "2 rows"
    line.close()
    parent.close()
