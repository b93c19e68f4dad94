"""What an address of Deepgram's API means here: models, and what a query may hold."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime_tts.access.account import FREE
from realtime_tts.audio.encoders import Encoder
from realtime_tts.audio.formats import RATES
from realtime_tts.config import LimitsConfig, ServerConfig
from realtime_tts.dialects.deepgram_messages import (
    OUR_MASCULINE,
    http_wanted,
    our_voice,
    socket_wanted,
)
from realtime_tts.dialects.deepgram_socket import DeepgramSocket
from realtime_tts.engine.fake import FakeEngine
from realtime_tts.errors import RequestError
from realtime_tts.server.session_settings import session_defaults
from realtime_tts.server.track import STALL_SECONDS
from tests.dialects.document import prose
from tests.dialects.plain import front_of

INFO = FakeEngine().info
DEFAULTS = session_defaults(INFO, 3.0)
DEMO = ("ava", "ray")
FRONT = front_of(INFO, DEMO)
RELEASED = ("vivian", "ryan", "uncle_fu", "dylan-2")


def test_the_figures_in_the_document_are_the_code_s() -> None:
    section = prose("Deepgram")
    limits, server = LimitsConfig(), ServerConfig()
    assert f"at most {limits.max_text_chars:,} characters a message" in section
    assert f"at most {limits.max_turn_chars:,} characters" in section
    assert f"paused for {DeepgramSocket.hold_seconds:.0f} s" in section
    assert f"({server.lead_seconds:.0f} s) ahead" in section
    assert f"more than {STALL_SECONDS} s" in section
    assert f"nothing for {server.socket.write_stall:.0f} s" in section
    assert f"{DeepgramSocket.idle_seconds / 60:.0f} minutes" in section
    assert ", ".join(f"`{name}`" for name in OUR_MASCULINE) in section
    assert f"{RATES[0]:,} to {RATES[-1]:,} Hz" in section


@pytest.mark.parametrize(
    ("name", "voices", "expected"),
    [
        ("ava", DEMO, "ava"),
        ("RAY", DEMO, "ray"),
        ("aura-2-ava-en", DEMO, "ava"),
        ("flux-ray-en", DEMO, "ray"),
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
    with pytest.raises(RequestError, match="ava, ray.*aura-2-thalia-en"):
        our_voice(name, DEMO, INFO)


def test_the_checkpoint_is_a_model_too() -> None:
    wanted = socket_wanted({"model": INFO.model}, FRONT, FREE)
    assert wanted.settings.model == INFO.model
    assert wanted.settings.voice == DEFAULTS.voice
    assert socket_wanted({}, FRONT, FREE).settings == DEFAULTS


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
            wanted = wanted_of(query, FRONT, FREE)
        except RequestError as error:
            assert str(error)
        else:
            Encoder(wanted.settings.audio).close()
