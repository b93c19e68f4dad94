"""A server behind WebSockets as a target: the client sees what a listener sees."""

from __future__ import annotations

import asyncio
import contextlib
import json
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from typing import Any

from realtime_tts.bench.observation import Observation
from realtime_tts.bench.settings import BenchSettings
from realtime_tts.bench.turns import speak
from realtime_tts.bench.workload import TurnPlan
from realtime_tts.client import Backoff, RealtimeTTS
from realtime_tts.client.address import http_url, is_loopback
from realtime_tts.client.trust import http_opener, trust_for

_RECONNECT_SECONDS = 5.0
_HTTP_SECONDS = 10.0


class SocketTarget:
    """The `Target` that is the server named in the settings."""

    def __init__(self, settings: BenchSettings) -> None:
        self._settings = settings

    @property
    def local(self) -> bool:
        return is_loopback(http_url(self._settings.server, "/"))

    async def describe(self) -> dict[str, Any]:
        async with self.client() as tts:
            ready, url = tts.ready, tts.url
        info = await self._get("/v1/voices")
        return {
            "url": url,
            "server": ready.server,
            "model": ready.model,
            "random_weights": bool(json.loads(info).get("random_weights")) if info else None,
            "voice": ready.settings.voice,
            "lead_ms": ready.settings.lead_ms,
        }

    @contextlib.asynccontextmanager
    async def session(self, *, paced: bool = True) -> AsyncIterator[SocketSession]:
        async with self.client() as tts:
            if not paced:
                # As far ahead as anybody may be; see `speak` for what is longer.
                await tts.configure(lead_ms=tts.ready.limits.max_lead_ms)
            yield SocketSession(tts, paced=paced)

    async def metrics(self) -> str:
        return await self._get("/metrics")

    def client(self) -> RealtimeTTS:
        """A client with the settings' options, not yet connected."""
        settings, patience = self._settings, Backoff(give_up_after=_RECONNECT_SECONDS)
        return RealtimeTTS(
            settings.server,
            api_key=settings.api_key,
            tls_ca=settings.tls_ca,
            backoff=patience,
            **settings.options,
        )

    async def _get(self, path: str) -> str:
        """Fetch the body of a GET; it is empty if the server does not answer."""
        key = self._settings.api_key
        headers = {} if key is None else {"authorization": f"Bearer {key}"}
        url = http_url(self._settings.server, path)
        opener = http_opener(url, trust_for(url, self._settings.tls_ca))
        return await asyncio.to_thread(_read, opener, urllib.request.Request(url, headers=headers))


class SocketSession:
    """The `Session` of one WebSocket."""

    def __init__(self, tts: RealtimeTTS, *, paced: bool) -> None:
        self._tts, self._paced = tts, paced

    async def speak(self, turn: TurnPlan) -> Observation:
        return await speak(self._tts, turn.deltas, turn.cut_after, paced=self._paced)


def _read(opener: urllib.request.OpenerDirector, request: urllib.request.Request) -> str:
    try:
        with opener.open(request, timeout=_HTTP_SECONDS) as answer:
            body: bytes = answer.read()
    except (OSError, urllib.error.URLError):
        return ""
    return body.decode("utf-8", "replace")
