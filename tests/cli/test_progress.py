"""What is shown while something loads, on a terminal and where there is none."""

import io
import json
import sys

from rich.console import Console

from realtime_tts.cli.progress import LoadingProgress

LINE = json.dumps({"event": "engine.started", "[bold]": ":smile:", "long": "x" * 90})


def test_a_line_of_the_log_stays_a_line_beside_the_bars_and_after_them() -> None:
    seen = io.StringIO()
    with LoadingProgress(Console(file=seen, force_terminal=True, width=40)) as progress:
        progress.update("warm-up", 1, 2)
        progress.log.write(LINE + "\n")
        assert "warm-up" in seen.getvalue() and seen.getvalue().count(LINE + "\n") == 1
        progress.close()
        progress.log.write(LINE + "\n")
    assert seen.getvalue().count(LINE + "\n") == 2
    assert seen.getvalue().endswith(LINE + "\n"), "no bar comes after them"


def test_a_start_that_lasts_is_seen_before_there_is_a_stage() -> None:
    seen = io.StringIO()
    with LoadingProgress(Console(file=seen, force_terminal=True, width=40)):
        assert "start" in seen.getvalue()


def test_where_nobody_watches_nothing_is_shown_and_the_log_is_standard_error() -> None:
    seen = io.StringIO()
    with LoadingProgress(Console(file=seen)) as progress:
        progress.update("warm-up", 1, 2)
        assert progress.log is sys.stderr
    assert seen.getvalue() == ""
