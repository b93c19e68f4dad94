"""What a client of ElevenLabs' API asks for, parsed and checked, and the messages it gets."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, Literal, TypeVar

import msgspec
from starlette.datastructures import Headers
from starlette.types import Scope, Send

from realtime_tts.access.account import Account
from realtime_tts.audio.formats import AudioFormat
from realtime_tts.dialects.api import Api, Refusal
from realtime_tts.dialects.catalogue import chosen_voice, our_format, our_language, our_model
from realtime_tts.dialects.dictionaries import NOT_FOUND, named
from realtime_tts.dialects.fields import (
    AskedSpeed,
    ContextId,
    WrongField,
    number_in,
    read_fields,
    without_nulls,
)
from realtime_tts.dialects.timing import Timed, characters_of
from realtime_tts.errors import RequestError
from realtime_tts.protocol.effects import TurnFailure
from realtime_tts.protocol.messages import CloseCode, close_reason
from realtime_tts.protocol.parsing import ProtocolError
from realtime_tts.protocol.settings import Seed, SessionSettings
from realtime_tts.protocol.ticks import ticks
from realtime_tts.server.auth import Denial
from realtime_tts.server.front import Front
from realtime_tts.server.refusals import GOING_AWAY
from realtime_tts.text.speech_times import SpokenSpan

DEFAULT_FORMAT = "mp3_44100_128"
HOLD_SECONDS = 3.0
"""Text that pauses for this time is spoken to its end."""
SETTLE_SECONDS = 0.3
"""The pause instead, where every message is a sentence: faster ones are spoken as one text."""

S = TypeVar("S", bound=msgspec.Struct)
Closing = Literal["auto", "drain", "cancel"]

_FOREIGN_VOICE = re.compile(r"[A-Za-z0-9]{20}")
_LARGEST_SEED = 2**63 - 1
_LONGEST_IDLE = 180  # seconds, of the API's own servers; more is ignored
_SPELLINGS = {"contextId": "context_id", "xi-api-key": "xi_api_key"}


class VoiceSettings(msgspec.Struct, frozen=True):
    """A voice's settings, of which only the speed has a meaning here."""

    speed: float = 1.0

    @property
    def our_speed(self) -> AskedSpeed:
        return AskedSpeed.nearest(self.speed)


class Locator(msgspec.Struct, frozen=True):
    """A pronunciation dictionary; without a version its newest."""

    pronunciation_dictionary_id: str
    version_id: str | None = None

    @property
    def ref(self) -> str:
        """The dictionary as a session names a lexicon."""
        version = "" if self.version_id is None else f"@{self.version_id}"
        return self.pronunciation_dictionary_id + version


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """A message over either socket. Other keys are ignored."""

    text: str | None = None
    context_id: ContextId | None = None
    flush: bool = False
    close_context: bool = False
    close_socket: bool = False
    pronunciation_dictionary_locators: list[Locator] = []
    voice_settings: VoiceSettings = VoiceSettings()


class Body(msgspec.Struct, frozen=True, kw_only=True):
    """The body of a request over HTTP. Other keys are ignored."""

    text: str
    model_id: str | None = None
    language_code: str | None = None
    seed: Seed | None = None
    pronunciation_dictionary_locators: list[Locator] = []
    voice_settings: VoiceSettings = VoiceSettings()


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the address of a socket asks for, for all its contexts."""

    settings: SessionSettings
    auto_mode: bool
    sync_alignment: bool
    closing: Closing
    idle_seconds: float

    @property
    def hold_seconds(self) -> float:
        return SETTLE_SECONDS if self.auto_mode else HOLD_SECONDS


def parse_message(fields: Mapping[str, Any]) -> Message:
    """Parse the message in a JSON object. Raises RequestError that names the field at fault."""
    return _converted(fields, Message)


def parse_body(fields: Mapping[str, Any]) -> Body:
    """Parse the body of a request over HTTP. Raises RequestError that names the field at fault."""
    if fields.get("text") is None:
        raise RequestError("`text`, the text to speak, is missing")
    return _converted(fields, Body)


def key_in(fields: Mapping[str, Any]) -> str | None:
    """Return the key in a socket's first message."""
    for name in ("xi_api_key", "xi-api-key"):
        if isinstance(key := fields.get(name), str):
            return key
    authorization = fields.get("authorization")
    if not isinstance(authorization, str):
        return None
    kind, _, key = authorization.strip().partition(" ")
    return key.strip() if kind.lower() == "bearer" else authorization


def wanted_of(query: Mapping[str, str], voice: str, front: Front, account: Account) -> Wanted:
    """Return what the address of a socket asks for. Raises RequestError."""
    audio = audio_of(query.get("output_format") or DEFAULT_FORMAT)
    closing = query.get("close_context") or "auto"
    if closing not in ("auto", "drain", "cancel"):
        raise RequestError(f"`close_context` must be auto, drain or cancel, found {closing[:40]!r}")
    asked = query.get("seed")
    seed = number_in(asked, _LARGEST_SEED) if asked else None
    if asked and seed is None:
        raise RequestError(f"`seed` must be a whole number from 0 to {_LARGEST_SEED}")
    settings = front.settings(
        audio=audio,
        model=our_model(query.get("model_id"), front.info),
        voice=our_voice(voice, front.voice_names(account)),
        language=our_language(query.get("language_code") or None, front.info),
        seed=seed,
    )
    auto_mode, sync_alignment = (
        (query.get(name) or "").lower() in ("true", "1") for name in ("auto_mode", "sync_alignment")
    )
    idle = number_in(query.get("inactivity_timeout") or "", _LONGEST_IDLE) or inf
    return Wanted(settings, auto_mode, sync_alignment, closing, idle)  # type: ignore[arg-type]


