"""Front: what all sockets of one server share, and who is let in.

It admits sessions, makes their `Connection`s, and drains them when the server is going.
"""

from __future__ import annotations

import contextlib
import logging
import secrets
from collections.abc import Iterator
from dataclasses import dataclass

from starlette.types import Scope
from starlette.websockets import WebSocket, WebSocketDisconnect

from realtime_tts.audio.encoders import require
from realtime_tts.audio.pcm import BYTES_PER_SAMPLE
from realtime_tts.config import ServerConfig
from realtime_tts.logs import event
from realtime_tts.metrics import Metrics
from realtime_tts.protocol.effects import TurnFailure
from realtime_tts.protocol.messages import (
    SAMPLE_RATE,
    SUBPROTOCOL,
    CloseCode,
    ErrorMessage,
)
from realtime_tts.protocol.parsing import encode
from realtime_tts.protocol.session import ServerInfo, Session
from realtime_tts.protocol.settings import SessionSettings
from realtime_tts.server.auth import send_denial
from realtime_tts.server.connection import Connection
from realtime_tts.server.engine_host import EngineHost
from realtime_tts.server.guests import Guest, Guests
from realtime_tts.server.reporter import SessionReporter
from realtime_tts.server.session_settings import session_defaults, wire_limits
from realtime_tts.server.speech import SpeechError, SpeechStream
from realtime_tts.server.turn_settings import utterance_spec
from realtime_tts.version import __version__
from realtime_tts.voices.library import VoiceLibrary

log = logging.getLogger(__name__)

_MOST_STRANGERS = 64
"""Sockets of other APIs that may be open without having shown a key."""

_SPARED_PART = 8
"""An eighth of the places, at least one, is kept from sockets that have one already."""

_FULL = "too_many_sessions"

SERVER_NAME = f"realtime-tts {__version__}"

