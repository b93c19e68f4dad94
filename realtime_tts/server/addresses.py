"""ClientAddresses: what the clients at each network address may still do.

Memory is bounded: the counters of the addresses that were unused for longest are forgotten. An IPv6
client has a network of its own, so a /64 counts as one address.
"""

from __future__ import annotations

import ipaddress
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from functools import lru_cache

from realtime_tts.config import AddressConfig
from realtime_tts.protocol.token_bucket import TokenBucket

_MOST = 10_000
"""Addresses that are known at a time, at some hundred bytes each."""
_TELL_EVERY = 1.0  # seconds
_NAME = 64
"""Characters of what a proxy says instead of an address."""


class Address:
    """One of them. `now` is on the monotonic clock, in seconds."""

    __slots__ = (
        "_bad",
        "_handshakes",
        "_most_handshakes",
        "_refused",
        "_told_at",
        "connections",
        "name",
        "requests",
    )

    def __init__(self, name: str, config: AddressConfig) -> None:
        self.name = name
        rate, burst = config.connections_per_second, config.burst
        self.connections = TokenBucket(rate, burst)
        self.requests = TokenBucket(rate, burst)
        self._most_handshakes = config.handshakes
        self._handshakes: dict[Hashable, Callable[[], None]] = {}
        self._bad: deque[float] = deque()
        self._refused, self._told_at = 0, -_TELL_EVERY

    def take_over(self, config: AddressConfig) -> None:
        """It may do what these settings say from now on."""
        for allowance in (self.connections, self.requests):
            allowance.change(config.connections_per_second, config.burst)
        self._most_handshakes = config.handshakes

    def begin_handshake(self, who: Hashable, drop: Callable[[], None]) -> None:
        """A connection on which no request is complete. Too many: the oldest is dropped, since a
        client that means it is done with its own soon."""
        self._handshakes[who] = drop
        if len(self._handshakes) > self._most_handshakes:
            oldest = next(iter(self._handshakes))
            self._handshakes.pop(oldest)()

    def end_handshake(self, who: Hashable) -> None:
        """It is complete, or over. Idempotent."""
        self._handshakes.pop(who, None)

    def refused(self, now: float) -> int:
        """Something was refused. How often that was since it was told last, if it is to be told:
        a flood is a line a second in the log."""
        self._refused += 1
        if now - self._told_at < _TELL_EVERY:
            return 0
        count, self._refused, self._told_at = self._refused, 0, now
        return count

    def bad_messages(self, most: int) -> deque[float]:
        """When sockets that are closed had theirs: a new one goes on from there."""
        return deque(self._bad, most)

    def remember_bad(self, bad: deque[float]) -> None:
        """A socket is closed that had these, of those before it or its own."""
        self._bad = deque(sorted({*self._bad, *bad}), bad.maxlen)


class ClientAddresses:
    """All of one server's."""

    def __init__(self, config: AddressConfig | None = None) -> None:
        self.config = config or AddressConfig()
        self._known: OrderedDict[str, Address] = OrderedDict()
        self._keys: dict[bytes | str, TokenBucket] = {}
        self._proxies = [ipaddress.ip_network(one) for one in self.config.trusted_proxies]

    def take_over(self, config: AddressConfig) -> None:
        """These settings hold from now on, but for the proxies, which stay as they are."""
        self.config = config
        for address in self._known.values():
            address.take_over(config)
        for allowance in self._keys.values():
            allowance.change(config.connections_per_second, config.burst)

    def of(self, client: tuple[str, int] | None) -> Address:
        """That of a client, as the scope or the transport names it."""
        name = network_of(client[0]) if client else ""
        found = self._known.get(name)
        if found is None:
            found = self._known[name] = Address(name, self.config)
            if len(self._known) > _MOST:
                self._known.popitem(last=False)
        else:
            self._known.move_to_end(name)
        return found

    def of_key(self, key: bytes | str) -> TokenBucket:
        """Requests of everybody with this key: the digest of the server's, a customer's id."""
        config = self.config
        new = TokenBucket(config.connections_per_second, config.burst)
        return self._keys.setdefault(key, new)

    def is_proxy(self, client: tuple[str, int] | None) -> bool:
        """Whether it speaks for others."""
        if client is None or not self._proxies:
            return False
        try:
            address = ipaddress.ip_address(client[0])
        except ValueError:
            return False
        return any(address in network for network in self._proxies)


@lru_cache(maxsize=4_096)
def network_of(host: str) -> str:
    """What counts as one address: an IPv4 address, an IPv6 network of 64 bits, or what stands in
    place of both."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host[:_NAME]
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, 64), strict=False))
