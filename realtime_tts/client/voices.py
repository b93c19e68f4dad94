"""The voices of a server: list, clone, register, export, delete. Plain HTTP, blocking."""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from typing import Any

from realtime_tts.client.http import HttpClient, quoted


class VoiceClient(HttpClient):
    """Lists, makes and removes the voices of a server, over HTTP; see `HttpClient`."""

    path = "/v1/voices"
    patience = 900.0
    """For the first recording, the server may have to download its encoder."""

    def voices(self) -> dict[str, Any]:
        """Return what the server speaks with: `model`, `voices` (names), `details` (of each), …"""
        return self._json("GET", "")

    def clone(
        self,
        name: str,
        recording: bytes,
        *,
        text: str | None = None,
        language: str | None = None,
        append_silence: bool = True,
    ) -> dict[str, Any]:
        """Register a voice from a WAV, FLAC, MP3 or OGG file of 1 to 60 s.

        With `text`, what the recording says word for word, the voice keeps the speaker's way to
        speak.
        """
        fields = {"name": name, "append_silence": "true" if append_silence else "false"}
        fields |= {"text": text} if text else {}
        fields |= {"language": language} if language else {}
        body, kind = _form(fields, recording)
        return self._json("POST", "", body, kind)

    def register(
        self,
        name: str,
        embedding: Sequence[float],
        *,
        language: str | None = None,
        model: str | None = None,
    ) -> dict[str, Any]:
        """Register a voice from a speaker embedding; `model` as `embedding` gave it."""
        asked: dict[str, Any] = {"name": name, "embedding": [float(x) for x in embedding]}
        asked |= {"language": language} if language else {}
        asked |= {"model": model} if model else {}
        return self._json("POST", "", json.dumps(asked).encode(), "application/json")

    def embedding(self, name: str) -> dict[str, Any]:
        """Return a registered voice's `embedding`, with `name`, `model` and `language`."""
        return self._json("GET", f"/{quoted(name)}/embedding")

    def delete(self, name: str) -> None:
        """Remove a registered voice."""
        self._request("DELETE", f"/{quoted(name)}")


def _form(fields: dict[str, str], recording: bytes) -> tuple[bytes, str]:
    """Return a multipart body and its content type."""
    boundary = secrets.token_hex(16)
    parts = [
        f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        for name, value in fields.items()
    ]
    head = (
        f'--{boundary}\r\nContent-Disposition: form-data; name="audio"; filename="recording"\r\n'
        "Content-Type: application/octet-stream\r\n\r\n"
    )
    body = (
        "".join([*parts, head]).encode(errors="replace")
        + recording
        + f"\r\n--{boundary}--\r\n".encode()
    )
    return body, f"multipart/form-data; boundary={boundary}"
