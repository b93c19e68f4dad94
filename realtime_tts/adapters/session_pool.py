"""Sessions with a server for frameworks that open a stream for every reply.

A session speaks one turn at a time, so each stream has one to itself. Afterwards the session is
kept for the next stream, also where the stream was cancelled: the turn was interrupted, and the
server keeps the order of what one socket brings.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from realtime_tts.client.address import websocket_url
from realtime_tts.client.client import Backoff, RealtimeTTS
from realtime_tts.client.options import changes

_LOST = Backoff(give_up_after=5.0)
"""For speech that goes on when its socket is lost. The user of a session decides about the first
attempt, and about those for speech not yet heard, and bounds their time."""

_NO_BOUND = 60.0
_IDLE_SECONDS = 300.0
"""Seconds after which only one unused session is kept: each counts against the server's limit."""


@dataclass(eq=False, slots=True)
class Session:
    """A client and the settings it has; `reused`: it is connected already."""

    client: RealtimeTTS
    options: dict[str, Any]
    reused: bool = False
    idle_since: float = 0.0
    broken: bool = False
    """Whether the server does not answer in this session, so that it must not be used again."""


class SessionPool:
    """Sessions with one server. Nothing is connected before the first `acquire`.

    Raises ConfigError for an address that cannot be used.
    """

    def __init__(self, server: str, api_key: str | None) -> None:
        websocket_url(server)  # refuse it now, not with the first reply
        self._server = server
        self._api_key = api_key
        self._idle: list[Session] = []
        self._busy: set[Session] = set()
        self._closing: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None  # while more than one session is unused

    @property
    def in_use(self) -> bool:
        """Whether there are sessions already."""
        return bool(self._idle or self._busy)

    async def acquire(self, options: Mapping[str, Any]) -> Session:
        """Return a session with these settings, for one turn at a time. Give it back with
        `release`.

        Raises HandshakeRefused, OverloadedError, ConnectionLost, or RequestError for settings that
        the server cannot apply.
        """
        session = self._idle_session() or self._new_session(options)
        self._busy.add(session)
        try:
            if session.reused:
                await _configure(session, options)
            else:
                await session.client.connect()
        except BaseException:
            self.release(session)
            raise
        return session

    def release(self, session: Session) -> None:
        """Keep the session for the next stream, or close it if it is of no use."""
        if session not in self._busy:
            return  # closed meanwhile
        self._busy.remove(session)
        if session.broken or not session.client.connected:
            self._close(session)
            if session.broken:  # perhaps a proxy dropped all sockets without a word
                self._close_idle()
            return
        session.idle_since = time.monotonic()
        self._idle.append(session)
        self._set_timer()

    async def close(self) -> None:
        """Close all sessions; speech on them ends with ConnectionLost."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._close_idle()
        while self._busy:
            self._close(self._busy.pop())
        await asyncio.gather(*self._closing)

    def _idle_session(self) -> Session | None:
        """Return the session that was used last and is still connected, if there is one."""
        while self._idle:
            session = self._idle.pop()
            if session.client.connected:
                session.reused = True
                return session
            self._close(session)
        return None

    def _close_idle(self) -> None:
        while self._idle:
            self._close(self._idle.pop())

    def _set_timer(self) -> None:
        """Look again when the session that is unused for longest may be closed."""
        if self._timer is None and len(self._idle) > 1:
            wait = self._idle[0].idle_since + _IDLE_SECONDS - time.monotonic()
            self._timer = asyncio.get_running_loop().call_later(wait, self._close_unused)

    def _close_unused(self) -> None:
        """Close the sessions that nobody has used for long, except for the last one."""
        self._timer = None
        before = time.monotonic() - _IDLE_SECONDS
        while len(self._idle) > 1 and self._idle[0].idle_since <= before:
            self._close(self._idle.pop(0))
        self._set_timer()

    def _new_session(self, options: Mapping[str, Any]) -> Session:
        client = RealtimeTTS(
            self._server,
            api_key=self._api_key,
            backoff=_LOST,
            connect_timeout=_NO_BOUND,
            reply_timeout=_NO_BOUND,
            **options,
        )
        return Session(client, dict(options))

    def _close(self, session: Session) -> None:
        task = asyncio.create_task(session.client.close(), name="realtime-tts closing")
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


async def _configure(session: Session, options: Mapping[str, Any]) -> None:
    if session.options == options:
        return
    try:
        await session.client.configure(**changes(session.options, options))
    except asyncio.CancelledError:
        session.broken = True  # its settings are not known now
        raise
    session.options = dict(options)
