"""The voices of a server: list, clone, register, export, delete. Plain HTTP, blocking."""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import Request

from realtime_tts.client.address import http_url
from realtime_tts.client.trust import http_opener, key_header, refused_certificate, trust_for
from realtime_tts.errors import HandshakeRefused, OverloadedError, RealtimeTTSError, RequestError
from realtime_tts.version import __version__

_MAX_ANSWER = 16 * 1024 * 1024
_PATIENCE = 900.0
"""Seconds; the first recording may wait until the server has downloaded its encoder."""


class VoiceClient:
    """Lists, makes and removes the voices of a server, over HTTP.

    `server`, `api_key` and `tls_ca` are as `RealtimeTTS` takes them.

    Every method raises RequestError for what the server refuses, OverloadedError where it says when
    to try again, HandshakeRefused if it lets nobody in or does not answer. A key that cannot be
    sent is a ConfigError at once.
    """

    def __init__(
        self,
        server: str,
        *,
        api_key: str | None = None,
        tls_ca: str | None = None,
        timeout: float = _PATIENCE,
    ) -> None:
        self._server = server
        self._trust = trust_for(http_url(server, ""), tls_ca)
        self._key_header = key_header(api_key)
        self._timeout = timeout

    def voices(self) -> dict[str, Any]:
        """What the server speaks with: `model`, `voices` (names), `details` (of each), …"""
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

        With `text`, what the recording says word for word, the voice keeps the speaker's manner.
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
        """A registered voice's `embedding`, with `name`, `model` and `language`."""
        return self._json("GET", f"/{quote(name, safe='', errors='replace')}/embedding")

    def delete(self, name: str) -> None:
        """Remove a registered voice."""
        self._request("DELETE", f"/{quote(name, safe='', errors='replace')}")

    def _json(
        self, method: str, path: str, body: bytes | None = None, kind: str | None = None
    ) -> dict[str, Any]:
        answer = self._request(method, path, body, kind)
        try:
            found = json.loads(answer)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise HandshakeRefused(f"{self._server} did not answer as a realtime-tts server")
        return found

    def _request(
        self, method: str, path: str, body: bytes | None = None, kind: str | None = None
    ) -> bytes:
        url = http_url(self._server, "/v1/voices" + path)
        headers = {"User-Agent": f"realtime-tts/{__version__}"}
        headers |= {"Content-Type": kind} if kind else {}
        headers |= self._key_header
        opener = http_opener(url, self._trust)
        request = Request(url, body, headers, method=method)
        try:
            with opener.open(request, timeout=self._timeout) as answer:
                found: bytes = answer.read(_MAX_ANSWER)
                return found
        except HTTPError as error:
            with error:
                raise _refusal(url, error.code, error.read(_MAX_ANSWER)) from None
        except (URLError, HTTPException, OSError) as error:
            reason = getattr(error, "reason", error)
            unanswered = HandshakeRefused(f"no server answers at {url}: {reason}")
            raise refused_certificate(url, reason) or unanswered from None


def _refusal(url: str, status: int, body: bytes) -> RealtimeTTSError:
    """The error for an answer that is none of 2xx."""
    try:
        said = json.loads(body)
        message = str(said["message"])
    except (ValueError, TypeError, KeyError):
        return HandshakeRefused(f"{url}: HTTP {status}; is it a realtime-tts server?", status)
    retry_after_ms = said.get("retry_after_ms")
    if status == 503 and retry_after_ms:
        return OverloadedError(f"{message} (HTTP {status})", retry_after_ms / 1000)
    if status in (401, 403) or status >= 500:
        return HandshakeRefused(f"{message} (HTTP {status})", status)
    return RequestError(message)


def _form(fields: dict[str, str], recording: bytes) -> tuple[bytes, str]:
    """A multipart body and its content type."""
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
