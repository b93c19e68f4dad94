"""An engine in this process as a target: text pipeline, engine link and packets, no sockets.

This is for comparison with libraries, which have no sockets. The load generator shares the
interpreter with the engine's thread, so its own work is in the figures.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import msgspec

from realtime_tts.access.account import FREE
from realtime_tts.background import cancel
from realtime_tts.bench.observation import Observation, clock
from realtime_tts.bench.workload import Speak, TurnPlan
from realtime_tts.client import SessionOptions, TurnResult
from realtime_tts.client.options import session_start
from realtime_tts.engine.in_process import InProcessEngine
from realtime_tts.engine.load import engine_loader, load_tokenizer
from realtime_tts.engine.settings import EngineConfig
from realtime_tts.metrics import Metrics
from realtime_tts.protocol.effects import TurnFailure
from realtime_tts.protocol.settings import Limits, SessionSettings
from realtime_tts.server.engine_host import EngineHost
from realtime_tts.server.ledger import Ledger
from realtime_tts.server.reporter import SessionReporter
from realtime_tts.server.session_settings import session_defaults, utterance_spec
from realtime_tts.server.speech import Speech
from realtime_tts.server.track import Delivery, Sound
from realtime_tts.version import __version__
from tts_scheduler.report import Trace

_STALL_SECONDS = 60.0
_UNPACED_LEAD_MS = Limits().max_lead_ms
_WAITING_BYTES = 1 << 30  # no limit for slow readers: packets are taken as they come


class EngineTarget:
    """The `Target` that is an engine loaded in this process. Made by `engine_target`."""

    local = True

    def __init__(self, host: EngineHost, metrics: Metrics, settings: SessionSettings) -> None:
        self._host, self._metrics, self._settings = host, metrics, settings
        self._ids = itertools.count()

    async def describe(self) -> dict[str, Any]:
        info = self._host.info
        return {
            "url": "in process",
            "server": f"realtime-tts {__version__}",
            "model": info.model,
            "random_weights": info.random_weights,
            "voice": self._settings.voice,
            "lead_ms": self._settings.lead_ms,
        }

    @contextlib.asynccontextmanager
    async def session(self, *, paced: bool = True) -> AsyncIterator[Speak]:
        fast = msgspec.structs.replace(self._settings, lead_ms=_UNPACED_LEAD_MS)
        settings = self._settings if paced else fast
        name, ids = f"bench-{next(self._ids)}", itertools.count()
        reporter = SessionReporter(name, name, self._metrics)
        ledger = Ledger(reporter, FREE, self._host, settings, reports=False)

        async def speak(turn: TurnPlan) -> Observation:
            speech = Speech(
                f"{name}-{next(ids)}",
                settings,
                self._host,
                Delivery(),
                _WAITING_BYTES,
                ledger,
            )
            return await _Listening(turn, speech).run()

        yield speak

    async def metrics(self) -> str:
        return self._metrics.render().text.decode()


@contextlib.asynccontextmanager
async def engine_target(
    config: EngineConfig, options: SessionOptions
) -> AsyncIterator[EngineTarget]:
    """Load an engine and keep it for a block. Raises EngineError, ConfigError, RequestError."""
    metrics = Metrics()
    link = InProcessEngine(
        engine_loader(config), config.scheduler, guards=config.guards, observer=metrics
    )
    tokenizer = partial(load_tokenizer, config)
    host = EngineHost(link, tokenizer, metrics, stall_seconds=_STALL_SECONDS)
    await host.start()
    try:
        await host.until_ready()
        defaults = session_defaults(host.info, config.scheduler.lead_cap)
        settings = session_start(options).applied_to(defaults, defaults)
        host.check(utterance_spec(settings))
        yield EngineTarget(host, metrics, settings)
    finally:
        await host.stop()


class _Listening:
    """One turn while it is spoken. Packets get their time in the callback that brings them."""

    def __init__(self, plan: TurnPlan, speech: Speech) -> None:
        self._plan, self._speech = plan, speech
        self._seen = Observation(len(plan.text), Trace(asked_at=clock()))
        self._first, self._over = asyncio.Event(), asyncio.Event()
        speech.on_change = self._output

    async def run(self) -> Observation:
        tasks = [asyncio.create_task(self._feed())]
        if self._plan.cut_after is not None:
            tasks.append(asyncio.create_task(self._cut(self._plan.cut_after)))
        try:
            await self._over.wait()
            if len(tasks) > 1 and self._first.is_set() and self._seen.error is None:
                await tasks[1]  # the listener still listens to what was sent ahead
        finally:
            self._speech.close()
            await cancel(*tasks)
        return self._seen

    async def _feed(self) -> None:
        due, last = clock(), len(self._plan.deltas) - 1
        for number, (gap, delta) in enumerate(self._plan.deltas):
            due += gap
            await asyncio.sleep(max(0.0, due - clock()))
            if number == 0:
                self._seen.trace.asked_at = clock()
            try:
                self._speech.feed(delta)
            except TurnFailure as failure:  # no capacity: the turn never begins
                self._fail(failure)
                return
            if number == last:
                self._speech.cut()

    async def _cut(self, after: float) -> None:
        await self._first.wait()
        await asyncio.sleep(after)
        asked_at = clock()
        self._speech.silence()
        self._seen.interrupt_seconds = clock() - asked_at
        if not self._over.is_set():
            self._finish("interrupted")

    def _output(self) -> None:
        while not self._over.is_set():
            try:
                given = self._speech.take()
            except TurnFailure as failure:
                self._fail(failure)
                return
            if given is None:
                return
            if isinstance(given, Sound):
                self._seen.packet(given.data, clock())
                self._speech.handed_over()
                self._first.set()
            else:
                self._finish(given.segment.reason)

    def _fail(self, failure: TurnFailure) -> None:
        self._seen.error = failure.code
        self._seen.retry_after = (failure.retry_after_ms or 0) / 1000
        self._over.set()

    def _finish(self, reason: str) -> None:
        utterances = self._speech.utterances
        self._seen.layout = utterances.layout
        self._seen.result = TurnResult(
            turn_id=self._speech.name,
            reason=reason,
            text_chars=self._seen.text_chars,
            **utterances.stats()._asdict(),
        )
        self._over.set()
