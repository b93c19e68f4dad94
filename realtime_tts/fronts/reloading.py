"""New settings for a server with several fronts: every front takes them over, and says whether it
could."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Sequence

from realtime_tts.config import ServerConfig
from realtime_tts.errors import ConfigError
from realtime_tts.fronts import wire
from realtime_tts.fronts.child import FrontChild

_PATIENCE_SECONDS = 10.0


class Reloading:
    """Lives on the parent's event loop."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[int, int], asyncio.Future[str | None]] = {}
        self._asks = 0

    def told(self, front: FrontChild, message: wire.Reloaded) -> None:
        """A front has taken settings over, or has not."""
        waiting = self._waiting.get((message.ask, front.serial))
        if waiting is not None and not waiting.done():
            waiting.set_result(message.why)

    def ended(self, front: FrontChild) -> None:
        """A front has ended; the next process of it begins with the new settings."""
        for (_, serial), waiting in self._waiting.items():
            if serial == front.serial and not waiting.done():
                waiting.set_result(None)

    def send(self, front: FrontChild, config: ServerConfig) -> int:
        """Have a front take `config` over; gives the number of its answer."""
        self._asks += 1
        front.send(wire.Reload(self._asks, pickle.dumps(config)))
        return self._asks

    async def apply(self, config: ServerConfig, fronts: Sequence[FrontChild]) -> None:
        """Have all these fronts take `config` over. Raises ConfigError if one does not, which the
        parent would not have expected: it has looked at the settings, and at the files."""
        loop = asyncio.get_running_loop()
        asked = {(self.send(front, config), front.serial): front for front in fronts}
        for key in asked:
            self._waiting[key] = loop.create_future()
        try:
            if asked:
                waiting = [self._waiting[key] for key in asked]
                await asyncio.wait(waiting, timeout=_PATIENCE_SECONDS)
            answers = {asked[key].number: self._waiting[key] for key in asked}
        finally:
            for key in asked:
                del self._waiting[key]
        for number, answer in answers.items():
            why = answer.result() if answer.done() else "it does not answer"
            if why is not None:
                raise ConfigError(f"front {number} has not taken the settings over: {why}")
