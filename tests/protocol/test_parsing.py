from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from realtime_tts.protocol import messages as m
from realtime_tts.protocol.parsing import (
    MAX_LEVELS,
    BadMessage,
    ProtocolError,
    TooLarge,
    UnknownType,
    decode_client_message,
    encode,
    parse_server_message,
)


def nested(levels: int) -> str:
    """As many objects and arrays, in turn, one inside of the other."""
    return '{"a": [' * (levels // 2) + "{}" * (levels % 2) + "]}" * (levels // 2)


DEEP = "[" * 30_000
MANY_DIGITS = "1" * 5_000

BAD_ENVELOPES = [
    # raw, code, what the error must say
    ("", "bad_json", "Expecting value at character 0"),
    ("hello", "bad_json", "Expecting value at character 0"),
    ("\ufeff{}", "bad_json", "there is a byte order mark (send UTF-8 without one)"),
    ("\x00", "bad_json", "Expecting value"),
    ('{"type": "text"', "bad_json", "Expecting ',' delimiter at character 15"),
    ('{"type": "text"} x', "bad_json", "Extra data"),
    ('{"type', "bad_json", "Unterminated string starting at character 1"),
    ("[]", "bad_json", "expected a JSON object, found an array"),
    ('"text"', "bad_json", 'expected a JSON object, found "text"'),
    ('"\\ud83d"', "bad_json", 'expected a JSON object, found "\ufffd"'),
    ("null", "bad_json", "expected a JSON object, found null"),
    (DEEP, "bad_json", "nested too deeply"),
    ('{"type": "text", "text": ' + DEEP, "bad_json", "nested too deeply"),
    ('{"a":' * 10_000, "bad_json", "nested too deeply"),
    ('{"type": "flush", "x": ' + nested(MAX_LEVELS) + "}", "bad_json", "at most 64 levels"),
    ('{"type": "flush", "turn_id": "\\ud83d", "x": ' + nested(700) + "}", "bad_json", "deeply"),
    ('{"played_samples": ' + MANY_DIGITS + "}", "bad_json", "too many digits"),
    ('{"type": "played", "played_ms": NaN}', "bad_json", "NaN is no JSON number"),
    ('{"type": "played", "played_ms": -Infinity}', "bad_json", "-Infinity is no JSON number"),
    ('{"type": "text", "text": "a", "text": "b"}', "bad_json", '"text" comes twice'),
    ('{"type": "text", "text": "a\nb"}', "bad_json", "Invalid control character"),
    ("{}", "bad_message", "`type` must be a string, found none"),
    ('{"type": 5}', "bad_message", "`type` must be a string, found 5"),
    ('{"type": ["text"]}', "bad_message", "`type` must be a string, found an array"),
    ('{"type": "Text", "text": "a"}', "unknown_type", 'unknown type "Text"; known are session.'),
    ('{"type": "\\ud83d"}', "unknown_type", "unknown type"),
    ('{"type": "ready"}', "unknown_type", 'unknown type "ready"'),
]

BAD_FIELDS = [
    # type, its fields, what the error must say after "type: "
    ("text", "", "`text` is missing; it must be a string"),
    ("text", '"\\ud83d": 1', "`text` is missing; it must be a string"),
    ("session.start", '"sampling": {"\\ud83d": 1, "top_k": -1}', "`sampling.top_k` must be"),
    ("text", '"text": null', "`text` is missing; it must be a string"),
    ("text", '"text": {}', "`text` must be a string, found an object"),
    ("text", '"text": "a", "end": "yes"', '`end` must be true or false, found "yes"'),
    ("text", '"text": "a", "end": 1', "`end` must be true or false, found 1"),
    ("text", '"text": "a", "turn_id": ""', "`turn_id` must be 1 to 64 printable ASCII"),
    ("text", '"text": "a", "turn_id": "a b"', "`turn_id` must be 1 to 64 printable ASCII"),
    ("text", '"text": "a", "turn_id": "a\\n"', "`turn_id` must be 1 to 64 printable ASCII"),
    ("text", '"text": "a", "turn_id": "\\ud83d"', "`turn_id` must be 1 to 64 printable ASCII"),
    ("flush", '"turn_id": 7', "`turn_id` must be 1 to 64 printable ASCII"),
    ("turn.end", f'"turn_id": "{"x" * 65}"', "`turn_id` must be 1 to 64 printable ASCII"),
    ("played", "", "expected played_ms or played_samples, found neither"),
    ("played", '"played_ms": null', "expected played_ms or played_samples, found neither"),
    ("played", '"played_ms": -1', "`played_ms` must be a number of milliseconds, 0 or more"),
    ("played", '"played_ms": 1e999', "`played_ms` must be a number of milliseconds, 0 or more"),
    ("played", '"played_samples": 1.5', "`played_samples` must be a whole number of samples"),
    ("played", '"played_samples": true', "`played_samples` must be a whole number of samples"),
    ("interrupt", '"played_samples": 1e30', "`played_samples` must be a whole number"),
    ("interrupt", f'"played_samples": {10**30}', "`played_samples` must be a whole number"),
    ("session.start", '"voice": ""', "`voice` must be a string of 1 to 128 characters"),
    ("session.start", '"voice": 3', "`voice` must be a string of 1 to 128 characters, found 3"),
    ("session.start", '"seed": -1', "`seed` must be a whole number from 0"),
    ("session.start", f'"seed": {2**63}', "`seed` must be a whole number from 0"),
    ("session.start", '"seed": "7"', "`seed` must be a whole number from 0"),
    ("session.start", '"layout": "fast"', '`layout` must be "auto", "streaming" or "full_text"'),
    ("session.start", '"layout": "\\ud83d"', '`layout` must be "auto", "streaming"'),
    ("session.start", '"text_filter": true', '`text_filter` must be "on" or "off", found true'),
    ("session.start", '"lead_ms": 199', "`lead_ms` must be a whole number from 200"),
    (
        "session.start",
        '"lead_ms": 3600001',
        "`lead_ms` must be a whole number from 200 to the",
    ),
    (
        "session.start",
        '"audio": {"packet_ms": 0}',
        "`audio.packet_ms` must be a whole number of milliseconds from 10 to 1000, found 0",
    ),
    ("session.start", '"lexicons": "a"', "`lexicons` must be an array, each a string of 1 to"),
    ("session.start", '"lexicons": ["a", 3]', "`lexicons[1]` must be a string of 1 to"),
    (
        "turn.codes",
        '"turn_id": "a", "codes": 5',
        "`codes` must be an array, each a string of base64",
    ),
    (
        "turn.codes",
        '"turn_id": "a", "codes": ["AQ==", "AQ==AQ=="]',
        '`codes[1]` must be a string of base64, found "AQ==AQ=="',
    ),
    ("session.start", '"sampling": []', "`sampling` must be an object, found an array"),
    (
        "session.start",
        '"sampling": {"temperature": 2.1}',
        "`sampling.temperature` must be a number from 0 to 2",
    ),
    (
        "session.start",
        '"sampling": {"temperature": -0.1}',
        "`sampling.temperature` must be a number from 0 to 2",
    ),
    (
        "session.start",
        '"sampling": {"top_k": -1}',
        "`sampling.top_k` must be a whole number from 0 to 1000000",
    ),
    (
        "session.start",
        '"sampling": {"top_k": 1.5}',
        "`sampling.top_k` must be a whole number from 0 to 1000000",
    ),
    (
        "session.start",
        '"sampling": {"top_p": 0}',
        "`sampling.top_p` must be a number above 0, at most 1, found 0",
    ),
    (
        "session.start",
        '"sampling": {"top_p": 1.01}',
        "`sampling.top_p` must be a number above 0, at most 1",
    ),
    (
        "session.start",
        '"sampling": {"repetition_penalty": 0.4}',
        "`sampling.repetition_penalty` must be a number",
    ),
    (
        "session.start",
        '"sampling": {"repetition_penalty": 2.1}',
        "`sampling.repetition_penalty` must be a number",
    ),
    (
        "session.start",
        '"sampling": {"predictor": {"top_p": "x"}}',
        "`sampling.predictor.top_p` must be a number",
    ),
]


def with_fields(kind: str, fields: str) -> str:
    return f'{{"type": "{kind}"{", " if fields else ""}{fields}}}'


BAD_CLIENT_MESSAGES = [
    *BAD_ENVELOPES,
    *(
        (with_fields(kind, fields), "bad_message", f"{kind}: {says}")
        for kind, fields, says in BAD_FIELDS
    ),
]


@pytest.mark.parametrize(("raw", "code", "says"), BAD_CLIENT_MESSAGES)
def test_a_bad_message_gets_its_named_error(raw: str, code: str, says: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        decode_client_message(raw)
    assert caught.value.code == code
    assert says in str(caught.value)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        ('{"type": "text"}', "text"),
        (
            '{"type": "session.start", "sampling": {"predictor": {"top_k": "x"}}}',
            "sampling.predictor.top_k",
        ),
    ],
)
def test_a_bad_message_names_the_field_at_fault(raw: str, field: str) -> None:
    with pytest.raises(BadMessage) as caught:
        decode_client_message(raw)
    assert caught.value.field == field


