"""What a client of ElevenLabs' API is told: sound, times of characters, ends and errors."""

from __future__ import annotations

import base64
from typing import Any

from starlette.datastructures import Headers
from starlette.types import Scope, Send

from realtime_tts.dialects import api
from realtime_tts.dialects.api import Api, Refusal
from realtime_tts.dialects.fields import WrongField
from realtime_tts.dialects.timing import Timed, characters_of
from realtime_tts.errors import RequestError
from realtime_tts.protocol.effects import TurnFailure
from realtime_tts.protocol.messages import CloseCode
from realtime_tts.protocol.parsing import ProtocolError
from realtime_tts.server.auth import Denial
from realtime_tts.server.front import GOING_AWAY
from realtime_tts.server.speech import SpokenSpan

# Over a WebSocket.


def sound(data: bytes) -> dict[str, Any]:
    """Sound in the format of the address."""
    audio = base64.b64encode(data).decode()
    return {"audio": audio, "isFinal": False, "alignment": None, "normalizedAlignment": None}


def times(span: SpokenSpan, since_ms: int) -> dict[str, Any]:
    """The characters of a span, in milliseconds after `since_ms` of the context's sound."""
    starts, lengths = [], []
    for one in characters_of(span):
        start, end = round(one.start * 1000), round(one.end * 1000)
        starts.append(start - since_ms)
        lengths.append(end - start)
    alignment = {
        "chars": list(span.text), "charStartTimesMs": starts, "charDurationsMs": lengths,
    }  # fmt: skip
    return {"audio": "", "isFinal": False, "alignment": alignment, "normalizedAlignment": alignment}


def final() -> dict[str, Any]:
    """The end of a context, or of a socket of one text."""
    return {"audio": None, "isFinal": True, "alignment": None, "normalizedAlignment": None}


def error(failure: TurnFailure) -> dict[str, Any]:
    """`code` is that of the close, if one follows."""
    name = API.of_failure(failure).code
    return {"message": failure.message, "error": name, "code": int(close_code(failure))}


def close_code(failure: TurnFailure) -> CloseCode:
    """What a socket ends with that ends for this."""
    if failure.code == GOING_AWAY:
        return CloseCode.GOING_AWAY
    status = API.of_failure(failure).status
    if status == 500:
        return CloseCode.INTERNAL
    return CloseCode.TRY_AGAIN if failure.retryable or status == 429 else CloseCode.POLICY


def close_reason(failure: TurnFailure) -> str:
    """A client that was sending when the socket ended may see nothing but this."""
    return api.close_reason(f"{API.of_failure(failure).code}: {failure.message}")


# Over HTTP.


def seconds(characters: list[Timed]) -> dict[str, Any]:
    """Characters with their seconds, as the routes with timestamps have them."""
    return {
        "characters": [one.text for one in characters],
        "character_start_times_seconds": [round(one.start, 3) for one in characters],
        "character_end_times_seconds": [round(one.end, 3) for one in characters],
    }


class ElevenLabs(Api):
    """ElevenLabs' errors."""

    name = "elevenlabs"
    codes = {
        "overloaded": (429, "system_busy"),
        "too_many_sessions": (429, "too_many_concurrent_requests"),
        "too_many_contexts": (429, "max_active_conversations"),
        "rate_limited": (429, "rate_limit_exceeded"),
        "unauthorized": (401, "invalid_api_key"),
        "internal": (500, "internal"),
        "numerics": (500, "numerics"),
    }
    denials = {401: "invalid_api_key"}

    def of_problem(self, problem: RequestError | ProtocolError) -> Refusal:
        reason = reason_of(problem)
        return Refusal(404 if reason == "voice_not_found" else 400, reason, str(problem))

    def body(self, refusal: Refusal, request_id: str) -> dict[str, Any]:
        told = {"status": refusal.code, "message": refusal.message, "request_id": request_id}
        return {"detail": told}


API = ElevenLabs()


def reason_of(problem: RequestError | ProtocolError) -> str:
    """The API's word for it."""
    reason = problem.reason if isinstance(problem, WrongField) else None
    return reason or "invalid_request"


def is_client(scope: Scope) -> bool:
    """Whether a client of this API asks, where a path is another API's as well.

    Their key has a header of its own; without a key, their packages say who they are.
    """
    headers = Headers(scope=scope)
    return "xi-api-key" in headers or "elevenlabs" in headers.get("x-fern-sdk-name", "").lower()


def deny_or(other: Denial) -> Denial:
    """Each client gets the no of its own API."""

    async def choose(scope: Scope, send: Send, status: int, code: str, message: str) -> None:
        chosen = API.deny if is_client(scope) else other
        await chosen(scope, send, status, code, message)

    return choose
