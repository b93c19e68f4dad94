"""What a client of OpenAI's speech API asks for, parsed and checked; and its voices, as ours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from msgspec import Meta

from realtime_tts.audio.formats import AudioFormat
from realtime_tts.dialects.catalogue import SpeechFields, chosen_voice, our_format, refuse_cloning
from realtime_tts.dialects.fields import WrongField, read_fields
from realtime_tts.errors import RequestError
from realtime_tts.protocol.settings import LeadMs, Limits, Name
from realtime_tts.server.endpoints import object_in

VOICES: dict[str, tuple[str, ...]] = {
    "alloy": ("ava", "vivian"),
    "ash": ("ray", "ryan"),
    "ballad": ("ray", "dylan"),
    "cedar": ("ray", "aiden"),
    "coral": ("ava", "serena"),
    "echo": ("ray", "eric"),
    "fable": ("ray", "aiden"),
    "marin": ("ava", "vivian"),
    "nova": ("ava", "serena"),
    "onyx": ("ray", "uncle_fu"),
    "sage": ("ava", "sohee"),
    "shimmer": ("ava", "ono_anna"),
    "verse": ("ray", "ryan"),
}
"""OpenAI's voices, and which of ours speaks for each: the first that the checkpoint has. If it has
none of them, its own voices stand in, in their order."""

_FORMS = {"voice": 'a string, or an object {"id": "…"}'}


_Format = Annotated[
    str,
    Meta(
        description="a string: mp3, opus, aac, flac, wav, pcm, …, also with hertz, as in pcm_16000"
    ),
]


class SpeechRequest(SpeechFields, frozen=True, kw_only=True):
    """The body of `POST /v1/audio/speech`; other keys are ignored. `language`, `seed` and `lead_ms`
    are ours."""

    input: Annotated[str, Meta(description="a string: the text to speak")]
    response_format: _Format = "mp3"
    stream_format: Literal["audio", "sse"] = "audio"
    language: Name | None = None
    lead_ms: LeadMs | None = None


def parse_request(body: bytes, limits: Limits) -> SpeechRequest:
    """Parse the request in a body. A field that is null counts as absent. Raises RequestError."""
    given = object_in(body)
    if "input" not in given:
        raise WrongField("`input`, the text to speak, is missing", "input")
    refuse_cloning(given)
    voice = given.get("voice")
    if isinstance(voice, dict) and isinstance(voice.get("id"), str):
        given["voice"] = voice["id"]
    request = read_fields(given, SpeechRequest, _FORMS)
    _check(request, limits)
    return request


def _check(request: SpeechRequest, limits: Limits) -> None:
    chars = len(request.input)
    if chars == 0:
        raise WrongField("`input` is empty: there is no text to speak", "input")
    if chars > limits.max_text_chars:
        message = f"`input` must have at most {limits.max_text_chars} characters, it has {chars}"
        raise WrongField(message, "input", "string_above_max_length")
    chars = len(request.instructions or "")
    if chars > limits.max_instructions_chars:
        most = limits.max_instructions_chars
        message = f"`instructions` must have at most {most} characters, they have {chars}"
        raise WrongField(message, "instructions", "string_above_max_length")


def format_of(request: SpeechRequest) -> AudioFormat:
    """Return the format of a request. Raises WrongField if this server cannot make it."""
    try:
        return our_format(request.response_format)
    except RequestError as error:
        raise WrongField(str(error), "response_format") from None


def our_voice(name: str | None, voices: Sequence[str]) -> str | None:
    """Return the voice of this checkpoint that `name` means; None leaves the choice to it.

    Its own names come first, in any case, then OpenAI's. Raises WrongField for any other.
    """
    if name is None:
        return None
    asked = name.lower()
    hint = f", and takes OpenAI's names for them: {', '.join(VOICES)}"
    found = chosen_voice(name, voices, *VOICES.get(asked, ()), foreign=asked in VOICES, hint=hint)
    if found is None and voices:
        found = voices[list(VOICES).index(asked) % len(voices)]
    return found


def usage(text_tokens: int, samples: int, samples_per_frame: int) -> dict[str, Any]:
    """Return tokens in and out, as OpenAI counts them: text tokens, and frames of 80 ms."""
    frames = -(-samples // samples_per_frame)
    return {
        "input_tokens": text_tokens,
        "output_tokens": frames,
        "total_tokens": text_tokens + frames,
    }
