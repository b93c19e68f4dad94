"""What a client of DashScope's Qwen-TTS-Realtime is told: events, in the order of the original."""

from __future__ import annotations

import base64
import json
import secrets
from dataclasses import dataclass, field
from typing import Any

from realtime_tts.dialects.api import Api, Refusal
from realtime_tts.protocol.effects import TurnFailure

_CODES = {
    401: "InvalidApiKey", 403: "AccessDenied", 429: "Throttling", 503: "ServiceUnavailable",
}  # fmt: skip
_OURS = frozenset({"internal", "numerics"})
"""Failures that no other request would avoid, and no other time."""


def event(kind: str, **fields: Any) -> str:
    """One event, with an id of its own."""
    return json.dumps({"event_id": _new("event"), "type": kind, **fields})


@dataclass(slots=True)
class Response:
    """The events of one response, in which one item with one part of sound is spoken."""

    voice: str
    characters: int = 0
    id: str = field(default_factory=lambda: _new("resp"))
    item_id: str = field(default_factory=lambda: _new("item"))
    sounds: bool = False
    over: bool = False

    def opening(self) -> list[str]:
        """Before the first sound."""
        self.sounds = True
        return [
            self._created(),
            event("response.output_item.added", **self._at(), item=self._item("in_progress")),
            event("response.content_part.added", **self._part_at(), part=_part()),
        ]

    def delta(self, data: bytes) -> str:
        """Sound in the format of the session."""
        sound = base64.b64encode(data).decode()
        return event("response.audio.delta", **self._part_at(), delta=sound)

    def closing(self, status: str) -> list[str]:
        """After the last sound; `status`: completed, incomplete or failed. Once only.

        One that never sounded is created first.
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
            "id": self.item_id, "object": "realtime.item", "type": "message", "status": status,
            "role": "assistant", "content": [] if status == "in_progress" else [_part()],
        }  # fmt: skip

    def _body(self, status: str, *, done: bool = False) -> dict[str, Any]:
        body: dict[str, Any] = {
            "id": self.id, "object": "realtime.response", "conversation_id": "",
            "status": status, "voice": self.voice, "output": [],
        }  # fmt: skip
        if done:
            body["modalities"] = ["text", "audio"]
            body["usage"] = {"characters": self.characters}
            if self.sounds:
                content = [{"type": "audio", "transcript": ""}]
                body["output"] = [{**self._item(status), "content": content}]
        return body


def error(failure: TurnFailure, client_event_id: str | None) -> str:
    """`event_id` inside of it is that of the client's event which is at fault, if it had one."""
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
    """DashScope's errors: of an HTTP answer instead of the upgrade."""

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
