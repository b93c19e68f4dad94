"""FleetTable: the open sessions and turns of all processes of a fleet, in Redis or Valkey.

Each process keeps one entry, which ends by itself a few seconds after the process was last heard
of, so a server that is killed leaves nothing behind. Used by one thread of each process.
"""

from __future__ import annotations

import secrets
from typing import Any

import msgspec

from realtime_tts.access.fronts_table import SILENT_SECONDS, Held, sums

_PREFIX = "{realtime-tts}:held"
"""How all names in the store begin; the braces keep them in one slot of a cluster."""

_entry = msgspec.json.Decoder(dict[str, tuple[int, int]])


class FleetTable:
    """This process's entry in the store, beside those of all other processes of the fleet.

    `client`: a client of the library redis or valkey, whose errors the methods raise.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self._name = f"{_PREFIX}:{secrets.token_hex(8)}"

    def exchange(self, here: Held) -> dict[str, tuple[int, int]]:
        """Write what is open here; return what each key has open in all other processes."""
        with self._client.pipeline(transaction=False) as pipe:
            if here:
                pipe.set(self._name, msgspec.json.encode(here), px=int(SILENT_SECONDS * 1000))
                pipe.sadd(_PREFIX, self._name)
            else:
                pipe.delete(self._name)
                pipe.srem(_PREFIX, self._name)
            pipe.smembers(_PREFIX)
            members = pipe.execute()[-1]
        names = [name for name in members if name != self._name.encode()]
        entries = self._client.mget(names) if names else []
        gone = [name for name, entry in zip(names, entries, strict=True) if entry is None]
        if gone:
            self._client.srem(_PREFIX, *gone)
        return sums(_entry.decode(entry) for entry in entries if entry is not None)
