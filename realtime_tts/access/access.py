"""Access: the keys of a server as one of its fronts sees them, always as they are stored."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path

from realtime_tts.access.account import Holder, KeyAccount
from realtime_tts.access.exchange import Exchange
from realtime_tts.access.fronts_table import FrontsTable, sums
from realtime_tts.access.key import Key, id_in
from realtime_tts.access.key_file import KeyFile
from realtime_tts.access.rates import Rates
from realtime_tts.access.usage import Usage
from realtime_tts.background import cancel, repeat
from realtime_tts.config import AccessConfig
from realtime_tts.configuration.stamps import stamp
from realtime_tts.errors import ConfigError
from realtime_tts.logs import event
from realtime_tts.outage import Outage

log = logging.getLogger(__name__)

_LOOK_SECONDS = 0.5
"""Seconds between two looks at the file of keys: a revoked key ends within a second."""
_GONE_LOOKS = 4
"""Looks in a row that find no file before its keys end: who replaces a file may delete it first."""
_SHARE_SECONDS = 0.1
_PURPOSE = b"realtime-tts token"


class Access:
    """The keys of a server, kept up to date with their file, and an account for each.

    Made before the server listens. Raises ConfigError for keys that cannot be read. `clock` gives
    seconds since 1970.
    """

    def __init__(self, config: AccessConfig, clock: Callable[[], float] = time.time) -> None:
        self.usage = Usage(config.usage_url, clock)
        self.rates = Rates(clock)
        self.holders: Callable[[], Iterable[Holder]] = tuple
        """Gives the connections that are open at this front."""
        self.on_revoked: Callable[[KeyAccount], None] = lambda account: None
        """Called for a key that is no longer valid, to end what it has open."""
        self._clock = clock
        self._file = KeyFile(Path(config.keys))
        self._accounts: dict[str, KeyAccount] = {}
        self._outage = Outage(log, "keys.not_loaded", None)
        self._missed = 0  # looks since there was a file
        self._exchange = Exchange(self.rates.counters, config.limits_store)
        self._stamp = stamp(self._file.path)
        self._apply(self._file.read())

    @property
    def failing(self) -> dict[str, Callable[[], bool]]:
        """What is done beside the turns, and whether it fails at present; the log says why."""
        return {
            "keys": lambda: self._outage.present,
            "limits": lambda: self._exchange.failing,
            "usage": lambda: self.usage.outage.present,
        }

    # Who it is.

    def account_of(self, shown: bytes) -> KeyAccount | None:
        """Return the account of the key `shown`, or None if that is no valid key."""
        key_id = id_in(shown)
        account = None if key_id is None else self.account(key_id)
        return account if account is not None and account.key.is_of(shown) else None

    def account(self, key_id: str) -> KeyAccount | None:
        """Return the account of the key with this id, or None if it is unknown or has expired."""
        account = self._accounts.get(key_id)
        return None if account is None or account.key.expired(self._clock()) else account

    def secret(self, key_id: str) -> bytes | None:
        """Return the secret that signs this key's tokens, or None if the key is not valid now.

        Every server that has the key derives the same secret, so each can check the others' tokens.
        No slow hash is needed, because a key has 256 random bits.
        """
        account = self.account(key_id)
        if account is None:
            return None
        return hmac.digest(bytes.fromhex(account.key.digest), _PURPOSE, "sha256")

    # How it is kept up to date.

    def share(self, folder: Path, front: int) -> None:
        """Share limits with the server's other fronts through `folder`; this is number `front`."""
        self._exchange.fronts = FrontsTable(folder / "limits.db", front)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Reload keys, write usage and share limits for as long as the block runs."""
        self._warn_of_no_file()
        self.usage.start()
        self._exchange.start()
        tasks = [asyncio.create_task(repeat("keys", _LOOK_SECONDS, self._look), name="keys")]
        if self._exchange.has_others:
            sharing = repeat("keys_held", _SHARE_SECONDS, self._share_held)
            tasks.append(asyncio.create_task(sharing, name="keys-held"))
        try:
            yield
        finally:
            await cancel(*tasks)
            await asyncio.to_thread(self._exchange.stop)
            await asyncio.to_thread(self.usage.stop)

    async def _look(self) -> None:
        found = await asyncio.to_thread(self._changed)
        if found is not None:
            self._apply(found)
            event(log, logging.INFO, "keys.loaded", keys=len(found))
            self._warn_of_no_file()
        self._end_expired()

    def _warn_of_no_file(self) -> None:
        if self._stamp is None:
            why = f"there is no file {self._file.path}: nobody has a key of it until it is written"
            event(log, logging.WARNING, "keys.no_file", why=why)

    async def _share_held(self) -> None:
        self._exchange.here = self._held()

    def _changed(self) -> dict[str, Key] | None:
        """Read the keys again if their file has changed; None if it has not.

        A file that cannot be read, is being replaced or is away for a moment gives None, too: the
        keys read last stay valid, and the file is tried again at the next look.
        """
        path = self._file.path
        try:
            found = stamp(path)
            self._missed = 0 if found else self._missed + 1
            if found == self._stamp:
                self._outage.end()  # it may be back, after one that could not be read
                return None
            if 0 < self._missed < _GONE_LOOKS:
                return None
            keys = self._file.read()
            if stamp(path) != found:
                return None
        except ConfigError as error:
            self._outage.begin(why=str(error))
            return None
        self._outage.end()
        self._stamp = found
        return keys

    def _apply(self, keys: dict[str, Key]) -> None:
        before, self._accounts = self._accounts, {}
        for key in keys.values():
            account = before.get(key.id)
            if account is None or account.key.digest != key.digest:  # new, or another secret
                account = self._made(key)
            elif account.key != key:
                account.renew(key)
            self._accounts[key.id] = account
        for account in before.values():
            if self._accounts.get(account.id) is not account:
                self._revoke(account)

    def _made(self, key: Key) -> KeyAccount:
        exchange = self._exchange
        made = KeyAccount(key, self.rates, self.usage, lambda: self.holders(), exchange.elsewhere)
        made.ended = key.expired(self._clock())
        return made

    def _held(self) -> dict[str, tuple[int, int]]:
        """Count the sessions and turns that each key has open at this front, by its id."""
        holders = [one for one in self.holders() if one.account.id]
        return sums({one.account.id: (one.sessions, one.live_turns)} for one in holders)

    def _end_expired(self) -> None:
        now = self._clock()
        for account in self._accounts.values():  # a request that is read holds nothing yet
            expired = account.key.expired(now)
            if expired and not account.ended:
                self._revoke(account)
            account.ended = expired  # not any more, if the clock was wrong and has been set back

    def _revoke(self, account: KeyAccount) -> None:
        account.ended = True
        event(log, logging.INFO, "keys.ended", key=account.id)
        self.on_revoked(account)
