"""Requests for a new voice: a form with a recording, or JSON with an embedding.

Forms are parsed in the worker, not on the event loop: a hostile form takes seconds to parse.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from realtime_tts.multipart import BadForm, read_form
from realtime_tts.voices.errors import BadVoiceRequest, UploadTooLarge
from realtime_tts.voices.file import MAX_DIMENSIONS, check_id

MAX_AUDIO_BYTES = 10 * 1024 * 1024
MAX_BODY_BYTES = MAX_AUDIO_BYTES + 64 * 1024
"""Bytes of the recording, the other fields and the form's own boundaries and headers."""
MAX_JSON_BYTES = 256 * 1024
MAX_TRANSCRIPT_CHARS = 2_000
FORM_FIELDS = ("name", "text", "language", "append_silence")
FILE_FIELD = "audio"
_MAX_FIELD_BYTES = 16 * 1024
_SPELLED = {"true": True, "1": True, "false": False, "0": False}


class NewVoice(msgspec.Struct, frozen=True, kw_only=True):
    """A valid request for a voice from a recording. `text` is the recording's transcript; with it,
    the voice keeps the recording's way of speaking."""

    name: str
    audio: bytes
    text: str | None = None
    language: str | None = None
    append_silence: bool = True


class EmbeddingBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The JSON body of a request for a voice from an embedding."""

    name: str
    embedding: Annotated[list[float], Meta(min_length=1, max_length=MAX_DIMENSIONS)]
    language: Annotated[str, Meta(min_length=1, max_length=128)] | None = None
    model: Annotated[str, Meta(min_length=1, max_length=256)] | None = None


def too_large(found: str) -> UploadTooLarge:
    """Make the error for a recording that is too large. `found`: words for its size."""
    return UploadTooLarge(
        f"a recording may have {MAX_AUDIO_BYTES} bytes (10 MB), found {found}: "
        "10 to 20 s of speech are enough, and FLAC or MP3 are smaller than WAV"
    )


def parse_form(body: bytes, content_type: str) -> NewVoice:
    """Parse and check a multipart body. Raises BadVoiceRequest, UploadTooLarge."""
    fields: dict[str, bytes] = {}
    _collect(body, content_type, fields)
    audio = fields.pop(FILE_FIELD, None)
    if audio is None:
        raise BadVoiceRequest(f"a file field `{FILE_FIELD}` with the recording is missing")
    if len(audio) > MAX_AUDIO_BYTES:
        raise too_large(f"{len(audio)} bytes")
    if "name" not in fields:
        raise BadVoiceRequest("the field `name`, under which to register the voice, is missing")
    text = {name: _decoded(name, value) for name, value in fields.items()}
    return NewVoice(
        name=check_id(text["name"]),
        audio=audio,
        text=_transcript(text.get("text")),
        language=_language(text.get("language")),
        append_silence=_boolean("append_silence", text.get("append_silence")),
    )


def _collect(body: bytes, content_type: str, fields: dict[str, bytes]) -> None:
    def put(name: str, value: bytes, is_file: bool) -> None:
        if not is_file and len(value) > _MAX_FIELD_BYTES and name != FILE_FIELD:
            raise BadVoiceRequest(
                f"the field `{name[:80]}` has {len(value)} bytes; {_MAX_FIELD_BYTES} are allowed"
            )
        if name not in (*FORM_FIELDS, FILE_FIELD):
            known = ", ".join((FILE_FIELD, *FORM_FIELDS))
            raise BadVoiceRequest(f"unknown field {name[:80]!r}; a voice takes {known}")
        if name in fields:
            raise BadVoiceRequest(f"the field `{name}` is given twice")
        fields[name] = value

    try:
        read_form(body, content_type, put)
    except BadForm as error:
        raise BadVoiceRequest(str(error)) from None


def parse_embedding(body: bytes) -> tuple[EmbeddingBody, NDArray[np.float32]]:
    """Parse a JSON body; return it and its embedding [H]. Raises BadVoiceRequest."""
    try:
        asked = msgspec.json.decode(body, type=EmbeddingBody)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadVoiceRequest(
            f"expected JSON with `name` and `embedding` (and `language`, `model`): {error}"
        ) from None
    check_id(asked.name)
    with np.errstate(over="ignore"):
        embedding = np.asarray(asked.embedding, dtype=np.float32)
    if not np.isfinite(embedding).all() or not embedding.any():
        raise BadVoiceRequest("`embedding` must be finite numbers, and not all zero")
    return asked, embedding


def _decoded(name: str, value: bytes) -> str:
    try:
        return value.decode("utf-8").strip()
    except UnicodeDecodeError:
        raise BadVoiceRequest(f"the field `{name}` is not UTF-8") from None


def _transcript(text: str | None) -> str | None:
    if text is not None and len(text) > MAX_TRANSCRIPT_CHARS:
        raise BadVoiceRequest(
            f"`text` must have at most {MAX_TRANSCRIPT_CHARS} characters, found {len(text)}"
        )
    return text or None


def _language(text: str | None) -> str | None:
    if text is not None and len(text) > 128:
        raise BadVoiceRequest(f"`language` must have at most 128 characters, found {len(text)}")
    return text or None


def _boolean(name: str, text: str | None) -> bool:
    given = text or "true"
    found = _SPELLED.get(given.lower())
    if found is None:
        raise BadVoiceRequest(f"`{name}` must be true or false, found {given[:80]!r}")
    return found
