"""The client on which speech begins, with its settings; and older ones that finish what they have.

A session that was refused for a setting does not exist: then another client takes over.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from realtime_tts.client import RealtimeTTS
from realtime_tts.client.options import changes
from realtime_tts.errors import ConfigError, RequestError


class Link:
    """The client on which a service's speech begins, and those before it, which finish what they
    have.

    `make` gives a client for a session's options; `connect_seconds` bounds its first effort.
    """

    def __init__(
        self,
        make: Callable[[dict[str, Any]], RealtimeTTS],
        options: dict[str, Any],
        connect_seconds: float,
    ) -> None:
        self._make = make
        self._options = options
        self._connect_seconds = connect_seconds
        self._retired: list[RealtimeTTS] = []
        self.client = make(options)

    async def connect(self) -> None:
        """Raises what `RealtimeTTS.connect` raises."""
        await self.client.connect(retry_for=self._connect_seconds)

    async def change(self, options: dict[str, Any]) -> None:
        """Let speech begin with `options` from now on.

        Raises RequestError or ConfigError for what the server cannot do: it is for the caller to
        `renew` with other options if then there is no connection. Raises ConnectionLost and the
        like when they could not be tried: they count for the next connection.
        """
        if not self.client.connected:
            self.renew(options)
            await self.connect()
            return
        try:
            await self.client.configure(**changes(self._options, options))
        except (RequestError, ConfigError):
            raise
        except Exception:
            self.renew(options)
            raise
        self._options = options

    def renew(self, options: dict[str, Any]) -> None:
        """Use another client. Raises ConfigError, and then keeps the one there is."""
        client = self._make(options)
        self._retired.append(self.client)
        self.client, self._options = client, options

    async def close_retired(self) -> None:
        """Close the clients that nothing begins on any more."""
        retired, self._retired = self._retired, []
        for client in retired:
            await client.close()

    async def close(self) -> None:
        """Close all of them; turns that still run end with ConnectionLost."""
        await self.close_retired()
        await self.client.close()
