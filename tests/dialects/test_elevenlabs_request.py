"""What is read out of ElevenLabs' messages; whatever comes, only a RequestError goes out."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime_tts.access.account import FREE
from realtime_tts.dialects.elevenlabs_messages import (
    API,
    Body,
    Message,
    audio_of,
    key_in,
    our_voice,
    parse_body,
    parse_message,
    wanted_of,
)
from realtime_tts.dialects.fields import WrongField
from realtime_tts.engine.fake import FakeEngine
from realtime_tts.errors import RequestError
from tests.dialects.plain import front_of

VOICES = ("ava", "ray")
FIELDS = [
    "text",
    "context_id",
    "contextId",
    "flush",
    "close_context",
    "close_socket",
    "voice_settings",
    "generation_config",
    "xi_api_key",
    "xi-api-key",
    "authorization",
    "speed",
    "seed",
    "model_id",
    "language_code",
    "else",
]
text = st.text(alphabet=st.characters(exclude_categories=[]))
leaves = st.none() | st.booleans() | st.integers() | st.floats() | text
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(FIELDS), inner),
    max_leaves=15,  # of each field's value: lists of lists of objects, and no hundred of them
)


@given(st.dictionaries(st.sampled_from(FIELDS), values))
def test_anything_is_read_or_refused(fields: dict[str, Any]) -> None:
    for parse, kind in ((parse_message, Message), (parse_body, Body)):
        try:
            assert isinstance(parse(fields), kind)
        except RequestError as error:
            str(error).encode(errors="surrogatepass")
    assert isinstance(key_in(fields), str | None)


@given(
    st.dictionaries(
        st.sampled_from(
            ["output_format", "seed", "close_context", "auto_mode", "language_code", "model_id"]
        ),
        text,
    ),
    text,
)
def test_any_address_is_read_or_refused(query: dict[str, str], voice: str) -> None:
    info = FakeEngine().info
    try:
        wanted = wanted_of(query, voice, front_of(info, info.voices), FREE)
    except RequestError as error:
        str(error).encode(errors="surrogatepass")
    else:
        assert wanted.hold_seconds > 0


@pytest.mark.parametrize(
    ("seed", "taken"), [("7", 7), ("007", 7), (str(2**63 - 1), 2**63 - 1), ("", None)]
)
def test_seeds_of_an_address(seed: str, taken: int | None) -> None:
    info = FakeEngine().info
    assert (
        wanted_of({"seed": seed}, "alto", front_of(info, info.voices), FREE).settings.seed == taken
    )


@pytest.mark.parametrize("seed", [str(2**63), "0" * 20 + "9" * 20, "0" * 5_000, "-1", "\u0663"])
def test_seeds_that_are_none(seed: str) -> None:
    info = FakeEngine().info
    with pytest.raises(RequestError, match="whole number"):
        wanted_of({"seed": seed}, "alto", front_of(info, info.voices), FREE)


def test_null_is_absent_at_every_depth() -> None:
    given_fields = dict.fromkeys(FIELDS) | {"text": "a", "voice_settings": {"speed": None}}
    assert parse_message(given_fields) == parse_message({"text": "a"})
    assert parse_body(given_fields) == parse_body({"text": "a"})


@pytest.mark.parametrize(
    ("voice", "ours"), [("AVA", "ava"), ("ray", "ray"), ("hpp4J3VqNfWAUOO0d1Us", None)]
)
def test_voices(voice: str, ours: str | None) -> None:
    assert our_voice(voice, VOICES) == ours


@pytest.mark.parametrize("voice", ["", "nobody", "hpp4J3VqNfWAUOO0d1U", "hpp4J3VqNfWAUOO0d1U-"])
def test_voices_that_there_are_not(voice: str) -> None:
    with pytest.raises(WrongField, match="ava, ray") as caught:
        our_voice(voice, VOICES)
    assert API.of_problem(caught.value).status == 404 and caught.value.reason == "voice_not_found"


@pytest.mark.parametrize(
    "name",
    ["mp3_22050_32", "mp3_24000_48", "mp3_44100_192", "opus_48000_32", "opus_48000_192"],
)
def test_compressed_formats_of_the_original(name: str) -> None:
    pytest.importorskip("av", reason="needs the extra codecs")
    audio_of(name)


@pytest.mark.parametrize("rate", [8_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000])
def test_formats_of_samples(rate: int) -> None:
    audio_of(f"pcm_{rate}")
    audio_of("wav_" + str(rate))
