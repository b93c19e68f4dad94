"""All fronts take new settings over, or none does: whoever cannot, is silent, or ends meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import pickle
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from realtime_tts.config import ServerConfig
from realtime_tts.configuration.reload import Reloads
from realtime_tts.engine.settings import EngineConfig
from realtime_tts.errors import ConfigError
from realtime_tts.fronts import reloading, wire
from realtime_tts.fronts.child import FrontChild
from realtime_tts.fronts.supervisor import Supervisor
from realtime_tts.metrics import Metrics
from realtime_tts.server.occupancy import Occupancy

OLD = ServerConfig(drain_seconds=1.0)
NEW = replace(OLD, drain_seconds=2.0)


class Front:
    """A front in this process. `cannot`: why it is not ready for other settings."""

    def __init__(self, number: int, tell: Callable[[FrontChild, wire.Up], None]) -> None:
        self.number = self.serial = number
        self.config = OLD
        self.cannot: str | None = None
        self.silent_to: type[Any] = type(None)
        """To messages of this type."""
        self.on_prepared: Callable[[], None] = lambda: None
        self._tell = tell
        self._tasks: set[asyncio.Task[None]] = set()
        self._reloads = Reloads()
        self._reloads.add(self)
        self._take_over: Callable[[], None] = lambda: None

    @property
    def child(self) -> FrontChild:
        return cast(FrontChild, self)

    def prepare(self, config: ServerConfig) -> Callable[[], None]:
        if self.cannot is not None:
            raise ConfigError(self.cannot)
        return lambda: setattr(self, "config", config)

    def send(self, message: wire.Down) -> None:
        if not isinstance(message, self.silent_to):
            task = asyncio.create_task(self._do(message))
            self._tasks.add(task)

    async def _do(self, message: wire.Down) -> None:
        if isinstance(message, wire.Prepare):
            why = None
            try:
                self._take_over = await self._reloads.prepare(pickle.loads(message.config))
            except ConfigError as error:
                why = str(error)
            self._tell(self.child, wire.Prepared(message.ask, why))
            self.on_prepared()
        elif isinstance(message, wire.TakeOver):
            self._take_over()
            self._tell(self.child, wire.TakenOver(message.ask))


@contextlib.asynccontextmanager
async def supervised(tmp_path: Path) -> AsyncIterator[tuple[Supervisor, list[Front]]]:
    """A supervisor of three fronts."""
    occupancy = Occupancy.make(3)
    spec = wire.FrontSpec(OLD, (EngineConfig(kind="fake"),), 3, tmp_path, occupancy.file)
    supervisor = Supervisor(spec, occupancy, Metrics(), lambda *stage: None)
    fronts = [Front(number, supervisor._on_message) for number in (1, 2, 3)]
    supervisor._fronts = {front.number: front.child for front in fronts}
    yield supervisor, fronts
    occupancy.close()


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reloading, "_PATIENCE_SECONDS", 0.3)


async def test_every_front_takes_new_settings_over(tmp_path: Path) -> None:
    async with supervised(tmp_path) as (supervisor, fronts):
        await supervisor.reload(NEW)
        assert [front.config for front in fronts] == [NEW] * 3 and supervisor._spec.config == NEW


@pytest.mark.parametrize("number", [1, 2, 3])
async def test_if_one_front_cannot_no_front_changes_and_the_parent_does_not(
    tmp_path: Path, number: int
) -> None:
    async with supervised(tmp_path) as (supervisor, fronts):
        fronts[number - 1].cannot = "too many open files"
        with pytest.raises(ConfigError, match=f"front {number} cannot .* too many open files"):
            await supervisor.reload(NEW)
        assert [front.config for front in fronts] == [OLD] * 3 and supervisor._spec.config == OLD
        fronts[number - 1].cannot = None
        await supervisor.reload(NEW)
        assert [front.config for front in fronts] == [NEW] * 3 and supervisor._spec.config == NEW


async def test_if_one_front_does_not_answer_no_front_changes(tmp_path: Path) -> None:
    async with supervised(tmp_path) as (supervisor, fronts):
        fronts[1].silent_to = wire.Prepare
        with pytest.raises(ConfigError, match="front 2 .* does not answer"):
            await supervisor.reload(NEW)
        assert [front.config for front in fronts] == [OLD] * 3 and supervisor._spec.config == OLD


async def test_a_front_that_ends_meanwhile_keeps_nobody_from_the_new_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its successor begins with them."""
    monkeypatch.setattr(reloading, "_PATIENCE_SECONDS", 60.0)
    async with supervised(tmp_path) as (supervisor, fronts):

        def end() -> None:
            del supervisor._fronts[2]
            supervisor._reloading.asks.ended(fronts[1].child)

        fronts[1].silent_to = wire.Prepare
        fronts[0].on_prepared = end
        async with asyncio.timeout(30):
            await supervisor.reload(NEW)
        assert [front.config for front in fronts] == [NEW, OLD, NEW]
        assert supervisor._spec.config == NEW


async def test_a_front_that_is_late_with_what_it_was_ready_for_is_not_waited_for_long(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It has it in its pipe, and its successor has it, too."""
    async with supervised(tmp_path) as (supervisor, fronts):
        fronts[2].silent_to = wire.TakeOver
        await supervisor.reload(NEW)
        assert [front.config for front in fronts] == [NEW, NEW, OLD]
        assert supervisor._spec.config == NEW
        assert "front.reloads_late" in [record.message for record in caplog.records]
