"""Replica: what one replica of a Ray Serve deployment is, free of Ray itself.

Ray Serve decides where it runs, with which GPUs, and how many replicas there are, replaces one that
is not healthy, and lets it end in its own time. Sessions do not pass through Ray: the replica runs
a server on ports of its own, and announces it, so that an ingress sends sessions there.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable

import msgspec

from realtime_tts.background import cancel
from realtime_tts.fleet.members import Member
from realtime_tts.fleet.ray_policy import LOAD, LOADING_SECONDS
from realtime_tts.fleet.ray_roster import ANNOUNCE_SECONDS
from realtime_tts.fleet.server_process import ServerProcess
from realtime_tts.outage import Outage

log = logging.getLogger(__name__)

KNOWN_SECONDS = 5.0
"""Seconds until HAProxy sends sessions to a server that has announced itself: the roster is asked
each second, the file is read each second, and then comes a health check."""

Announce = Callable[[Member], Awaitable[None]]


class ReplicaConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The server that a replica runs.

    `serve`: flags of `realtime-tts serve`, such as `["--model", "tts"]`. `host`: the address to
    listen on (default: the node's, by which the others know it). `ports`: the range to take two
    from. `drain_seconds`: how long turns may go on when the replica is stopped. `turn_reserve`: the
    share of the capacity for turns of open sessions. `trusted_proxies`: addresses of the ingress.
    """

    serve: tuple[str, ...] = ()
    host: str | None = None
    ports: tuple[int, int] = (21_000, 21_999)
    drain_seconds: float = 120.0
    turn_reserve: float = 0.1
    trusted_proxies: tuple[str, ...] = ()
    gpus: float = 1.0

    def last_flags(self) -> list[str]:
        """Return the flags that win over `serve`."""
        flags = ["--drain-seconds", str(self.drain_seconds), "--log-format", "json"]
        flags += ["--turn-reserve", str(self.turn_reserve)]
        for proxy in self.trusted_proxies:
            flags += ["--trusted-proxy", proxy]
        # Ray has set CUDA_VISIBLE_DEVICES: all visible GPUs are the replica's.
        return flags + (["--devices", "all"] if self.gpus > 1 else [])


class Replica:
    """A replica, on one event loop. Call `start` first and `stop` last."""

    def __init__(
        self, config: ReplicaConfig, node: str, announce: Announce, leave: Announce
    ) -> None:
        """`node`: the address of the machine, which the ingress can reach."""
        self._config, self._host = config, config.host or node
        self._announce, self._leave = announce, leave
        self._server: ServerProcess | None = None
        self._announcing: asyncio.Task[None] | None = None
        self._loading_seconds = 0.0

    @property
    def server(self) -> ServerProcess:
        """The replica's server, which must have been started."""
        assert self._server is not None
        return self._server

    async def start(self) -> None:
        """Start the server, and return when it takes turns and the ingress has it: in a rolling
        upgrade, Ray Serve stops the next replica then. Raises ServerFailed."""
        began = time.monotonic()
        self._server = await ServerProcess.start(
            self._host, self._config.ports, self._config.serve, self._config.last_flags()
        )
        try:
            await self._server.until_ready()
        except BaseException:
            self._server.kill()
            raise
        self._announcing = asyncio.create_task(self._keep_announcing(), name="announce")
        await asyncio.sleep(KNOWN_SECONDS)
        self._loading_seconds = time.monotonic() - began

    async def stats(self) -> dict[str, float]:
        """Return the figures for the autoscaling policy."""
        load = await self.server.load()
        return {LOAD: load.share, LOADING_SECONDS: self._loading_seconds}

    async def check(self) -> None:
        """Raise ServerFailed if Ray must replace this replica."""
        await self.server.check()

    async def stop(self) -> None:
        """Take no new session, and end once turns are done. Idempotent."""
        await cancel(self._announcing)
        if self._server is not None:
            # The server answers `drain` to the agent check by itself, and refuses: no need to wait
            # for the roster here.
            draining = asyncio.create_task(self._server.drain())
            with contextlib.suppress(Exception):
                await self._leave(self._server.member)
            await draining

    async def _keep_announcing(self) -> None:
        outage = Outage(log, "replica.not_announced", None, logging.WARNING)
        while True:
            try:
                await self.server.load()
                await self._announce(self.server.member)
                outage.end()
            except Exception as error:  # Ray's own, and the server's: tried again in a second
                outage.begin(why=str(error))
            await asyncio.sleep(ANNOUNCE_SECONDS)
