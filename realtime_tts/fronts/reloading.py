"""New settings for a server with several fronts: all of them take them over, or none does."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Iterable

from realtime_tts.config import ServerConfig
from realtime_tts.errors import ConfigError
from realtime_tts.fronts import wire
from realtime_tts.fronts.asks import Asks
from realtime_tts.fronts.child import FrontChild
from realtime_tts.logs import event

log = logging.getLogger(__name__)

_PATIENCE_SECONDS = 10.0


class Reloading:
    """Lives on the parent's event loop. While settings are on their way, no front may be started:
    it would have the old ones or the new ones without being asked."""

    def __init__(self) -> None:
        self.asks = Asks[FrontChild, str | None]()

    async def prepare(self, config: ServerConfig, fronts: Iterable[FrontChild]) -> None:
        """Have these fronts ready to take `config` over, which changes nothing yet. Those that end
        meanwhile need not be. Raises ConfigError if one cannot be, which the parent would not have
        expected: it has looked at the settings, and at the files."""
        packed = pickle.dumps(config)
        answers, silent = await self.asks.ask(
            fronts, lambda front, ask: front.send(wire.Prepare(ask, packed)), _PATIENCE_SECONDS
        )
        for front, why in [*answers.items(), *((front, "it does not answer") for front in silent)]:
            if why is not None:
                raise ConfigError(f"front {front.number} cannot take the settings over: {why}")

    async def take_over(self, fronts: Iterable[FrontChild]) -> None:
        """Have these fronts take over what they are ready for. One that does not say that it has
        will, if it moves again; if not, its successor begins with the new settings."""
        _, silent = await self.asks.ask(
            fronts, lambda front, ask: front.send(wire.TakeOver(ask)), _PATIENCE_SECONDS
        )
        for front in silent:
            event(log, logging.WARNING, "front.reloads_late", front=front.number)
