"""The server's own HTTP routes, as the operations of its OpenAPI document."""

from __future__ import annotations

from typing import Any

import msgspec

from realtime_tts.access.account import LIMIT_REACHED, UNAUTHORIZED
from realtime_tts.lexicons import errors as lexicons
from realtime_tts.lexicons.request import LexiconBody
from realtime_tts.protocol.messages import ErrorMessage
from realtime_tts.server.auth import TOO_MANY_REQUESTS
from realtime_tts.server.lexicons import LEXICONS_PATH, Lexicon, LexiconList, WholeLexicon
from realtime_tts.server.load import Load
from realtime_tts.server.openapi import JSON, TEXT, Answer, ErrorCase, Operation, Parameter, refused
from realtime_tts.server.refusals import GOING_AWAY
from realtime_tts.server.tokens import DEFAULT_SECONDS, LONGEST_SECONDS, TOKEN_PATH, Token
from realtime_tts.server.usage import DAYS, MOST_DAYS, USAGE_PATH, AllUsage, KeyUsage
from realtime_tts.server.voices import NotReadyError, Voice, VoiceList
from realtime_tts.voices import errors as voices
from realtime_tts.voices.form import FILE_FIELD, EmbeddingBody, NewVoice

GATE = (
    ErrorCase(401, UNAUTHORIZED, "A valid key is needed."),
    ErrorCase(403, "origin_not_allowed", "The page that asks is not allowed; see --allow-origin."),
    ErrorCase(429, TOO_MANY_REQUESTS, "More requests a second than one address or key may send."),
)
"""The cases in which the gate refuses a request."""

_NO_SESSION = (
    ErrorCase(429, LIMIT_REACHED, "The key has as many sessions as it may have at once."),
    ErrorCase(503, "too_many_sessions", "There is no room for another session now."),
    ErrorCase(503, "not_ready", "Loading, or no engine could speak."),
    ErrorCase(503, GOING_AWAY, "The server is shutting down."),
)
_ADMIN = ErrorCase(403, "admin_only", "For the server's own keys, and for keys with `admin`.")
_BAD_REQUEST = ErrorCase(400, "bad_request", "A parameter is out of range.")
_PLAIN = {TEXT: {"type": "string"}}
_PLS = {"application/pls+xml": {"type": "string"}}


def _form() -> dict[str, Any]:
    """Return the schema of `NewVoice`, with the recording as a file in a form."""
    _, shapes = msgspec.json.schema_components([NewVoice])
    recording = {"type": "string", "contentMediaType": "application/octet-stream"}
    schema: dict[str, Any] = shapes["NewVoice"]
    schema["properties"] |= {FILE_FIELD: recording}
    return schema


def _of_voices(*kinds: type[voices.VoiceRequestError]) -> dict[int, Answer]:
    return refused(ErrorMessage, *GATE, *map(ErrorCase.of, kinds), ErrorCase.of(NotReadyError))


def _of_lexicons(*more: type[lexicons.LexiconError] | ErrorCase) -> dict[int, Answer]:
    found = [each if isinstance(each, ErrorCase) else ErrorCase.of(each) for each in more]
    return refused(ErrorMessage, *GATE, *found, ErrorCase.of(lexicons.NoLexicons))


_VOICES = [
    Operation(
        id="list_voices",
        path="/v1/voices",
        summary="List the voices",
        description="Speakers of the loaded checkpoints, and registered voices. A request with "
        "`xi-api-key` gets the list that ElevenLabs' clients expect.",
        answers={200: Answer("The voices", {JSON: VoiceList})} | _of_voices(),
    ),
    Operation(
        id="create_voice",
        method="POST",
        path="/v1/voices",
        summary="Register a voice",
        description="From a recording in a form, or from an embedding as JSON. It needs a Base "
        "checkpoint and --voices-dir.",
        body={"multipart/form-data": _form(), JSON: EmbeddingBody},
        answers={201: Answer("The registered voice", {JSON: Voice})}
        | _of_voices(
            voices.BadVoiceRequest,
            voices.NotAllowed,
            voices.VoiceExists,
            voices.CannotClone,
            voices.UploadTooLarge,
            voices.UnsupportedMedia,
            voices.BadAudio,
            voices.EncoderFailed,
            voices.EncoderBusy,
            voices.CannotStore,
        ),
    ),
    Operation(
        id="show_voice",
        path="/v1/voices/{id}",
        summary="Show one voice",
        answers={200: Answer("The voice", {JSON: Voice})} | _of_voices(voices.UnknownVoice),
    ),
    Operation(
        id="delete_voice",
        method="DELETE",
        path="/v1/voices/{id}",
        summary="Remove a registered voice",
        description="Turns that speak with it go on.",
        answers={204: Answer("The voice is gone")}
        | _of_voices(
            voices.NotAllowed,
            voices.UnknownVoice,
            voices.BuiltInVoice,
            voices.CannotStore,
        ),
    ),
    Operation(
        id="export_embedding",
        path="/v1/voices/{id}/embedding",
        summary="Export the embedding of a registered voice",
        description="As JSON that `POST /v1/voices` accepts.",
        answers={200: Answer("The embedding", {JSON: EmbeddingBody})}
        | _of_voices(voices.UnknownVoice, voices.BuiltInVoice),
    ),
]

