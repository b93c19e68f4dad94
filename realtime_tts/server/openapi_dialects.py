"""Other APIs' HTTP routes in the OpenAPI document: OpenAI's are described, because so many clients
use it; the others refer to their vendors."""

from __future__ import annotations

from realtime_tts.audio.formats import MEDIA_TYPES
from realtime_tts.dialects import openai
from realtime_tts.dialects.openai_request import SpeechRequest
from realtime_tts.dialects.speech_endpoint import EVENTS
from realtime_tts.server.openapi import JSON, Answer, Elsewhere, ErrorCase, Operation, refused
from realtime_tts.server.openapi_native import GATE, STYLE_PATH

_DENIED = tuple(
    ErrorCase(one.status, openai.API.denials.get(one.status, one.code), one.meaning) for one in GATE
)
_NOT_READY = ErrorCase(
    503, "not_ready", "Loading, draining or full: try again after `Retry-After`."
)
_REFUSED = refused(openai.ProblemBody, *_DENIED, _NOT_READY)

_SPEECH = [
    Operation(
        id="create_speech",
        method="POST",
        path=openai.AUDIO_PATHS + "speech",
        summary="Speak a text",
        description="The sound comes while it is made. What fails after the answer has begun cuts "
        "the connection, or is an event where the answer is of events (`stream_format: sse`).",
        body={JSON: SpeechRequest},
        answers={
            200: Answer(
                "The speech, in the format asked for",
                {each: {"type": "string", "contentMediaType": each} for each in MEDIA_TYPES}
                | {EVENTS: {"type": "string"}},
            )
        }
        | refused(
            openai.ProblemBody,
            ErrorCase(400, "null", "A field is missing or wrong: `param` says which."),
            *_DENIED,
            ErrorCase(413, "request_too_large", "The body has too many bytes."),
            ErrorCase(429, "rate_limit_exceeded", "The key has reached one of its limits."),
            _NOT_READY,
        ),
    ),
    Operation(
        id="list_audio_voices",
        path=openai.AUDIO_PATHS + "voices",
        summary="List the voices",
        answers={200: Answer("The voices", {JSON: openai.AudioVoices})} | _REFUSED,
    ),
    Operation(
        id="list_audio_models",
        path=openai.AUDIO_PATHS + "models",
        summary="List the models",
        answers={200: Answer("The models", {JSON: openai.AudioModels})} | _REFUSED,
    ),
    Operation(
        id="list_models",
        path=openai.MODELS_PATH,
        summary="List the loaded checkpoints",
        description="A request with `xi-api-key` gets the list that ElevenLabs' clients expect.",
        answers={200: Answer("The checkpoints", {JSON: openai.ModelList})} | _REFUSED,
    ),
    Operation(
        id="show_model",
        path=openai.MODELS_PATH + "/{model}",
        summary="Show one checkpoint",
        answers={200: Answer("The checkpoint", {JSON: openai.Model})}
        | refused(
            openai.ProblemBody,
            *_DENIED,
            ErrorCase(404, "model_not_found", "There is none of that name."),
            _NOT_READY,
        ),
    ),
]

OPERATIONS = {"Speech, as OpenAI's API has it": _SPEECH}

ELSEWHERE = (
    Elsewhere(
        "ElevenLabs",
        "https://elevenlabs.io/docs/api-reference",
        (
            "/v1/text-to-speech/",
            "/v1/text-to-dialogue",
            "/v2/voices",
            "/v1/pronunciation-dictionaries",
            "/v1/single-use-token/",
        ),
    ),
    Elsewhere(
        "Cartesia",
        "https://docs.cartesia.ai/api-reference",
        ("/tts/", "/voices", "/pronunciation-dicts", "/access-token"),
    ),
    Elsewhere(
        "Deepgram",
        "https://developers.deepgram.com/reference",
        ("/v1/speak", "/v2/speak", "/v1/auth/grant"),
    ),
    Elsewhere(
        "Files of the pages, and the JavaScript client", "", ("/page/", "/client/", STYLE_PATH)
    ),
)
"""Routes that are described elsewhere; docs/dialects.md says which of them this server has."""
