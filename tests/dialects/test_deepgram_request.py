"""What an address of Deepgram's API means here: models, and what a query may hold."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from realtime_tts.dialects.deepgram_request import http_wanted, our_voice, socket_wanted
from realtime_tts.engine.fake import FakeEngine
from realtime_tts.errors import RequestError
from realtime_tts.server.front import session_defaults

INFO = FakeEngine().info
DEFAULTS = session_defaults(INFO, 3.0)
DEMO = ("ava", "kal", "ray")
RELEASED = ("vivian", "ryan", "uncle_fu", "dylan-2")


@pytest.mark.parametrize(
    ("name", "voices", "expected"),
    [
        ("ava", DEMO, "ava"),
        ("KAL", DEMO, "kal"),
        ("aura-2-ava-en", DEMO, "ava"),
        ("flux-kal-en", DEMO, "kal"),
        ("flux-uncle_fu-en", RELEASED, "uncle_fu"),
        ("flux-dylan-2-en", RELEASED, "dylan-2"),
        ("dylan-2", RELEASED, "dylan-2"),
        ("aura-2-thalia-en", DEMO, None),
        ("aura-asteria-en", DEMO, None),
        ("flux-alexis-en", DEMO, None),
        ("aura-2-apollo-en", DEMO, "ray"),
        ("aura-zeus-en", RELEASED, "ryan"),
        ("aura-2-orion-en", ("alto",), None),
        ("aura-2-orion-en", ("orion", "ryan"), "orion"),
    ],
)
def test_models_are_voices(name: str, voices: tuple[str, ...], expected: str | None) -> None:
    assert our_voice(name, voices, INFO)[0] == expected


def test_a_model_says_the_language() -> None:
    assert our_voice("aura-2-thalia-en", DEMO, INFO)[1] == "english"
    assert our_voice("aura-2-agathe-fr", DEMO, INFO)[1] is None, "the fake has no French"
    assert our_voice("ava", DEMO, INFO)[1] is None


@pytest.mark.parametrize("name", ["nobody", "nova-3", "aura-2-", "aura", "thalia", "gpt-4o", "é"])
def test_other_models_are_an_error_that_lists_what_there_is(name: str) -> None:
    with pytest.raises(RequestError, match="ava, kal, ray.*aura-2-thalia-en"):
        our_voice(name, DEMO, INFO)


def test_the_checkpoint_is_a_model_too() -> None:
    wanted = socket_wanted({"model": INFO.model}, DEFAULTS, INFO, DEMO)
    assert wanted.settings.model == INFO.model
    assert wanted.settings.voice == DEFAULTS.voice
    assert socket_wanted({}, DEFAULTS, INFO, DEMO).settings == DEFAULTS


@settings(deadline=None)  # the first encoders take their time
@given(
    st.dictionaries(
        st.sampled_from(
            ["model", "encoding", "sample_rate", "container", "bit_rate", "speed", "callback", "x"]
        ),
        st.text("aA0-_. %\u00e9\r", max_size=12)
        | st.sampled_from(
            ["linear16", "mulaw", "mp3", "opus", "8000", "48000", "none", "wav", "1"]
        ),
    )
)
def test_any_query_is_understood_or_refused(query: dict[str, str]) -> None:
    for wanted_of in (socket_wanted, http_wanted):
        try:
            wanted = wanted_of(query, DEFAULTS, INFO, DEMO)
        except RequestError as error:
            assert str(error)
        else:
            wanted.open_encoder().close()
