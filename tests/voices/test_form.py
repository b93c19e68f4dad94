"""What a client may ask of a new voice, and the sentence it gets for anything else."""

from __future__ import annotations

import json

import httpx2
import numpy as np
import pytest

from realtime_tts.voices.errors import VoiceRequestError
from realtime_tts.voices.form import MAX_AUDIO_BYTES, parse_embedding, parse_form


def form(fields: dict[str, str], audio: bytes | None = b"sound") -> tuple[bytes, str]:
    files = {} if audio is None else {"audio": ("ref.wav", audio)}
    request = httpx2.Request("POST", "http://x/", data=fields, files=files or None)
    return request.read(), request.headers["content-type"]


def test_a_form_says_everything() -> None:
    body, kind = form(
        {"name": "anna", "text": " Grüße. ", "language": "german", "append_silence": "false"}
    )
    wanted = parse_form(body, kind)
    assert (wanted.name, wanted.text, wanted.language) == ("anna", "Grüße.", "german")
    assert wanted.append_silence is False and wanted.audio == b"sound"


def test_all_but_name_and_recording_may_be_left_out_or_empty() -> None:
    wanted = parse_form(*form({"name": "anna", "text": ""}))
    assert wanted.text is None and wanted.language is None and wanted.append_silence is True


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({}, "`name`"),
        ({"name": "Anna"}, "a-z"),
        ({"name": "../../etc/passwd"}, "a-z"),
        ({"name": "a" * 65}, "64 characters"),
        ({"name": "a\n"[:1] + "\n"}, None),
        ({"name": "-a"}, "begins with a letter"),
        ({"name": "anna", "append_silence": "maybe"}, "true or false"),
        ({"name": "anna", "text": "x" * 2001}, "at most 2000"),
        ({"name": "anna", "text": "x" * 20_000}, "bytes"),
        ({"name": "anna", "language": "x" * 129}, "at most 128"),
        ({"name": "anna", "voice": "x"}, "unknown field 'voice'"),
    ],
)
def test_fields_that_cannot_work_are_named(fields: dict[str, str], says: str | None) -> None:
    if says is None:
        assert parse_form(*form(fields)).name == "a"  # white space around a field is nothing
        return
    with pytest.raises(VoiceRequestError, match=says):
        parse_form(*form(fields))


def test_a_recording_is_wanted_and_may_have_ten_megabytes() -> None:
    with pytest.raises(VoiceRequestError, match="`audio`"):
        parse_form(
            b'--b\r\nContent-Disposition: form-data; name="name"\r\n\r\nanna\r\n--b--\r\n',
            "multipart/form-data; boundary=b",
        )
    exact = bytes(MAX_AUDIO_BYTES)
    assert len(parse_form(*form({"name": "anna"}, exact)).audio) == MAX_AUDIO_BYTES
    with pytest.raises(VoiceRequestError) as refused:
        parse_form(*form({"name": "anna"}, exact + b"x"))
    assert refused.value.status == 413


PART = b'--b\r\nContent-Disposition: form-data; name="name"\r\n\r\nanna\r\n'


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"", "multipart/form-data; boundary=b"),
        (b"nothing like it", "multipart/form-data; boundary=b"),
        (PART, "multipart/form-data"),
        (PART, "multipart/form-data; boundary=other"),
        (PART + PART, "multipart/form-data; boundary=b"),
        (PART[:40], "multipart/form-data; boundary=b"),
        (b"--b\r\nX: " + b"y" * 100_000 + b"\r\n\r\n--b--\r\n", "multipart/form-data; boundary=b"),
        (b"--b\r\n" + b"X: y\r\n" * 1000 + b"\r\n--b--\r\n", "multipart/form-data; boundary=b"),
        (PART * 10_000, "multipart/form-data; boundary=b"),
        (b"\r\n" * 100_000, "multipart/form-data; boundary=b"),
        (
            b"--b\r\nContent-Disposition: form-data\r\n\r\nx\r\n--b--\r\n",
            "multipart/form-data; boundary=b",
        ),
    ],
    ids=range(11),
)
def test_forms_that_are_none_are_refused(body: bytes, kind: str) -> None:
    with pytest.raises(VoiceRequestError) as refused:
        parse_form(body, kind)
    assert refused.value.status == 400


@pytest.mark.parametrize(
    ("body", "kind", "says"),
    [
        (PART, "multipart/form-data; boundary=b", "ends before its last boundary"),
        (b"", "multipart/form-data; boundary=b", "ends before its last boundary"),
        (PART + b"--b--", "multipart/form-data; boundary=", "has no boundary"),
        (PART + b"--b--", 'multipart/form-data; boundary=""', "has no boundary"),
        (PART + b"--b--", "multipart/form-data", "has no boundary: let the HTTP library"),
    ],
)
def test_a_form_that_is_cut_off_or_has_no_boundary_is_told_so(
    body: bytes, kind: str, says: str
) -> None:
    with pytest.raises(VoiceRequestError, match=says):
        parse_form(body, kind)


def test_an_embedding_is_a_list_of_finite_numbers() -> None:
    asked, embedding = parse_embedding(b'{"name": "anna", "embedding": [0.5, -1, 2e-3]}')
    assert asked.name == "anna" and embedding.dtype == np.float32
    np.testing.assert_allclose(embedding, [0.5, -1, 0.002])


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b'{"name": "anna"}',
        b'{"name": "anna", "embedding": []}',
        b'{"name": "anna", "embedding": [0, 0]}',
        b'{"name": "anna", "embedding": [1e39]}',
        b'{"name": "anna", "embedding": [NaN]}',
        b'{"name": "anna", "embedding": ["1"]}',
        b'{"name": "anna", "embedding": [[1]]}',
        b'{"name": "../a", "embedding": [1]}',
        b'{"name": "anna", "embedding": [1], "codes": []}',
        b'{"name": "anna", "embedding": [1], "language": "\xff"}',
        json.dumps({"name": "anna", "embedding": [0.5] * 8193}).encode(),
        b'{"name": "anna", "embedding": ' + b"[" * 50_000,
    ],
)
def test_other_embeddings_are_refused(body: bytes) -> None:
    with pytest.raises(VoiceRequestError) as refused:
        parse_embedding(body)
    assert refused.value.status == 400