@pytest.mark.parametrize("frame", [b"", b'{"type": "text", "text": "a"}', b"\xff\x00"])
def test_a_binary_frame_is_not_allowed_whatever_is_in_it(frame: bytes) -> None:
    for parse in (decode_client_message, parse_server_message):
        with pytest.raises(ProtocolError) as caught:
            parse(frame)
        assert caught.value.code == "binary_not_allowed"


@pytest.mark.parametrize("character", ["a", "é", "語", "😀"])
def test_the_limit_of_a_message_is_exact_in_bytes(character: str) -> None:
    envelope = '{"type": "text", "text": ""}'
    width = len(character.encode())
    fits = character * ((1_000 - len(envelope)) // width)
    raw = envelope.replace('""', f'"{fits}"')
    size = len(raw.encode())
    assert decode_client_message(raw, max_bytes=size).message == m.Text(text=fits)
    with pytest.raises(TooLarge, match=f"at most {size - 1} bytes, found {size}"):
        decode_client_message(raw, max_bytes=size - 1)


def test_the_size_of_a_message_can_be_told_even_if_it_is_no_valid_unicode() -> None:
    with pytest.raises(TooLarge, match="found 90000"):
        decode_client_message("\ud83d" * 30_000)


@pytest.mark.parametrize("text", ["\ud83d", "\ude00", "\\\ud83d", "😀", "\\", '"'])
def test_a_text_that_is_too_large_names_its_turn(text: str) -> None:
    """Also with half an emoji in it, as a JavaScript client makes when it cuts text in pieces."""
    fields = {"type": "text", "text": text * 100, "turn_id": r"a\ud83d", "end": True}
    with pytest.raises(TooLarge) as caught:
        decode_client_message(json.dumps(fields), max_bytes=100)
    assert caught.value.text == m.Text(text="", turn_id=r"a\ud83d", end=True)


def test_null_resets_an_option() -> None:
    raw = '{"type": "session.start", "voice": null, "sampling": {"top_k": null}}'
    start = decode_client_message(raw).message
    assert isinstance(start, m.SessionStart)
    assert start.voice is None and start.sampling.top_k is None
    assert start.seed is UNSET and start.sampling.top_p is UNSET
    assert json.loads(encode(start)) == json.loads(raw)


@pytest.mark.parametrize("name", [name for name in m.CLIENT_MESSAGES if name != "session.start"])
def test_null_is_the_same_as_absent(name: str) -> None:
    messages: dict[str, dict[str, object]] = {
        "text": {"text": "a"},
        "turn.codes": {"turn_id": "a", "codes": []},
        "turn.resume": {"turn_id": "a", "samples": 0, "text_chars": 0},
        "played": {"played_ms": 1},
    }
    needed = messages.get(name, {})
    nulls = dict.fromkeys(m.CLIENT_MESSAGES[name].__struct_fields__)
    bare = decode_client_message(json.dumps({"type": name, **needed}))
    assert decode_client_message(json.dumps({"type": name, **nulls, **needed})) == bare


def test_half_an_emoji_comes_through_so_that_its_other_half_can_join_it() -> None:
    first = decode_client_message('{"type": "text", "text": "a\\ud83d"}').message
    second = decode_client_message('{"type": "text", "text": "\\ude00b", "\\ud83d": 1}').message
    assert isinstance(first, m.Text) and isinstance(second, m.Text)
    whole = (first.text + second.text).encode("utf-16", "surrogatepass").decode("utf-16")
    assert whole == "a😀b"


@pytest.mark.parametrize(
    ("raw", "ignored"),
    [
        (
            '{"type": "session.start", "voise": "ava"}',
            'session.start: unknown field "voise" is ignored; did you mean `voice`?',
        ),
        (
            '{"type": "session.start", "sampling": {"temprature": 1}}',
            'sampling: unknown field "temprature" is ignored; did you mean `temperature`?',
        ),
        (
            '{"type": "session.start", "sampling": {"predictor": {"type": 1}}}',
            'predictor: unknown field "type" is ignored',
        ),
        (
            '{"type": "session.close", "zzz": {"a": [1]}}',
            'session.close: unknown field "zzz" is ignored',
        ),
        (
            '{"type": "text", "text": "a", "\\ud83d": 1}',
            'text: unknown field "\ufffd" is ignored',
        ),
    ],
)
def test_an_unknown_field_is_no_error_and_the_slip_is_named(raw: str, ignored: str) -> None:
    assert decode_client_message(raw).ignored == (ignored,)


def test_a_message_full_of_unknown_fields_is_not_answered_at_its_own_length() -> None:
    fields = {f"field-{number}" * 20: 1 for number in range(200)}
    ignored = decode_client_message(json.dumps({"type": "flush", **fields})).ignored
    assert len(ignored) == 4
    assert all(len(sentence) < 120 for sentence in ignored)


def test_a_client_ignores_what_a_newer_server_adds() -> None:
    raw = '{"type": "warning", "code": "new", "message": "m", "turn_id": null, "hint": {"a": 1}}'
    assert parse_server_message(raw) == m.WarningMessage(code="new", message="m")
    with pytest.raises(UnknownType):
        parse_server_message('{"type": "words", "words": []}')


def test_optional_fields_are_left_out_and_required_ones_never() -> None:
    assert encode(m.Interrupt()) == '{"type":"interrupt"}'
    done = m.TurnDone(
        turn_id="t1",
        reason="complete",
        samples=0,
        ttfa_ms=None,
        underruns=0,
        held_ms=0.0,
        text_chars=0,
    )
    assert json.loads(encode(done))["ttfa_ms"] is None
    error = m.ErrorMessage(code="c", message="m", fatal=False, retryable=False)
    assert json.loads(encode(error)) == {
        "type": "error",
        "code": "c",
        "message": "m",
        "fatal": False,
        "retryable": False,
    }


@pytest.mark.parametrize(
    ("text", "sent"), [("a\ud83d", "a\ufffd"), ("\ude00", "\ufffd"), ("\ud83d\ude00", "😀")]
)
def test_what_is_encoded_is_always_valid_utf_8(text: str, sent: str) -> None:
    raw = encode(m.Text(text=text))
    assert json.loads(raw.encode().decode())["text"] == sent


# Whatever comes in, only a ProtocolError comes out.

_names = st.sampled_from(
    ["type", "text", "turn_id", "end", "seed", "sampling", "predictor", "top_k", "layout", "x"]
)
_scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(alphabet=st.characters(), max_size=8)
    | st.sampled_from([*m.CLIENT_MESSAGES, *m.SERVER_MESSAGES, "\ud800", 2**70, "on", "auto"])
)
_values = st.recursive(
    _scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_names, inner, max_size=6)
)


