"""What is read from a request's body, and which voice a name means."""

from __future__ import annotations

import gzip
import json
import re
from typing import Any

import pytest

from realtime_tts.dialects.fields import WrongField
from realtime_tts.dialects.openai_request import (
    VOICES,
    SpeechRequest,
    our_voice,
    parse_request,
    usage,
)
from realtime_tts.errors import RequestError
from realtime_tts.protocol.settings import Limits

LIMITS = Limits(max_text_chars=100, max_instructions_chars=20)
DEMO = ("ava", "ray")
RELEASED = (
    "serena",
    "vivian",
    "uncle_fu",
    "ryan",
    "aiden",
    "ono_anna",
    "sohee",
    "eric",
    "dylan",
)


def parse(**fields: Any) -> Any:
    return parse_request(json.dumps(fields).encode(), LIMITS)


def refusal(body: bytes) -> RequestError:
    with pytest.raises(RequestError) as caught:
        parse_request(body, LIMITS)
    return caught.value


def test_what_is_left_out_has_the_original_s_defaults() -> None:
    request = parse(input="Hi.")
    assert (request.response_format, request.stream_format, request.speed) == ("mp3", "audio", 1.0)


def test_null_is_absent_and_unknown_keys_are_taken() -> None:
    fields = dict.fromkeys(("model", "voice", "instructions", "response_format", "speed"), None)
    assert parse(input="Hi.", **fields, surprise={"a": [1]}) == parse(input="Hi.")


def test_a_voice_has_two_forms() -> None:
    assert parse(input="Hi.", voice="ava").voice_name == "ava"
    assert parse(input="Hi.", voice={"id": "ava", "more": 1}).voice_name == "ava"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("input", 7),
        ("input", ["a"]),
        ("model", 1),
        ("voice", 3),
        ("voice", {"name": "ava"}),
        ("voice", {"id": None}),
        ("instructions", {}),
        ("response_format", 1),
        ("speed", "1.0"),
        ("speed", True),
        ("stream_format", "audio/sse"),
        ("language", ""),
        ("seed", -1),
        ("lead_ms", 5),
    ],
)
def test_a_field_of_the_wrong_type_is_named(field: str, value: Any) -> None:
    error = refusal(json.dumps({"input": "Hi.", field: value}).encode())
    assert error.field == field
    assert f"`{field}` must be" in str(error)


@pytest.mark.parametrize("field", SpeechRequest.__struct_fields__)
def test_the_error_says_which_kind_of_value_a_field_takes(field: str) -> None:
    message = str(refusal(json.dumps({"input": "Hi.", field: [1]}).encode()))
    assert re.match(rf'`{field}` must be (a string|a number|a whole number|"\w+")', message)


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b'"text"', b"null", b'{"input": "\xff"}', b'{"input": NaN}', b"[" * 100_000],
)
def test_what_is_no_json_object_is_refused(body: bytes) -> None:
    assert "JSON object" in str(refusal(body))


def test_a_compressed_body_is_named() -> None:
    assert "without `Content-Encoding`" in str(refusal(gzip.compress(b'{"input": "Hi."}')))


def test_text_that_is_missing_empty_or_too_long() -> None:
    assert refusal(b"{}").field == "input"
    assert refusal(b'{"input": null}').field == "input"
    assert "empty" in str(refusal(b'{"input": ""}'))
    assert "at most 100 characters, it has 101" in str(refusal(b'{"input": "%s"}' % (b"x" * 101)))
    assert parse(input="ü" * 100).input == "ü" * 100


def test_instructions_have_a_limit() -> None:
    assert parse(input="Hi.", instructions="x" * 20)
    assert refusal(json.dumps({"input": "a", "instructions": "x" * 21}).encode()).field == (
        "instructions"
    )


def test_half_of_an_emoji_is_refused_where_it_names_something() -> None:
    assert "`stream_format` must be" in str(
        refusal(b'{"input": "Hi.", "stream_format": "\\ud800"}')
    )


def test_half_of_an_emoji_is_taken() -> None:
    assert parse(input="\ud83d").input == "\ud83d"
    assert parse(input="\ud83d\ude00").input == "\U0001f600"


def test_our_own_voices_come_first_in_any_case() -> None:
    assert our_voice("AVA", DEMO) == "ava"
    assert our_voice("Uncle_Fu", RELEASED) == "uncle_fu"
    assert our_voice("echo", ("bass", "Echo")) == "Echo"
    assert our_voice(None, DEMO) is None


@pytest.mark.parametrize("voices", [DEMO, RELEASED, ("only",), ("alto", "bass", "tenor")])
def test_every_voice_of_openai_s_is_one_of_ours(voices: tuple[str, ...]) -> None:
    meant = {name: our_voice(name, voices) for name in VOICES}
    assert set(meant.values()) <= set(voices)
    assert len(set(meant.values())) >= min(3, len(voices)), "they should not all sound the same"
    assert meant == {name.title().lower(): our_voice(name.upper(), voices) for name in VOICES}


def test_the_voices_documented_are_the_voices_meant() -> None:
    assert our_voice("alloy", DEMO) == "ava" and our_voice("onyx", DEMO) == "ray"
    assert our_voice("alloy", RELEASED) == "vivian" and our_voice("onyx", RELEASED) == "uncle_fu"


def test_an_unknown_voice_is_answered_with_those_there_are() -> None:
    with pytest.raises(WrongField, match="ava, ray.*alloy") as caught:
        our_voice("rachel", DEMO)
    assert caught.value.field == "voice"


def test_a_checkpoint_without_voices_chooses_itself() -> None:
    assert our_voice("alloy", ()) is None


def test_usage_counts_frames_that_were_begun() -> None:
    assert usage(5, 1_921, 1_920) == {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}
