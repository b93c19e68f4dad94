"""A server behind WebSockets as a target: the client sees what a listener sees."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

from realtime_tts.background import cancel
from realtime_tts.bench.observation import Observation, Schedule, clock
from realtime_tts.bench.settings import BenchSettings
from realtime_tts.bench.workload import Speak
from realtime_tts.client import Backoff, RealtimeTTS, Turn
from realtime_tts.client.address import http_url, is_local
from realtime_tts.client.http import HttpClient
from realtime_tts.errors import OverloadedError, RealtimeTTSError, TurnError
from realtime_tts.protocol.messages import SAMPLE_RATE
from tts_scheduler.report import Trace

_HEARD_EVERY = 5 * SAMPLE_RATE
_RECONNECT_SECONDS = 5.0


class _Routes(HttpClient):
    path = ""
    patience = 10.0

    def get(self, path: str) -> str:
        """Return the body of a GET; it is empty if the server does not answer."""
        try:
            return self._request("GET", path).decode("utf-8", "replace")
        except RealtimeTTSError:
            return ""


class SocketTarget:
    """The `Target` that is the server named in the settings."""

    def __init__(self, settings: BenchSettings) -> None:
        self._settings = settings

    @property
    def local(self) -> bool:
        return is_local(http_url(self._settings.server, "/"))

    async def describe(self) -> dict[str, Any]:
        async with self.client() as tts:
            ready, url = tts.ready, tts.url
        info = await self._get("/v1/voices")
        return {
            "url": url,
            "server": ready.server,
            "model": ready.model,
            "random_weights": _random_weights(info),
            "voice": ready.settings.voice,
            "lead_ms": ready.settings.lead_ms,
        }

    @contextlib.asynccontextmanager
    async def session(self, *, paced: bool = True) -> AsyncIterator[Speak]:
        async with self.client() as tts:
            if not paced:
                # The largest lead allowed; `speak` handles turns that are longer.
                await tts.configure(lead_ms=tts.ready.limits.max_lead_ms)
            yield lambda turn: speak(tts, turn.deltas, turn.cut_after, paced=paced)

    async def metrics(self) -> str:
        return await self._get("/metrics")

    def client(self) -> RealtimeTTS:
        """Return a client with the settings' options, not yet connected."""
        settings, patience = self._settings, Backoff(give_up_after=_RECONNECT_SECONDS)
        return RealtimeTTS(
            settings.server,
            api_key=settings.api_key,
            tls_ca=settings.tls_ca,
            backoff=patience,
            **settings.options,
        )

    async def _get(self, path: str) -> str:
        settings = self._settings
        routes = _Routes(settings.server, api_key=settings.api_key, tls_ca=settings.tls_ca)
        return await asyncio.to_thread(routes.get, path)


def _random_weights(info: str) -> bool | None:
    """Return what the server says of itself; None if something else answers, such as a proxy."""
    try:
        return bool(json.loads(info)["random_weights"])
    except (ValueError, TypeError, KeyError):
        return None


async def speak(
    tts: RealtimeTTS,
    schedule: Schedule,
    cut_after: float | None = None,
    *,
    paced: bool = True,
    keep_sound: bool = False,
) -> Observation:
    """Send the deltas in their time, and return what was observed.

    `cut_after`: interrupt this many seconds after the first packet. Unpaced, sound is reported as
    played when it arrives, so that the server never waits for a listener. Errors of the server and
    of the connection are not raised: they are part of the observation.
    """
    seen = Observation(sum(len(delta) for _, delta in schedule), Trace(asked_at=clock()))
    seen.sound = bytearray() if keep_sound else None
    tasks: list[asyncio.Task[None]] = []
    heard = 0
    try:
        turn = await tts.turn()
        tasks.append(asyncio.create_task(_feed(turn, schedule, seen)))
        async for packet in turn:
            seen.packet(packet, clock())
            if cut_after is not None and len(tasks) == 1:
                tasks.append(asyncio.create_task(_cut(turn, cut_after, seen)))
            if not paced and turn.samples_received - heard >= _HEARD_EVERY:
                heard = turn.samples_received
                await turn.played(heard / SAMPLE_RATE * 1000)
        if not paced:  # else this turn's audio would still count as unheard in the next turn
            await turn.played(turn.samples_received / SAMPLE_RATE * 1000)
        if len(tasks) > 1:
            await tasks[1]  # of a turn that is cut off, the result comes after the last packet
        seen.result = turn.result
        seen.layout, seen.words = turn.layout, turn.words
    except RealtimeTTSError as error:
        seen.error = (
            error.server_code if isinstance(error, TurnError | OverloadedError) else error.code
        )
        seen.retry_after = error.retry_after if isinstance(error, OverloadedError) else 0.0
    finally:
        await cancel(*tasks)
    return seen


async def _feed(turn: Turn, schedule: Schedule, seen: Observation) -> None:
    due = clock()
    try:
        for number, (gap, delta) in enumerate(schedule):
            due += gap  # from the plan, not from now: a late delta must not delay all later ones
            if (wait := due - clock()) > 0:
                await asyncio.sleep(wait)
            if number == 0:
                seen.trace.asked_at = clock()
            await turn.send(delta, end=number == len(schedule) - 1)
    except RealtimeTTSError as error:
        turn.abandon(error)  # else the reader would wait for ever; no effect if it failed already


async def _cut(turn: Turn, after: float, seen: Observation) -> None:
    await asyncio.sleep(after)
    on_air = not turn.over
    asked_at = clock()
    await turn.interrupt(played_ms=after * 1000)
    seen.interrupt_seconds = clock() - asked_at
    if on_air and turn.last_audio_at is not None:
        seen.last_byte_seconds = max(0.0, turn.last_audio_at - asked_at)
