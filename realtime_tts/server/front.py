"""Front: what all sockets of one process share.

It admits sessions, opens speeches for them, and drains them when the server shuts down.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Any

from msgspec import structs

from realtime_tts.access.account import TURN_RETRY_MS, Account, revoked, voice_not_allowed
from realtime_tts.audio.encoders import require
from realtime_tts.audio.pcm import BYTES_PER_SAMPLE
from realtime_tts.config import ServerConfig
from realtime_tts.configuration.reload import Reloads
from realtime_tts.engine.interface import EngineInfo
from realtime_tts.lexicons.errors import NoLexicons
from realtime_tts.lexicons.library import LexiconLibrary
from realtime_tts.logs import event
from realtime_tts.metrics import Metrics, Page
from realtime_tts.protocol.effects import TurnFailure
from realtime_tts.protocol.messages import SAMPLE_RATE
from realtime_tts.protocol.settings import Limits, SessionSettings
from realtime_tts.server.addresses import ClientAddresses
from realtime_tts.server.engine_host import EngineHost
from realtime_tts.server.ledger import Ledger
from realtime_tts.server.load import Load
from realtime_tts.server.occupancy import FrontRow
from realtime_tts.server.refusals import full, going_away, too_many_without_key
from realtime_tts.server.registered import Registered
from realtime_tts.server.reporter import SessionReporter
from realtime_tts.server.resumption import Resumption
from realtime_tts.server.session_settings import session_defaults, utterance_spec, wire_limits
from realtime_tts.server.speech import Speech
from realtime_tts.server.time_slices import TimeSlices
from realtime_tts.server.tokens import UsedHere, UsedTokens
from realtime_tts.server.track import Delivery
from realtime_tts.version import __version__
from realtime_tts.voices.library import VoiceLibrary
from realtime_tts.voices.stored import StoredRegistry

if TYPE_CHECKING:  # they need packages of extras
    from realtime_tts.access.access import Access
    from realtime_tts.tracing.tracer import Tracer

log = logging.getLogger(__name__)

_MOST_UNAUTHENTICATED = 256
"""Most sockets of other APIs that may be open without having shown a key."""
_SPARED_PART = 8
"""An eighth of the sessions, at least one, is reserved for sockets that have none yet."""

SERVER_NAME = f"realtime-tts {__version__}"

LEXICONS_FOLDER = "lexicons"
"""Name of the folder of lexicons, in the folder of voices."""


class Front:
    """What the sockets of one process share. All of it lives on the event loop. `voices` None: only
    those of the checkpoints exist. `others`: the server's other fronts. `tracer` None: no
    traces."""

    def __init__(
        self,
        config: ServerConfig,
        engine: EngineHost,
        metrics: Metrics,
        voices: VoiceLibrary | None = None,
        others: FrontRow | None = None,
        tracer: Tracer | None = None,
    ) -> None:
        self.config = config
        self.tracer = tracer
        self.engine = engine
        self.metrics = metrics
        self.voices = voices
        engine.stages.marks = config.marking != "off"
        if voices is not None:
            engine.registered = voices.registry.find
        self.lexicons: LexiconLibrary | None = None
        """The stored lexicons; None if there is no folder: object storage has only voices."""
        if voices is not None and not isinstance(voices.registry, StoredRegistry):
            self.lexicons = LexiconLibrary(voices.registry.folder / LEXICONS_FOLDER)
            engine.lexicons = self.lexicons.stored
        self.addresses = ClientAddresses(config.addresses)
        self.slices = TimeSlices()
        """The time slices in which frames and messages are processed."""
        self.draining = False
        self.reloads = Reloads()
        """The parts that apply new settings while the server runs."""
        self.used_tokens: UsedTokens = UsedHere()
        self.metrics_page: Callable[[str], Awaitable[Page]] = self._own_page
        """Makes the answer to a scrape that accepts these media types."""
        self._others = others
        self._connections: set[Registered] = set()
        self.access: Access | None = None
        """The keys of customers; None if there are none."""
        if config.access is not None:
            from realtime_tts.access.access import Access

            self.access = Access(config.access)
            self.access.holders = lambda: list(self._connections)
            self.access.on_revoked = self._revoke
        metrics.sessions.set_function(lambda: self.sessions)
        metrics.open_turns.set_function(lambda: sum(one.open_turns for one in self._connections))

    @property
    def sessions(self) -> int:
        """Sessions that all connections of this front count for."""
        return sum(one.sessions for one in self._connections)

    def tell_others(self, more: int = 0) -> None:
        """Report to the other fronts how many sessions there are, and how many `more` begin now."""
        if self._others is not None:
            self._others.note(self.sessions + more, self._unauthenticated)

    @property
    def _unauthenticated(self) -> int:
        return sum(one.sessions == 0 for one in self._connections)

    async def _own_page(self, accept: str) -> Page:
        # In a thread: formatting hundreds of series must not delay a packet.
        return await asyncio.to_thread(self.metrics.render, accept)

    @property
    def info(self) -> EngineInfo:
        """What the engine can do; only available once it is ready."""
        return self.engine.info

    @property
    def limits(self) -> Limits:
        """What every client may do; only available once the engine is ready."""
        return wire_limits(self.config, self.engine.info)

    def settings(self, *, longest_lead: bool = False, **chosen: Any) -> SessionSettings:
        """Return the checkpoint's defaults with the server's lead, or the longest one, for clients
        that play a file when it is complete. What is `chosen` and not None replaces them."""
        longest = self.config.limits.max_lead_ms / 1000
        lead_seconds = longest if longest_lead else self.config.lead_seconds
        given = {name: value for name, value in chosen.items() if value is not None}
        return structs.replace(session_defaults(self.engine.info, lead_seconds), **given)

    @property
    def max_sessions(self) -> int:
        """Most sessions at once."""
        return self.config.limits.sessions_for(self.engine.slots)

    def not_ready(self) -> str | None:
        """Return None if the server is healthy enough for a new session, else why not."""
        return "the server is shutting down" if self.draining else self.engine.not_ready()

    def load(self) -> Load:
        """Return how full the server is, all its fronts together."""
        status = self.engine.status
        return Load(
            capacity=status.capacity,
            active=status.active,
            queued=status.queued,
            sessions=self._taken,
            max_sessions=self.max_sessions,
            ready=self.engine.not_ready() is None,
            draining=self.draining,
            model=self.engine.model,
        )

    @property
    def _taken(self) -> int:
        return self.sessions + (0 if self._others is None else self._others.sessions)

    # Sessions.

    def admit(self, account: Account, held: int = 0, *, more: bool = False) -> None:
        """Raise TurnFailure if this account would not get another session now.

        `held`: sessions that the caller already counts and would use. `more`: it is a further
        session of a connection, which may not use the reserved eighth.
        """
        spared = -(-self.max_sessions // _SPARED_PART) if more else 0
        refusal = self._refusal(held, spared, account) or account.session(held)
        if refusal is not None:
            self.metrics.refused.labels(refusal.code).inc()
            event(log, logging.WARNING, "session.refused", code=refusal.code)
            raise refusal
        self.tell_others(1 - held)

    def _refusal(self, held: int, spared: int, account: Account) -> TurnFailure | None:
        if self.draining:
            return going_away("; try another")
        reason = self.engine.not_ready()
        if reason is not None:
            return TurnFailure("not_ready", reason, True, 2_000)
        most = self.max_sessions
        taken = self._taken - held
        if taken >= most:
            return full(f"all sessions are taken ({most})")
        if taken >= most - spared:
            return full(f"the last sessions ({spared} of {most}) are for other sockets")
        comes = not held and not spared
        return self._too_few_turns(account) if comes else None

    def _too_few_turns(self, account: Account) -> TurnFailure | None:
        """Return why a new client would find no turn: a refusal before anything has begun can be
        tried on another server, unseen by the client."""
        if (refused := self.engine.full(account.id)) is not None:
            return full(refused.message, refused.retry_after_ms)
        share = self.config.turn_reserve
        if share is None:
            return None
        load = self.load()
        reserved = int(share * load.capacity)
        if load.free_turns > reserved:
            return None
        busy = f"live turns: {load.active + load.queued} of {load.capacity}"
        kept = f"; kept for open sessions: {reserved}" if reserved else ""
        return full(busy + kept, TURN_RETRY_MS)

    def check_speech(self, settings: SessionSettings) -> SessionSettings:
        """Return the settings as `pinned` does. Raises RequestError for settings that are beyond
        the limits, or that this server cannot do."""
        self.config.limits.check(settings)
        require(settings.audio)
        self.engine.check(utterance_spec(settings))
        return self.pinned(settings)

    def pinned(self, settings: SessionSettings) -> SessionSettings:
        """Return the settings with a version for each stored lexicon. Raises RequestError."""
        if not settings.lexicons:
            return settings
        pinned = self.stored_lexicons().pinned(settings.lexicons)
        return structs.replace(settings, lexicons=pinned)

    def stored_lexicons(self) -> LexiconLibrary:
        """Return the library of stored lexicons. Raises NoLexicons if there is none."""
        if self.lexicons is None:
            raise NoLexicons("this server keeps no lexicons: start it with --voices-dir FOLDER")
        return self.lexicons

    def model_of(self, settings: SessionSettings) -> str:
        """Return the name of the checkpoint that speaks with these settings."""
        return self.engine.info_for(settings.model, settings.voice).model

    def disclosure(self, settings: SessionSettings | None = None) -> tuple[str, str]:
        """Return the name and value of a header that says that speech with `settings` is synthetic,
        and what made it: draft-abaris-aicdh, a dictionary as in RFC 9651."""
        model = self.model_of(settings or SessionSettings())
        told = model.encode("ascii", "replace").decode().replace("\\", "/").replace('"', "'")
        return "ai-disclosure", f'mode=ai-originated, model="{told}", provider="{SERVER_NAME}"'

    def voice_names(self, account: Account) -> tuple[str, ...]:
        """Return the voices that this account may use now: speakers, then registered voices."""
        names = self.engine.info.voices
        if self.voices is not None and self.engine.info.clones:
            names = *names, *(record.id for record in self.voices.registry.voices())
        return tuple(filter(account.may_use, names))

    def max_outbox(self) -> int:
        """Return the bytes of audio that may wait for one reader."""
        limits = self.config.limits
        bytes_per_ms = SAMPLE_RATE * BYTES_PER_SAMPLE / 1000
        return round((limits.max_lead_ms + limits.outbox_ms) * bytes_per_ms)

    # Connections.

    @contextlib.contextmanager
    def registered(self, connection: Registered) -> Iterator[None]:
        """Register the connection within this block: it counts, and ends with the server.

        Raises TurnFailure if there is no capacity for it now.
        """
        self.admit(connection.account)
        if connection.sessions == 0:
            self._admit_without_key(connection)
        self._connections.add(connection)
        self.tell_others()
        try:
            yield
        finally:
            self._connections.discard(connection)
            self.tell_others()

    def _admit_without_key(self, connection: Registered) -> None:
        waiting = [one for one in self._connections if one.sessions == 0]
        elsewhere = 0 if self._others is None else self._others.unauthenticated
        if len(waiting) + elsewhere >= _MOST_UNAUTHENTICATED:
            raise full(f"{_MOST_UNAUTHENTICATED} sockets have not shown their keys")
        most = self.addresses.config.sockets_without_key
        if sum(one.address is connection.address for one in waiting) >= most:
            raise too_many_without_key(most)

    # Speeches.

    def reporter(self, name: str, client: str, traceparent: str | None = None) -> SessionReporter:
        """Return what writes the log and the metrics of a session, or of a speech without one."""
        return SessionReporter(name, client, self.metrics, self.tracer, traceparent)

    def open_speech(
        self,
        name: str,
        settings: SessionSettings,
        reporter: SessionReporter,
        delivery: Delivery,
        account: Account,
        *,
        resumption: Resumption | None = None,
        reports: bool = True,
        **options: Any,
    ) -> Speech:
        """Open a speech of a registered connection, which must close it. `name` was never used
        before; `options` are those of `Speech`, whose `feed` begins each turn.

        Raises RequestError as `check_speech` does, and if this server cannot make the format;
        TurnFailure for a voice that this account may not use, and if the engine is full.
        """
        ledger = Ledger(reporter, account, self.engine, settings, resumption, reports=reports)
        ledger.check_capacity()
        settings = self.check_speech(settings)
        if not account.may_use(settings.voice):
            raise voice_not_allowed(settings.voice, self.info.default_voice)
        if self.tracer is not None and "trace" not in options:
            options["trace"] = reporter.segments(settings.traceparent, self.model_of(settings))
        return Speech(name, settings, self.engine, delivery, self.max_outbox(), ledger, **options)

    # The end.

    def _revoke(self, account: Account) -> None:
        for connection in list(self._connections):
            if connection.account is account:
                connection.revoke(revoked())

    def drain(self) -> None:
        """Admit no session and begin no turn; sessions close after their turns. Idempotent."""
        if not self.draining:
            self.draining = True
            event(log, logging.INFO, "server.draining", sessions=self.sessions)
            for connection in list(self._connections):
                connection.drain()

    def end_sessions(self) -> None:
        """End what still runs, with a proper close: the deadline of the drain has passed."""
        self.draining = True
        for connection in list(self._connections):
            connection.end(going_away())
