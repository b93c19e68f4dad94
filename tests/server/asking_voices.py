"""A server that keeps voices, and a client of its `/v1/voices`."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2

from realtime_tts.voices.encoding import WorkerLimits
from realtime_tts.voices.library import VoiceLibrary
from tests.server.asking import client_of
from tests.server.speaking import Speech, speaking
from tests.voices import makers, recordings

WAV = recordings.encoded(recordings.voice())
EMBEDDING = [0.25, -0.5] * 32


class Voices:
    """A client of one server's `/v1/voices`."""

    def __init__(self, speech: Speech, http: httpx2.AsyncClient) -> None:
        self.speech, self.http = speech, http

    @property
    def places_taken(self) -> int:
        """How many recordings the server has now."""
        worker = self.speech.voices.worker
        assert worker is not None
        return worker._pending

    async def clone(self, name: str, audio: bytes = WAV, **fields: str) -> httpx2.Response:
        files = {"audio": ("reference", audio)}
        return await self.http.post("/v1/voices", data={"name": name, **fields}, files=files)

    async def give(self, name: str, embedding: Any = EMBEDDING, **fields: str) -> httpx2.Response:
        body = {"name": name, "embedding": embedding, **fields}
        return await self.http.post("/v1/voices", json=body)

    async def ids(self) -> list[str]:
        answer = await self.http.get("/v1/voices")
        found = answer.json()
        assert found["voices"] == [voice["id"] for voice in found["details"]]
        return list(found["voices"])


@contextlib.asynccontextmanager
async def voice_server(
    folder: Path,
    limits: WorkerLimits | None = None,
    headers: dict[str, str] | None = None,
    **options: Any,
) -> AsyncIterator[Voices]:
    library = VoiceLibrary(folder / "voices", makers.faulty(folder / "started"), limits)
    async with (
        speaking(voices=library, **options) as running,
        client_of(running, headers) as http,
    ):
        yield Voices(running, http)
