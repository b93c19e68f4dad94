from math import inf, nan
from typing import Any

import pytest

from realtime_tts.bench.deltas import DeltaTiming
from realtime_tts.bench.settings import BenchSettings, Level, Mode
from realtime_tts.errors import ConfigError


def test_levels_are_named_by_their_load() -> None:
    assert Level(Mode.CLOSED, sessions=8).name == "8"
    assert Level(Mode.OPEN, rate=2.5).name == "2.5/s"


@pytest.mark.parametrize(
    "bad",
    [
        {"mode": Mode.CLOSED},
        {"mode": Mode.OPEN, "sessions": 3},
        {"mode": Mode.OPEN, "rate": nan},
        {"mode": Mode.OPEN, "rate": inf},
    ],
)
def test_a_level_without_load_is_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        Level(**bad)


@pytest.mark.parametrize(
    "bad",
    [
        {"turns": 0},
        {"seconds": 0.0},
        {"pause": -1.0},
        {"pause": nan},
        {"interrupts": 1.5},
        {"rtf_turns": -1},
        {"seconds": nan},
        {"seconds": inf},
    ],
)
def test_settings_that_cannot_work_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        BenchSettings(server="ws://127.0.0.1:1", **bad)


@pytest.mark.parametrize("speed", [0.0, nan, inf])
def test_a_speed_that_is_none_is_refused(speed: float) -> None:
    with pytest.raises(ConfigError, match="tokens per second"):
        DeltaTiming(tokens_per_second=speed)


def test_the_key_is_not_shown() -> None:
    assert "s3cret" not in repr(BenchSettings(server="ws://h", api_key="s3cret"))
