"""What a client of DashScope's API asks for, parsed and checked, and the messages it gets."""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from realtime_tts.audio.formats import AudioFormat, parse_format
from realtime_tts.dialects.api import Api, Refusal
from realtime_tts.dialects.catalogue import chosen_voice, our_format
from realtime_tts.dialects.fields import read_fields
from realtime_tts.errors import RequestError
from realtime_tts.protocol.effects import TurnFailure
from realtime_tts.protocol.settings import Seed

_FEMALE = ("ava", "serena", "vivian")
_MALE = ("ray", "ryan", "dylan")
_THEIR_FEMALE = (
    "Bella, Bellona, Bunny, Chelsie, Cherry, Ebona, Elias, Jada, Jennifer, Katerina, Kiki, Maia, "
    "Mia, Momo, Nini, Ono Anna, Seren, Serena, Sohee, Sonrisa, Stella, Sunny, Vivian"
)
_THEIR_MALE = (
    "Aiden, Alek, Andre, Arthur, Bodega, Dolce, Dylan, Eldric Sage, Emilien, Eric, Ethan, Kai, "
    "Lenn, Li, Marcus, Mochi, Moon, Neil, Nofish, Peter, Pip, Radio Gol, Rocky, Roy, Ryan, Vincent"
)
VOICES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_THEIR_FEMALE.split(", "), _FEMALE),
    **dict.fromkeys(_THEIR_MALE.split(", "), _MALE),
}
"""DashScope's system voices, and which of ours may speak for each: the first that exists."""

_FORMS = {
    "response_format": '"pcm", "wav", "mp3" or "opus"',
    "sample_rate": "a whole number of Hz",
    "bit_rate": "a whole number of kbit/s",
    "language_type": 'a string, such as "Auto" or "English"',
}


class Wishes(msgspec.Struct, frozen=True, kw_only=True):
    """The whole `session` that the updates so far ask for. Other keys are ignored."""

    mode: Literal["server_commit", "commit"] = "server_commit"
    voice: str | None = None
    response_format: str = "pcm"
    sample_rate: int | None = None
    bit_rate: int | None = None
    language_type: str = "Auto"
    instructions: str = ""
    speech_rate: float = 1.0
    pitch_rate: float = 1.0
    volume: float = 50
    seed: Seed | None = None

    @property
    def hertz(self) -> int:
        """The sample rate in hertz; without one, that of the format's name."""
        named = parse_format(self.response_format).sample_rate
        return named if self.sample_rate is None else self.sample_rate

    @property
    def audio(self) -> AudioFormat:
        """This server's name for the format. Raises RequestError if the server cannot make it."""
        compressed = self.response_format in ("mp3", "opus")  # the other formats have no bit rate
        bit_rate = self.bit_rate * 1000 if compressed and self.bit_rate is not None else None
        return our_format(self.response_format, self.sample_rate, bit_rate=bit_rate)


def parse_wishes(fields: dict[str, Any]) -> Wishes:
    """Parse all that a session's updates have asked for. Raises RequestError that names a key."""
    wishes = read_fields(fields, Wishes, _FORMS, within="session")
    for name, usual in (("pitch_rate", 1), ("volume", 50)):
        value = getattr(wishes, name)
        if value != usual:
            raise RequestError(
                f"`session.{name}` must be {usual}, or left out: this server speaks as the voice "
                f"does, and cannot change that to {value:g}"
            )
    return wishes


def our_voice(name: str | None, voices: Sequence[str]) -> str | None:
    """Return the voice of this server that is meant; None leaves the choice to the checkpoint.

    Our names come first, in any case, then DashScope's. Raises RequestError for any other.
    """
    if name is None:
        return None
    theirs = {_plain(voice): ours for voice, ours in VOICES.items()}
    also = theirs.get(_plain(name), ())
    hint = ", and speaks with them for DashScope's system voices, such as Cherry and Ethan"
    return chosen_voice(name, voices, _plain(name), *also, foreign=bool(also), hint=hint)


