"""Which of the loaded checkpoints a request means."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from realtime_tts.dialects.catalogue import Task, model_for
from realtime_tts.dialects.fields import WrongField
from realtime_tts.engine.fake import FakeEngine

ONE = FakeEngine().info
CUSTOM = replace(ONE, model="custom", variant="custom_voice", voices=("ava", "ray"))
DESIGN = replace(ONE, model="design", variant="voice_design", voices=())
BASE = replace(ONE, model="base", variant="base", voices=())
OTHER = replace(CUSTOM, model="other", voices=("vivian",))
ALL = replace(CUSTOM, models=(CUSTOM, DESIGN, BASE, OTHER))


@pytest.mark.parametrize(
    ("task", "name", "voice", "model"),
    [
        (None, None, None, None),
        (None, "design", None, "design"),
        ("CustomVoice", None, None, "custom"),
        ("CustomVoice", None, "vivian", "other"),
        ("CustomVoice", "tts-1", "ray", "custom"),
        ("CustomVoice", "other", None, "other"),
        ("VoiceDesign", None, None, "design"),
        ("Base", None, "registered", "base"),
    ],
)
def test_a_task_picks_a_checkpoint_that_is_made_for_it(
    task: Task | None, name: str | None, voice: str | None, model: str | None
) -> None:
    assert model_for(task, name, voice, ALL) == model


@pytest.mark.parametrize(
    ("task", "name", "info", "names"),
    [
        ("VoiceDesign", "base", ALL, "base"),
        ("Base", "custom", ALL, "custom"),
        ("CustomVoice", None, BASE, "base"),
        ("VoiceDesign", None, replace(CUSTOM, models=(CUSTOM, BASE)), "custom, base"),
    ],
)
def test_a_task_that_no_checkpoint_is_made_for_is_refused(
    task: Task, name: str | None, info: object, names: str
) -> None:
    with pytest.raises(WrongField, match=f"`task_type` cannot be '{task}': {names} is") as caught:
        model_for(task, name, None, info)  # type: ignore[arg-type]
    assert caught.value.field == "task_type"