def _only_a_protocol_error(raw: str | bytes) -> None:
    for parse in (lambda raw: decode_client_message(raw).message, parse_server_message):
        try:
            message = parse(raw)
        except ProtocolError as error:
            # The text of an error goes out again, so it must survive the way out.
            error_message = m.ErrorMessage(
                code=error.code, message=str(error), fatal=False, retryable=False
            )
            json.loads(encode(error_message).encode())
        else:
            assert parse(encode(message)) is not None


@given(st.text() | st.binary())
def test_no_text_and_no_bytes_make_the_parser_raise_anything_else(raw: str | bytes) -> None:
    _only_a_protocol_error(raw)


@given(st.sampled_from([*m.CLIENT_MESSAGES, *m.SERVER_MESSAGES]), _values)
def test_no_json_makes_the_parser_raise_anything_else(kind: str, value: object) -> None:
    _only_a_protocol_error(json.dumps(value))
    if isinstance(value, dict):
        _only_a_protocol_error(json.dumps({**value, "type": kind}))
        _only_a_protocol_error(json.dumps({**value, "type": kind}, ensure_ascii=False))


@given(st.sampled_from([raw for raw, _, _ in BAD_CLIENT_MESSAGES if len(raw) < 200]), st.data())
def test_no_damaged_message_makes_the_parser_raise_anything_else(raw: str, data: object) -> None:
    assert isinstance(data, st.DataObject)
    at = data.draw(st.integers(0, len(raw)))
    upto = data.draw(st.integers(at, len(raw)))
    _only_a_protocol_error(raw[:at] + data.draw(st.text(max_size=3)) + raw[upto:])
