"""The client on which speech begins, with its settings; and older clients that finish their speech.

A session that was refused for a setting does not exist: then another client replaces it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from realtime_tts.client import RealtimeTTS
from realtime_tts.client.options import changes
from realtime_tts.errors import ConfigError, RequestError


class Link:
    """The client on which a service's speech begins, and those before it, which finish their
    speech.

    `make` returns a client for a session's options; `connect_seconds` bounds its first attempts.
    `options`: those with which speech begins now.
    """

    def __init__(
        self,
        make: Callable[[dict[str, Any]], RealtimeTTS],
        options: dict[str, Any],
        connect_seconds: float,
    ) -> None:
        self._make = make
        self.options = options
        self._connect_seconds = connect_seconds
        self._retired: list[RealtimeTTS] = []
        self.client = make(options)

    async def connect(self) -> None:
        """Connect the client. Raises what `RealtimeTTS.connect` raises."""
        await self.client.connect(retry_for=self._connect_seconds)

    async def change(self, options: dict[str, Any]) -> None:
        """Let speech begin with `options` from now on.

        Raises RequestError or ConfigError for what the server cannot apply: if there is no
        connection then, the caller must `renew` with other options. Raises ConnectionLost and the
        like if they could not be tried: they count for the next connection.
        """
        if not self.client.connected:
            self.renew(options)
            await self.connect()
            return
        try:
            await self.client.configure(**changes(self.options, options))
        except (RequestError, ConfigError):
            raise
        except Exception:
            self.renew(options)
            raise
        self.options = options

    def renew(self, options: dict[str, Any]) -> None:
        """Use another client. Raises ConfigError, and then keeps the present one."""
        client = self._make(options)
        self._retired.append(self.client)
        self.client, self.options = client, options

    async def close_retired(self) -> None:
        """Close the older clients, on which nothing begins any more."""
        retired, self._retired = self._retired, []
        for client in retired:
            await client.close()

    async def close(self) -> None:
        """Close all clients; turns that still run end with ConnectionLost."""
        await self.close_retired()
        await self.client.close()
