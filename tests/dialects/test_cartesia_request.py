"""What is read out of a request of Cartesia's API; whatever comes, only a RequestError goes out."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime_tts.dialects.cartesia_messages import Generation, our_voice, parse
from realtime_tts.dialects.catalogue import our_language
from realtime_tts.engine.fake import FakeEngine
from realtime_tts.errors import RequestError

VOICES = ("ava", "ray")
FIELDS = [
    "transcript",
    "model_id",
    "voice",
    "output_format",
    "context_id",
    "continue",
    "flush",
    "cancel",
    "language",
    "add_timestamps",
    "max_buffer_delay_ms",
    "generation_config",
    "speed",
    "id",
    "mode",
    "container",
    "encoding",
    "sample_rate",
    "volume",
    "else",
]
leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(alphabet=st.characters(exclude_categories=[]))
    | st.sampled_from(["raw", "wav", "mp3", "pcm_s16le", "id", "normal"])
)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(FIELDS), inner),
    max_leaves=15,  # of each field's value: lists of lists of objects, and no hundred of them
)


@given(st.dictionaries(st.sampled_from(FIELDS), values))
def test_anything_is_read_or_refused(fields: dict[str, Any]) -> None:
    try:
        request = parse(fields)
        _ = request.output_format.audio
        our_voice(request, VOICES)
    except RequestError as error:
        str(error).encode(errors="surrogatepass")
    else:
        assert isinstance(request, Generation) and 0.3 <= request.hold_seconds <= 5.0


def test_null_is_absent_at_every_depth() -> None:
    voice = {"id": "ava", "mode": None, "__experimental_controls": None}
    given_fields = dict.fromkeys(FIELDS) | {"transcript": "a", "voice": voice}
    assert parse(given_fields) == parse({"transcript": "a", "voice": {"id": "ava"}})


@pytest.mark.parametrize(
    ("voice", "ours"),
    [
        ("AVA", "ava"),
        ({"mode": "id", "id": "Ray"}, "ray"),
        ("6ccbfb76-1fc6-48f7-b71d-91ac6298247b", None),
        (None, None),
    ],
)
def test_voices(voice: Any, ours: str | None) -> None:
    assert our_voice(parse({"transcript": "a", "voice": voice}), VOICES) == ours


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"voice": {"id": 5}}, "`voice.id` must be a string"),
        ({"voice": {"mode": []}}, "`voice.mode` must be a string"),
        ({"voice": 7}, "`voice` must be an object"),
        ({"context_id": ""}, "`context_id` must be a string of 1 to 512 characters"),
        ({"max_buffer_delay_ms": 5_001}, "`max_buffer_delay_ms` must be a whole number from 0 to"),
        ({"generation_config": {"emotion": "a" * 101}}, "a string of at most 100 characters"),
        ({"generation_config": {"volume": "x"}}, "`generation_config.volume` must be a number"),
    ],
)
def test_a_field_of_the_wrong_type_is_named(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(RequestError, match=problem):
        parse(fields)


@pytest.mark.parametrize(
    ("code", "name"),
    [("en", "english"), ("en-GB", "english"), ("English", "english"), ("pl", None), (None, None)],
)
def test_languages(code: str | None, name: str | None) -> None:
    assert our_language(code, FakeEngine().info) == name
