import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from realtime_tts.bench.observation import Observation, Observed
from realtime_tts.bench.plot import read_growth
from realtime_tts.bench.result import level_result
from realtime_tts.bench.settings import BenchSettings, Level, Mode
from realtime_tts.bench.suite import STARTS, Figure, figures, suite_levels
from realtime_tts.cli import main
from tts_scheduler.report import Trace

SETTINGS = BenchSettings(server="ws://127.0.0.1:1", options={"voice": "ava"})


def test_the_suite_has_a_level_for_every_row_of_the_table() -> None:
    levels = suite_levels(SETTINGS, [64, 128], [20.0])
    assert {level.mode for level in levels} == set(Mode)
    assert [level.sessions for level in levels if level.climbs] == [64, 128]
    assert set(STARTS) <= {level.sessions for level in levels if level.mode is Mode.BURST}
    for level in levels:
        replace(SETTINGS, **level.changes)  # raises where a field is none, or wrong
    options = [level.changes.get("options", {}) for level in levels]
    assert {"voice": "ava", "layout": "streaming"} in options


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The suite itself, shortened, from the command line."""
    folder = tmp_path_factory.mktemp("suite")
    small = pytest.MonkeyPatch()
    small.setattr("realtime_tts.bench.suite.STARTS", (2, 4))
    small.setattr("realtime_tts.bench.suite.CROWD", 5)
    small.setattr("realtime_tts.bench.suite.CONVERSATIONS", 3)
    small.setattr("realtime_tts.cli.bench_arguments.suite_levels", shortened)
    prompts = folder / "prompts.txt"
    prompts.write_text("Long enough to be on the air when it is cut off.\n", encoding="utf-8")
    flags = "--engine fake --slots 32 --utilisation 9 --max-frames 15 --lead-seconds 0.4"
    words = ["bench", "--suite", "--start", flags]
    words += ["--sessions", "2,4", "--rate", "10,20", "--prompts", str(prompts)]
    words += ["--json", str(folder / "s.json"), "--markdown", str(folder / "s.md")]
    words += ["--png", str(folder / "s.png")]
    with small.context():
        assert main(words) == 0
    small.undo()
    written = json.loads((folder / "s.json").read_text(encoding="utf-8"))
    written["markdown"] = (folder / "s.md").read_text(encoding="utf-8")
    written["folder"] = folder
    return written


def shortened(*arguments: Any) -> Any:
    """The suite's levels, each short, and all of its ramp, also where a busy machine is late."""
    return [
        replace(level, changes=shorter(dict(level.changes)), climbs=False)
        for level in suite_levels(*arguments)
    ]


def shorter(changes: dict[str, Any]) -> dict[str, Any]:
    changes["turns"] = min(changes.get("turns", 2), 2)
    changes["warm_up"] = min(changes.get("warm_up", 1), 1)
    changes["pause"] = 0.05
    if "agents" in changes:
        quick = {"think_seconds": 0.05, "slowest": 200, "fastest": 400}
        changes["agents"] = replace(changes["agents"], **quick)
    if "seconds" in changes:
        changes["seconds"] = 1.0
        changes["spread"] = 0.1
    return changes


def test_one_run_gives_every_row_of_the_table(report: dict[str, Any]) -> None:
    lines = report["markdown"].splitlines()
    begin = lines.index("| figure | measured | on |") + 2
    rows = [line.split(" | ")[0].strip("| ") for line in lines[begin:] if line.startswith("| ")]
    ramp = [level for level in report["levels"] if level["mode"] == Mode.CLOSED]
    assert [level["sessions"] for level in ramp] == [1, 2, 4]
    # A busy machine may be late in each of them.
    kept = any(level["sustained"] for level in ramp)
    assert ("live streams without an underrun" in rows) == kept
    buffered = any(not (level["underruns_buffered"] or level["failed"]) for level in ramp)
    assert ("… for listeners with a buffer of 100 ms" in rows) == buffered
    for name in (
        "TTFA p50 / p95 / p99, one session",
        "TTFA p50 / p95 / p99, 4 simultaneous starts",
        "TTFA p50 / p95 / p99, 5 simultaneous starts",
        "TTFA p50 / p95 / p99, 20 turns a second",
        "turns a second without an underrun",
        "audio seconds per second",
        "step, rows ≤ 1, codec and host included",
        "step, rows ≤ 4, codec and host included",
        "interrupt to last byte, p50 / p95 / p99, burst 4",
    ):
        assert name in rows, rows


def test_a_level_says_what_it_alone_had_otherwise(report: dict[str, Any]) -> None:
    alone, streaming = report["levels"][:2]
    assert alone["changes"]["timing"]["kind"] == "whole"
    assert streaming["changes"]["options"]["layout"] == "streaming"
    assert set(streaming["layouts"]) == {"streaming"} and set(alone["layouts"]) == {"full_text"}


def test_the_picture_of_growth_can_be_drawn_again_from_the_results(
    report: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    folder: Path = report["folder"]
    assert (folder / "s.png").read_bytes().startswith(b"\x89PNG")
    found = read_growth(folder / "s.json")
    assert [sessions for sessions, _, _ in found.ttfa] == [1, 2, 4, 5]
    assert [rows for rows, _ in found.steps][:2] == [1, 2]
    both = [str(folder / "s.json")] * 2
    for name in ("c.png", "picture", "c.1.7B"):
        assert main(["bench", "--compare", *both, "--png", str(folder / name)]) == 0
        assert (folder / name).read_bytes().startswith(b"\x89PNG")
    (folder / "no.json").write_text("{}", encoding="utf-8")
    wrong = ["bench", "--compare", str(folder / "no.json"), "--png", str(folder / "c.png")]
    assert main(wrong) == 2
    assert "is not a result of" in capsys.readouterr().err
    assert main(["bench", "--compare", *both]) == 2
    assert "--png" in capsys.readouterr().err


def test_nothing_measured_is_no_figure() -> None:
    assert figures([]) == []


def test_the_most_speech_in_a_second_is_said_in_tenths_as_in_the_table() -> None:
    observed = Observed([Observation(text_chars=5, trace=Trace(asked_at=0.0))], 1.0, 1)
    level = level_result(Level(Mode.CLOSED, sessions=1), observed, None)
    said = figures([replace(level, capacity=0.5), replace(level, sessions=2, capacity=0.44)])
    assert Figure("audio seconds per second", "0.5", "1: 0.5, 2: 0.4") in said
