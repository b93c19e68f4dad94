import dataclasses
import math

import pytest

from tts_scheduler import SchedulerConfig


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("slots", 0),
        ("max_rows", 0),
        ("max_prefills", 0),
        ("lead_cap", 0.1),
        ("reserve", -0.1),
        ("min_start_tokens", 0),
        ("max_start_wait", -1.0),
        ("codec_chunks", ()),
        ("codec_chunks", (0, 1)),
        ("codec_chunks", (2, 1)),
        ("utilisation", 0.0),
        ("kv_utilisation", 0.0),
        ("max_queue", -1),
        ("queue_timeout", -0.5),
        ("queue_timeout", math.inf),
        ("lead_cap", math.inf),
        ("utilisation", math.inf),
        ("kv_utilisation", math.nan),
    ],
)
def test_a_setting_that_cannot_work_is_refused_by_name(field: str, value: object) -> None:
    with pytest.raises(ValueError, match=field):
        SchedulerConfig(**{field: value})  # type: ignore[arg-type]


def test_rows_per_step_are_all_slots_unless_limited() -> None:
    assert SchedulerConfig(slots=8).rows_per_step == 8
    assert SchedulerConfig(slots=8, max_rows=3).rows_per_step == 3
    assert SchedulerConfig(slots=8, max_rows=30).rows_per_step == 8


def test_an_eighth_of_the_slots_may_queue_and_at_least_four() -> None:
    assert SchedulerConfig(slots=8).queue_length == 4
    assert SchedulerConfig(slots=64).queue_length == 8
    assert SchedulerConfig(slots=64, max_queue=0).queue_length == 0


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        SchedulerConfig().slots = 9  # type: ignore[misc]
