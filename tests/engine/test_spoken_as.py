"""What each kind of checkpoint can be asked for, and which one a refusal names."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from realtime_tts.engine.interface import UtteranceSpec, check_spec
from realtime_tts.errors import RequestError
from realtime_tts.model import Voice
from tests.engine.cloning import engine, voice_of
from tts_scheduler import Layout


@pytest.mark.parametrize(
    ("variant", "spec", "message"),
    [
        ("base", {}, "name one of /v1/voices, or load a CustomVoice"),
        ("base", {"voice": "ryan"}, "unknown voice 'ryan': .*CustomVoice"),
        ("base", {"voice": "anna", "instructions": "Sad."}, "CustomVoice and VoiceDesign"),
        ("base", {"voice": "small"}, r"'small' was made for .*-0b6: .* Base checkpoint of the"),
        ("base", {"voice": "anna", "language": "latin"}, "unknown language 'latin'"),
        ("custom_voice", {"voice": "anna"}, r"'anna' is a cloned .*Base checkpoint .*-1b7"),
        ("custom_voice", {"voice": "nobody"}, "unknown voice 'nobody'; this checkpoint has"),
        ("voice_design", {"voice": "anna"}, r"'anna' is a cloned .*Base checkpoint .*-1b7"),
        ("voice_design", {"voice": "ryan"}, "a CustomVoice checkpoint has some"),
    ],
)
def test_what_a_checkpoint_cannot_do_is_refused_with_the_one_that_can(
    variant: str, spec: dict[str, Any], message: str
) -> None:
    anna = voice_of("xvec_st")
    small = Voice("small", torch.ones(64), None, None, "qwen3-tts-12hz-0b6")
    found = engine({"anna": anna, "small": small}, variant)
    with pytest.raises(RequestError, match=message):
        found.check(UtteranceSpec(**spec))


@pytest.mark.parametrize(
    ("variant", "spec"),
    [
        ("base", {"voice": "Anna", "language": "German"}),
        ("custom_voice", {"voice": "Ryan", "instructions": "Sad."}),
        ("custom_voice", {}),
        ("voice_design", {"instructions": "An old man with a deep voice."}),
        ("voice_design", {}),
    ],
)
def test_what_a_checkpoint_can_do_passes_front_and_engine(
    variant: str, spec: dict[str, Any]
) -> None:
    found = engine({"anna": voice_of("xvec_st")}, variant)
    found.check(UtteranceSpec(**spec))
    check_spec(found.info, UtteranceSpec(**spec), lambda name: name == "anna")


@pytest.mark.parametrize("captured", [False, True])
def test_a_base_checkpoint_warms_up_without_any_voice(captured: bool) -> None:
    steps = engine({}, captured=captured, light=True).warm_up(lambda what, done, total: None)
    starts = [step.plan for step in steps if step.plan.prefills]
    layouts = (Layout.STREAMING, Layout.FULL_TEXT)
    begun = [(plan.rows, plan.prefills[0].layout) for plan in starts]
    assert begun == [(rows, layout) for rows in (1, 2, 4, 8) for layout in layouts]


def test_a_turn_that_has_begun_goes_on_with_a_voice_that_was_deleted() -> None:
    voices = {"anna": voice_of("xvec_st")}
    found = engine(voices)
    before = found.prompt_tokens(UtteranceSpec(voice="anna"))
    del voices["anna"]
    begun = UtteranceSpec(voice="Anna", begun=True)
    found.check(begun)
    assert found.prompt_tokens(begun) == before
    for spec in (UtteranceSpec(voice="anna"), UtteranceSpec(voice="ben", begun=True)):
        with pytest.raises(RequestError, match="unknown voice"):
            found.check(spec)
