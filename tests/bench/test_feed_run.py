"""A small run of feeds against a server with the fake engine, in a process of its own."""

import json
from pathlib import Path
from typing import Any

import pytest

from realtime_tts.bench import feeds as known
from realtime_tts.bench.feeds import Feed
from realtime_tts.cli import main

REPLIES = ("I am here. And so is she.", "So am I.")
PACE, STALL = Feed(100.0), Feed(100.0, "sentence", 0.5)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the command writes, from one run for several tests."""
    folder = tmp_path_factory.mktemp("feeds")
    words = ["bench", "--feeds", "quick", "--start", "--engine fake"]
    words += ["--json", str(folder / "f.json"), "--markdown", str(folder / "f.md")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(known.FEEDS, "quick", ((PACE, STALL), REPLIES))
        assert main(words) == 0
    written: dict[str, Any] = json.loads((folder / "f.json").read_text(encoding="utf-8"))
    written["markdown"] = (folder / "f.md").read_text(encoding="utf-8")
    return written


def test_every_reply_is_heard_by_both_clients_and_stalls_by_ours(report: dict[str, Any]) -> None:
    pace, stall = report["feeds"]
    assert [pace["feed"], stall["feed"]] == ["100 tokens/s", "0.5 s after a sentence"]
    assert [heard["reply"] for heard in pace["heard"]] == list(REPLIES)
    assert [heard["reply"] for heard in pace["heard_of_sentences"]] == list(REPLIES)
    assert [heard["reply"] for heard in stall["heard"]] == [REPLIES[0]]
    assert stall["heard_of_sentences"] == []
    for feed in (pace, stall):
        assert feed["failed"] == 0
        assert {heard["reason"] for heard in feed["heard"]} == {"complete"}
        assert feed["first_sound_ms"]["p50"] > 0


def test_figures_of_a_feed_have_what_can_be_said_of_it(report: dict[str, Any]) -> None:
    pace, stall = report["feeds"]
    assert pace["known_late_ms"] is None
    assert stall["known_late_ms"]["max"] >= 0
    assert pace["behind_sentences_ms"] is not None
    assert stall["behind_sentences_ms"] is None
    assert set(report["definitions"]) <= set(pace)


def test_the_table_has_a_line_for_each_feed(report: dict[str, Any]) -> None:
    lines = report["markdown"].splitlines()
    assert lines[0].startswith("| feed | replies | gaps |")
    assert [line.split(" | ")[0] for line in lines[2:4]] == [
        "| 100 tokens/s",
        "| 0.5 s after a sentence",
    ]
    assert "realtime-tts bench --feeds quick" in report["markdown"]


@pytest.mark.parametrize(
    "others", [["--suite"], ["--mode", "burst"], ["--in-process"], ["--sessions", "1,2"]]
)
def test_feeds_go_with_no_other_load(others: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--feeds", "quick", *others]) == 2
    assert "--feeds" in capsys.readouterr().err


def test_a_server_that_is_not_there_is_an_error(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = tmp_path / "f.json"
    words = ["bench", "--feeds", "--url", "ws://127.0.0.1:1", "--json", str(out)]
    assert main(words) != 0
    assert "127.0.0.1:1" in capsys.readouterr().err
    assert not out.exists()