_LEXICONS = [
    Operation(
        id="list_lexicons",
        path=LEXICONS_PATH,
        summary="List the stored lexicons",
        answers={200: Answer("The newest version of each", {JSON: LexiconList})} | _of_lexicons(),
    ),
    Operation(
        id="show_lexicon",
        path=LEXICONS_PATH + "/{ref}",
        summary="Show a lexicon with its entries",
        description="`ref` is its name, or `name@version` for one version.",
        parameters=(
            Parameter("format", "JSON or PLS", {"enum": ["json", "pls"], "default": "json"}),
        ),
        answers={200: Answer("The lexicon", {JSON: WholeLexicon, **_PLS})}
        | _of_lexicons(lexicons.LexiconError, lexicons.UnknownLexicon),
    ),
    Operation(
        id="put_lexicon",
        method="PUT",
        path=LEXICONS_PATH + "/{ref}",
        summary="Store a new version of a lexicon",
        description="`ref` is its name: 1 to 64 characters of a-z, 0-9, _ and -.",
        body={JSON: LexiconBody, **_PLS},
        answers={201: Answer("The new version", {JSON: Lexicon})}
        | _of_lexicons(
            _ADMIN,
            lexicons.LexiconError,
            lexicons.TooManyLexicons,
            lexicons.LexiconTooLarge,
            lexicons.UnsupportedMedia,
            lexicons.CannotStore,
        ),
    ),
    Operation(
        id="delete_lexicon",
        method="DELETE",
        path=LEXICONS_PATH + "/{ref}",
        summary="Delete a lexicon, or one version of it",
        description="`ref` is its name, or `name@version` for one version.",
        answers={204: Answer("It is gone")}
        | _of_lexicons(_ADMIN, lexicons.UnknownLexicon, lexicons.CannotStore),
    ),
]

_ACCESS = [
    Operation(
        id="create_token",
        method="POST",
        path=TOKEN_PATH,
        summary="Make a short-lived token for a web page",
        description="The page sends it where the key would be. It speaks and reads lists; it makes "
        "no tokens and changes no voices.",
        parameters=(
            Parameter(
                "seconds",
                "How long it lasts",
                {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": LONGEST_SECONDS,
                    "default": DEFAULT_SECONDS,
                },
            ),
            Parameter("origin", "The origin of the page that may use it; any, if not given"),
        ),
        answers={200: Answer("The token", {JSON: Token})}
        | refused(ErrorMessage, *GATE, _BAD_REQUEST),
    ),
    Operation(
        id="show_usage",
        path=USAGE_PATH,
        summary="Show what a key has used, by day",
        description="There is such a route only on a server with customers' keys (--keys). An "
        "`admin` key and the server's own see all keys.",
        parameters=(
            Parameter(
                "days",
                "How many days, up to today",
                {"type": "integer", "minimum": 1, "maximum": MOST_DAYS, "default": DAYS},
            ),
        ),
        answers={200: Answer("Of one key, or of all", {JSON: (KeyUsage, AllUsage)})}
        | refused(
            ErrorMessage,
            *GATE,
            _BAD_REQUEST,
            ErrorCase(404, "not_found", "The server has no customers' keys."),
            ErrorCase(503, "not_ready", "The record of usage cannot be read now."),
        ),
    ),
]


def _probe(path: str, summary: str, problem: str, description: str = "") -> Operation:
    return Operation(
        id=path.removeprefix("/"),
        path=path,
        summary=summary,
        description=description,
        open=True,
        answers={200: Answer("`ok`", _PLAIN), 503: Answer(problem, _PLAIN)},
    )


def _file(id: str, path: str, summary: str, media_type: str, kind: str = "string") -> Operation:
    return Operation(
        id=id,
        path=path,
        summary=summary,
        open=True,
        answers={
            200: Answer("", {media_type: {"type": kind}}),
            304: Answer("It has not changed (`If-None-Match`)"),
        },
    )


OPENAPI_PATH, DOCS_PATH, STYLE_PATH = "/openapi.json", "/docs", "/docs.css"

_OPERATION = [
    _probe("/livez", "Liveness", "A restart would help: what is wrong"),
    _probe("/readyz", "Readiness", "Loading, warming up or draining: what is awaited"),
    _probe(
        "/health",
        "Readiness",
        "Loading, warming up or draining: what is awaited",
        "The same as `/readyz`, under the name that other servers use.",
    ),
    Operation(
        id="metrics",
        path="/metrics",
        summary="Metrics for Prometheus",
        description="In the text format, or in OpenMetrics where `Accept` asks for it.",
        answers={
            200: Answer(
                "The metrics",
                _PLAIN | {"application/openmetrics-text": {"type": "string"}},
            ),
            503: Answer("The other processes of the server do not answer", _PLAIN),
        }
        | refused(ErrorMessage, *GATE, _ADMIN),
    ),
    Operation(
        id="load",
        path="/v1/load",
        summary="How full the server is",
        description="Also before it is ready, and while it drains.",
        answers={200: Answer("A snapshot", {JSON: Load})} | refused(ErrorMessage, *GATE, _ADMIN),
    ),
    Operation(
        id="websocket",
        path="/v1/tts",
        summary="The WebSocket for speech",
        description="With the subprotocol `realtime-tts.v1`; PROTOCOL.md in the source describes "
        "its messages. A plain request is told so.",
        answers={
            101: Answer("The upgrade to a WebSocket"),
            426: Answer("No upgrade was asked for", _PLAIN),
        }
        | refused(ErrorMessage, *GATE, *_NO_SESSION),
    ),
    _file("page", "/", "The demo page", "text/html"),
    _file("openapi", OPENAPI_PATH, "This document", JSON, "object"),
    _file("docs", DOCS_PATH, "This document as a page", "text/html"),
]

OPERATIONS = {
    "Voices": _VOICES,
    "Lexicons": _LEXICONS,
    "Access": _ACCESS,
    "Operation": _OPERATION,
}