def _plain(name: str) -> str:
    return name.lower().replace(" ", "_")


_CODES = {
    401: "InvalidApiKey",
    403: "AccessDenied",
    429: "Throttling",
    503: "ServiceUnavailable",
}
_OURS = frozenset({"internal", "numerics"})
"""Codes of failures that are the server's, although trying again does not help."""


def event(kind: str, **fields: Any) -> str:
    """Return an event, with an id of its own."""
    return json.dumps({"event_id": _new("event"), "type": kind, **fields})


@dataclass(slots=True)
class Response:
    """The events of one response, in which one item with one audio part is spoken."""

    voice: str
    characters: int = 0
    id: str = field(default_factory=lambda: _new("resp"))
    item_id: str = field(default_factory=lambda: _new("item"))
    sounds: bool = False
    over: bool = False

    def opening(self) -> list[str]:
        """Return the events before the first sound."""
        self.sounds = True
        return [
            self._created(),
            event("response.output_item.added", **self._at(), item=self._item("in_progress")),
            event("response.content_part.added", **self._part_at(), part=_part()),
        ]

    def delta(self, data: bytes) -> str:
        """Return a piece of sound, in the format of the session."""
        sound = base64.b64encode(data).decode()
        return event("response.audio.delta", **self._part_at(), delta=sound)

    def closing(self, status: str) -> list[str]:
        """Return, once, the events after the last sound; `status`: completed, incomplete or failed.

        A response that never sounded is created first.
        """
        if self.over:
            return []
        self.over = True
        done = event("response.done", response=self._body(status, done=True))
        if not self.sounds:
            return [self._created(), done]
        return [
            event("response.audio.done", **self._part_at()),
            event("response.content_part.done", **self._part_at(), part=_part()),
            event("response.output_item.done", **self._at(), item=self._item(status)),
            done,
        ]

    def _created(self) -> str:
        return event("response.created", response=self._body("in_progress"))

    def _at(self) -> dict[str, Any]:
        return {"response_id": self.id, "output_index": 0}

    def _part_at(self) -> dict[str, Any]:
        return {**self._at(), "item_id": self.item_id, "content_index": 0}

    def _item(self, status: str) -> dict[str, Any]:
        return {
            "id": self.item_id,
            "object": "realtime.item",
            "type": "message",
            "status": status,
            "role": "assistant",
            "content": [] if status == "in_progress" else [_part()],
        }

    def _body(self, status: str, *, done: bool = False) -> dict[str, Any]:
        body: dict[str, Any] = {
            "id": self.id,
            "object": "realtime.response",
            "conversation_id": "",
            "status": status,
            "voice": self.voice,
            "output": [],
        }
        if done:
            body["modalities"] = ["text", "audio"]
            body["usage"] = {"characters": self.characters}
            if self.sounds:
                content = [{"type": "audio", "transcript": ""}]
                body["output"] = [{**self._item(status), "content": content}]
        return body


def error(failure: TurnFailure, client_event_id: str | None) -> str:
    """Return an error; its inner `event_id` is that of the client's event at fault, if any."""
    ours = failure.retryable or failure.code in _OURS
    body = {
        "type": "server_error" if ours else "invalid_request_error",
        "code": failure.code if ours or failure.code != "bad_request" else "invalid_value",
        "message": failure.message,
    }
    if client_event_id is not None:
        body["event_id"] = client_event_id
    return event("error", error=body)


class DashScope(Api):
    """DashScope's errors, as HTTP answers in place of the upgrade."""

    name = "dashscope"

    def body(self, refusal: Refusal, request_id: str) -> dict[str, Any]:
        code = _CODES.get(refusal.status, "InvalidParameter")
        return {"code": code, "message": refusal.message, "request_id": request_id}

    def new_request_id(self) -> str:
        return secrets.token_hex(16)


API = DashScope()


def _part() -> dict[str, str]:
    return {"type": "audio", "text": ""}


def _new(kind: str) -> str:
    return f"{kind}_{secrets.token_urlsafe(16)}"
