"""A client that sends whole sentences of the same text deltas, like a plugin of another service,
for comparison.

It does what LiveKit's plugin for ElevenLabs (1.8.9, `auto_mode`) does, on this server's socket of
that API: sentences of at least 20 characters are sent, with a flush, once 10 characters after them
are known.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from itertools import count
from typing import Literal
from urllib.parse import urlencode

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException

from realtime_tts.background import cancel
from realtime_tts.bench.observation import Observation, Schedule, clock
from realtime_tts.bench.settings import BenchSettings
from realtime_tts.client.address import http_url, is_local
from realtime_tts.client.trust import trust_for
from realtime_tts.errors import ConnectionLost, HandshakeRefused
from tts_scheduler.report import Trace

_SENTENCE_END = re.compile(r"[.!?]+[\"')\]]*\s+")
_SHORTEST, _BEHIND = 20, 10
_NO_KEY = "none"


class _SentenceClient:
    """One socket, for one text after the other."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._names = (f"text-{number}" for number in count())

    async def speak(self, schedule: Schedule) -> Observation:
        """Send the sentences once they are complete, and collect the packets."""
        seen = Observation(sum(len(delta) for _, delta in schedule), Trace(asked_at=clock()))
        seen.sound = bytearray()
        context_id = next(self._names)
        sending = asyncio.create_task(self._send(context_id, schedule))
        try:
            await self._receive(context_id, seen)
        except (WebSocketException, OSError):
            seen.error = ConnectionLost.code
        finally:
            await cancel(sending)
        return seen

    async def _receive(self, context_id: str, seen: Observation) -> None:
        async for data in self._socket:
            message = json.loads(data)
            if message.get("contextId", context_id) != context_id:
                continue
            if message.get("audio"):
                seen.packet(base64.b64decode(message["audio"]), clock())
            if "error" in message:
                seen.error = str(message["error"])
            if message.get("isFinal") or seen.error:
                return

    async def _send(self, context_id: str, schedule: Schedule) -> None:
        async def tell(text: str, *, flush: bool) -> None:
            message = {"text": text, "context_id": context_id, "flush": flush}
            await self._socket.send(json.dumps(message))

        waiting, due = "", clock()
        await tell(" ", flush=False)
        for gap, delta in schedule:
            due += gap
            await asyncio.sleep(due - clock())
            sentences, waiting = whole_sentences(waiting + delta)
            for sentence in sentences:
                await tell(sentence + " ", flush=True)
        if waiting.strip():
            await tell(waiting.strip() + " ", flush=True)
        await tell("", flush=True)
        await self._socket.send(json.dumps({"context_id": context_id, "close_context": True}))


def whole_sentences(text: str) -> tuple[list[str], str]:
    """Return the sentences that are known to be complete, and the rest of the text."""
    sentences, begin = [], 0
    for match in _SENTENCE_END.finditer(text):
        long_enough = match.end() - begin >= _SHORTEST
        if long_enough and len(text) - match.end() >= _BEHIND:
            sentences.append(text[begin : match.end()].strip())
            begin = match.end()
    return sentences, text[begin:]


@contextlib.asynccontextmanager
async def sentence_client(
    settings: BenchSettings, voice: str
) -> AsyncIterator[Callable[[Schedule], Awaitable[Observation]]]:
    """Connect to the settings' server. Raises HandshakeRefused if that fails."""
    query = urlencode({"output_format": "pcm_24000", "auto_mode": "true"})
    path = f"/v1/text-to-speech/{voice}/multi-stream-input"
    url = f"{http_url(settings.server, path).replace('http', 'ws', 1)}?{query}"
    trust = trust_for(url, settings.tls_ca)
    key = {"xi-api-key": settings.api_key or _NO_KEY}
    proxy: Literal[True] | None = None if is_local(url) else True
    try:
        socket = await connect(
            url, ssl=trust, additional_headers=key, proxy=proxy, compression=None, max_size=None
        )
    except (WebSocketException, OSError) as error:
        raise HandshakeRefused(f"no socket of ElevenLabs' API at {url}: {error}") from error
    async with socket:
        yield _SentenceClient(socket).speak