def lexicons_of(locators: Sequence[Locator], front: Front) -> list[str]:
    """Return the stored lexicons that are meant. Raises WrongField for an unknown one."""
    return named(front, [each.ref for each in locators], "pronunciation_dictionary_locators")


def audio_of(name: str) -> AudioFormat:
    """Return the format of that name. Raises WrongField if this server cannot make it."""
    try:
        return our_format(name)
    except RequestError as error:
        raise WrongField(str(error), "output_format", "output_format_not_allowed") from None


def our_voice(name: str, voices: Sequence[str]) -> str | None:
    """Return the voice of this server that is meant; None leaves the choice to the checkpoint.

    An id of ElevenLabs' own, 20 letters and digits, gets the checkpoint's default. Raises
    WrongField for any other name that no voice has.
    """
    foreign = _FOREIGN_VOICE.fullmatch(name) is not None
    hint = ", and takes the id of any of ElevenLabs' voices for its own default"
    return chosen_voice(name, voices, foreign=foreign, hint=hint)


def _converted(fields: Mapping[str, Any], kind: type[S]) -> S:
    given = without_nulls({_SPELLINGS.get(name, name): value for name, value in fields.items()})
    return read_fields(given, kind, {})


# Over a WebSocket.


def sound(data: bytes) -> dict[str, Any]:
    """Return a piece of sound, in the format of the address."""
    audio = base64.b64encode(data).decode()
    return {"audio": audio, "isFinal": False, "alignment": None, "normalizedAlignment": None}


def times(span: SpokenSpan, since_ms: int) -> dict[str, Any]:
    """Return the characters of a span, in milliseconds after `since_ms` of the context's sound."""
    starts, lengths = [], []
    for one in characters_of(span):
        start, end = ticks(one.start, 1000), ticks(one.end, 1000)
        starts.append(start - since_ms)
        lengths.append(end - start)
    alignment = {
        "chars": list(span.text),
        "charStartTimesMs": starts,
        "charDurationsMs": lengths,
    }
    return {"audio": "", "isFinal": False, "alignment": alignment, "normalizedAlignment": alignment}


def final() -> dict[str, Any]:
    """Return the end of a context, or of a socket of one text."""
    return {"audio": None, "isFinal": True, "alignment": None, "normalizedAlignment": None}


def error(failure: TurnFailure) -> dict[str, Any]:
    """Return an error; its `code` is that of the close, if one follows."""
    name = API.of_failure(failure).code
    return {"message": failure.message, "error": name, "code": int(close_code(failure))}


def close_code(failure: TurnFailure) -> CloseCode:
    """Return the close code of a socket that ends because of this failure."""
    if failure.code == GOING_AWAY:
        return CloseCode.GOING_AWAY
    status = API.of_failure(failure).status
    if status == 500:
        return CloseCode.INTERNAL
    waits = failure.retryable or (status == 429 and failure.code != "rate_limited")
    return CloseCode.TRY_AGAIN if waits else CloseCode.POLICY


def reason_to_close(failure: TurnFailure) -> str:
    """Return the reason of a close: a client that was sending may see nothing else."""
    return close_reason(f"{API.of_failure(failure).code}: {failure.message}")


# Over HTTP.


def seconds(characters: list[Timed]) -> dict[str, Any]:
    """Return characters with their times in seconds, as the routes with timestamps have them."""
    return {
        "characters": [one.text for one in characters],
        "character_start_times_seconds": [ticks(one.start, 1000) / 1000 for one in characters],
        "character_end_times_seconds": [ticks(one.end, 1000) / 1000 for one in characters],
    }


class ElevenLabs(Api):
    name = "elevenlabs"
    codes = {
        "overloaded": (503, "system_busy"),
        "too_many_sessions": (503, "too_many_concurrent_requests"),
        "too_many_contexts": (429, "max_active_conversations"),
        "rate_limited": (429, "rate_limit_exceeded"),
        "key_limit_reached": (429, "too_many_concurrent_requests"),
        "unauthorized": (401, "invalid_api_key"),
        "internal": (500, "internal"),
        "numerics": (500, "numerics"),
    }
    denials = {401: "invalid_api_key"}

    def id_headers(self, request_id: str) -> dict[str, str]:
        """Under the API's own name as well: clients quote it in later requests."""
        return {**super().id_headers(request_id), "request-id": request_id}

    def code_of(self, problem: RequestError | ProtocolError) -> str:
        reason = problem.reason if isinstance(problem, WrongField) else None
        return reason or "invalid_request"

    def of_problem(self, problem: RequestError | ProtocolError) -> Refusal:
        reason = self.code_of(problem)
        missing = reason in ("voice_not_found", NOT_FOUND)
        return Refusal(404 if missing else 400, reason, str(problem))

    def body(self, refusal: Refusal, request_id: str) -> dict[str, Any]:
        told = {"status": refusal.code, "message": refusal.message, "request_id": request_id}
        return {"detail": told}


API = ElevenLabs()


def is_client(scope: Scope) -> bool:
    """Return whether a client of this API asks, at a path that another API has as well.

    Their key has a header of its own; without a key, their packages name themselves.
    """
    headers = Headers(scope=scope)
    return "xi-api-key" in headers or "elevenlabs" in headers.get("x-fern-sdk-name", "").lower()


def deny_or(other: Denial) -> Denial:
    """Return a denial in this API's form for its clients, and `other` for all others."""

    async def choose(scope: Scope, send: Send, status: int, code: str, message: str) -> None:
        chosen = API.deny if is_client(scope) else other
        await chosen(scope, send, status, code, message)

    return choose