GOING_AWAY = "going_away"
GOING = TurnFailure(GOING_AWAY, "the server is shutting down", True, 1_000)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a session is not admitted now, and when to try again (whole seconds)."""

    code: str
    message: str
    retry_after: int


class Front:
    """One server's shared state. All of it lives on the event loop. `voices` None: it keeps none
    but its checkpoint's own."""

    def __init__(
        self,
        config: ServerConfig,
        engine: EngineHost,
        metrics: Metrics,
        voices: VoiceLibrary | None = None,
    ) -> None:
        self.config = config
        self.engine = engine
        self.metrics = metrics
        self.voices = voices
        self.draining = False
        self._connections: set[Connection] = set()
        self._streams: set[SpeechStream] = set()
        self._guests = Guests()
        metrics.sessions.set_function(lambda: self.sessions)
        metrics.open_turns.set_function(self._open_turns)

    @property
    def sessions(self) -> int:
        """Sockets of the native protocol, and streams and sockets of others."""
        return len(self._connections) + len(self._streams) + self._guests.places

    def not_ready(self) -> str | None:
        """None if a new session would be admitted as far as health is concerned, else why not."""
        return "the server is shutting down" if self.draining else self.engine.not_ready()

    # Sessions.

    async def serve(self, websocket: WebSocket) -> None:
        """The endpoint `/v1/tts`; returns when the socket is gone."""
        refusal = self._refusal()
        if refusal is not None:
            with contextlib.suppress(WebSocketDisconnect, OSError):
                await self._refuse(websocket, refusal)
            return
        connection = self._connect(websocket, secrets.token_hex(6))
        self._connections.add(connection)  # before the first await: the place is taken
        try:
            await websocket.accept(_subprotocol(websocket.scope))
            await connection.run()
        except (WebSocketDisconnect, OSError):
            return  # gone before the handshake was answered
        finally:
            self._connections.discard(connection)

    def _refusal(self, held: int = 0, spared: int = 0) -> Refusal | None:
        if self.draining:
            return Refusal(GOING_AWAY, "the server is shutting down; try another", 1)
        reason = self.engine.not_ready()
        if reason is not None:
            return Refusal("not_ready", reason, 2)
        most = self.config.limits.max_sessions
        if self.sessions - held >= most:
            return Refusal(_FULL, f"all {most} sessions are taken; try again later", 5)
        if self.sessions - held >= most - spared:
            message = f"the last {spared} of {most} sessions are for other sockets; try again later"
            return Refusal(_FULL, message, 5)
        return None

    async def _refuse(self, websocket: WebSocket, refusal: Refusal) -> None:
        """503 before the upgrade; a browser cannot see that, so it is told after the upgrade."""
        self.metrics.refused.labels(refusal.code).inc()
        event(log, logging.WARNING, "session.refused", code=refusal.code)
        if "origin" not in websocket.headers:
            await send_denial(
                websocket.scope, websocket.send, 503, refusal.code, refusal.message,
                refusal.retry_after,
            )  # fmt: skip
            return
        await websocket.accept(_subprotocol(websocket.scope))
        error = ErrorMessage(
            code=refusal.code,
            message=refusal.message,
            fatal=True,
            retryable=True,
            retry_after_ms=refusal.retry_after * 1000,
        )
        await websocket.send_text(encode(error))
        going = refusal.code == GOING_AWAY
        await websocket.close(CloseCode.GOING_AWAY if going else CloseCode.TRY_AGAIN, refusal.code)

    def _connect(self, websocket: WebSocket, session_id: str) -> Connection:
        info = self.engine.info
        session = Session(
            ServerInfo(
                session_id,
                SERVER_NAME,
                info.model,
                self.voice_names(),
                info.languages,
                tuple(model.model for model in info.models),
            ),
            defaults=session_defaults(info, self.config.lead_seconds),
            limits=wire_limits(self.config, info),
            check=self._check,
        )
        return Connection(
            websocket,
            session_id,
            session,
            self.engine,
            SessionReporter(session_id, _address(websocket), self.metrics),
            self.max_outbox(),
        )

    def _check(self, settings: SessionSettings) -> None:
        """Raise RequestError for settings that this server cannot do."""
        require(settings.audio)
        self.engine.check(utterance_spec(settings))

    def voice_names(self) -> tuple[str, ...]:
        """What a session can ask for now: speakers, then registered voices."""
        info = self.engine.info
        if self.voices is None or not info.clones:
            return info.voices
        return *info.voices, *(record.id for record in self.voices.registry.voices())

    def max_outbox(self) -> int:
        """Bytes of audio that may wait for one reader."""
        limits = self.config.limits
        bytes_per_second = SAMPLE_RATE * BYTES_PER_SAMPLE
        return round((limits.max_lead_seconds + limits.outbox_seconds) * bytes_per_second)

    def _open_turns(self) -> int:
        sessions = [connection.session for connection in self._connections]
        turns = sum(len(s.queued) + (s.on_air is not None) for s in sessions)
        return turns + len(self._streams) + self._guests.open_turns

    # Streams without a session, and sockets of other APIs.

    @contextlib.contextmanager
    def seated(self, guest: Guest) -> Iterator[None]:
        """The guest's socket counts, and is drained and ended with the server, in this block.

        Raises SpeechError if there is no place now.
        """
        self.admit()
        if guest.places == 0 and self._guests.strangers >= _MOST_STRANGERS:
            message = f"{_MOST_STRANGERS} sockets have not shown their keys; try again later"
            raise SpeechError(TurnFailure(_FULL, message, True, 5_000))
        self._guests.add(guest)
        try:
            yield
        finally:
            self._guests.discard(guest)

    def admit(self, held: int = 0) -> None:
        """Raise SpeechError if a stream that is opened now would not be taken.

        `held`: places that the asker has already and would use.
        """
        self._raise(self._refusal(held))

    def admit_more(self) -> None:
        """The same for one more place of a socket that has one: the last eighth is not for it."""
        self._raise(self._refusal(spared=-(-self.config.limits.max_sessions // _SPARED_PART)))

    def _raise(self, refusal: Refusal | None) -> None:
        if refusal is not None:
            self.metrics.refused.labels(refusal.code).inc()
            event(log, logging.WARNING, "session.refused", code=refusal.code)
            retry_after_ms = refusal.retry_after * 1000
            raise SpeechError(TurnFailure(refusal.code, refusal.message, True, retry_after_ms))

    def check_speech(self, settings: SessionSettings) -> None:
        """Raise RequestError if the limits or the checkpoint do not allow `settings`."""
        wire_limits(self.config, self.engine.info).check(settings)
        self.engine.check(utterance_spec(settings))

    def open_speech(self, stream_id: str, settings: SessionSettings, client: str) -> SpeechStream:
        """A stream of its own; close it. `stream_id` is unique among all there ever were.

        Raises SpeechError if there is no place now, RequestError as `check_speech` does.
        """
        self.admit()
        stream = self._stream(stream_id, settings, client, None)
        self._streams.add(stream)
        return stream

    def open_guest_speech(
        self,
        stream_id: str,
        settings: SessionSettings,
        client: str,
        listener_free_at: float | None = None,
    ) -> SpeechStream:
        """The same for a guest: it was admitted, and holds the place itself.

        `listener_free_at`: when the listener will have heard what the guest sent before it.
        """
        return self._stream(stream_id, settings, client, listener_free_at)

    def _stream(
        self, stream_id: str, settings: SessionSettings, client: str, free_at: float | None
    ) -> SpeechStream:
        self.check_speech(settings)
        reporter = SessionReporter(stream_id, client, self.metrics)
        return SpeechStream(
            stream_id, settings, self.engine, reporter, self.max_outbox(),
            self._streams.discard, listener_free_at=free_at,
        )  # fmt: skip

    # The end.

    def drain(self) -> None:
        """Admit nobody and begin no turn; sessions close when their turns are done. Idempotent.

        Streams without a session have begun their only turn, and go on.
        """
        if not self.draining:
            self.draining = True
            event(log, logging.INFO, "server.draining", sessions=self.sessions)
            for connection in list(self._connections):
                connection.drain()
            self._guests.drain()

    def end_sessions(self) -> None:
        """The deadline has come: end what still runs, with a proper close."""
        self.draining = True
        for connection in list(self._connections):
            connection.fail(GOING.code, GOING.message, CloseCode.GOING_AWAY)
        for stream in list(self._streams):
            stream.fail(GOING)
        self._guests.end()


def _address(websocket: WebSocket) -> str:
    client = websocket.client
    return f"{client.host}:{client.port}" if client is not None else "unknown"


def _subprotocol(scope: Scope) -> str | None:
    """Ours if it was offered; the one with the key in it is never echoed."""
    return SUBPROTOCOL if SUBPROTOCOL in scope.get("subprotocols", ()) else None
