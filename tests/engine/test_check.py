"""What a front tells about a turn's settings before its engine does."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from realtime_tts.engine.fake import FakeEngine
from realtime_tts.engine.interface import UtteranceSpec, check_spec
from realtime_tts.errors import RequestError

CUSTOM = replace(FakeEngine().info, model="custom", variant="custom_voice")
BASE = replace(FakeEngine().info, model="base", variant="base", voices=())


def registered(name: str) -> bool:
    return name == "anna"


def test_a_base_checkpoint_takes_registered_voices_whatever_their_case() -> None:
    check_spec(BASE, UtteranceSpec(voice="Anna"), registered)
    check_spec(CUSTOM, UtteranceSpec(voice="Alto"), registered)
    with pytest.raises(RequestError, match="GET /v1/voices"):
        check_spec(BASE, UtteranceSpec(voice="ben"), registered)


def test_another_checkpoint_says_which_one_could() -> None:
    with pytest.raises(RequestError, match="a Base checkpoint speaks with"):
        check_spec(CUSTOM, UtteranceSpec(voice="anna"), registered)
    with pytest.raises(RequestError, match="alto"):
        check_spec(CUSTOM, UtteranceSpec(voice="ben"), registered)


def test_a_speaker_of_the_checkpoint_is_not_looked_for_among_registered_voices() -> None:
    """A look-up asks the file system, before each turn."""

    def look_up(name: str) -> bool:
        raise AssertionError(f"{name} is a speaker")

    check_spec(CUSTOM, UtteranceSpec(voice="Alto"), look_up)


def test_a_language_may_be_named_by_its_code() -> None:
    for language in ("english", "en", "en-US", "EN_gb", None):
        check_spec(CUSTOM, UtteranceSpec(voice="Alto", language=language), registered)
    with pytest.raises(RequestError, match="unknown language 'fr'; this checkpoint has: auto"):
        check_spec(CUSTOM, UtteranceSpec(voice="Alto", language="fr"), registered)
