"""New settings for a server with several fronts: all fronts apply them, or none does."""

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
    """Has all fronts apply new settings in two steps; used on the parent's event loop.

    No front may be started meanwhile: it would have the old or the new settings unasked.
    """

    def __init__(self) -> None:
        self.asks = Asks[FrontChild, str | None]()

    async def prepare(self, config: ServerConfig, fronts: Iterable[FrontChild]) -> None:
        """Have these fronts check `config`, and get ready to apply it; nothing changes yet.

        Fronts that end meanwhile do not count. Raises ConfigError if one cannot apply it, or does
        not answer. That is rare, because the parent has checked the settings and files before.
        """
        packed = pickle.dumps(config)
        answers, silent = await self.asks.ask(
            fronts, lambda front, ask: front.send(wire.Prepare(ask, packed)), _PATIENCE_SECONDS
        )
        for front, why in [*answers.items(), *((front, "it does not answer") for front in silent)]:
            if why is not None:
                raise ConfigError(f"front {front.number} cannot take the settings over: {why}")

    async def take_over(self, fronts: Iterable[FrontChild]) -> None:
        """Have these fronts apply the settings that they are ready for. One that does not confirm
        it applies them when it moves again; if it is killed, its successor starts with them."""
        _, silent = await self.asks.ask(
            fronts, lambda front, ask: front.send(wire.TakeOver(ask)), _PATIENCE_SECONDS
        )
        for front in silent:
            event(log, logging.WARNING, "front.reloads_late", front=front.number)
