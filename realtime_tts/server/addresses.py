"""ClientAddresses: what the clients at each network address may still do.

Memory is bounded: the counters of the addresses, and keys, that were unused for longest are
forgotten. An IPv6 client has a network of its own, so a /64 counts as one address.
"""

from __future__ import annotations

import ipaddress
from collections import deque
from collections.abc import Callable, Hashable
from functools import lru_cache

from realtime_tts.config import AddressConfig
from realtime_tts.protocol.token_bucket import TokenBucket
from realtime_tts.recent import Recent

_MOST = 10_000
"""Addresses, and keys, that are remembered at a time, at some hundred bytes each."""
_LOG_EVERY = 1.0  # seconds
_NAME = 64
"""Longest name, in characters, that a proxy may send in place of an address."""


class Address:
    """What the clients at one address may still do. `now` is on the monotonic clock, in seconds."""

    __slots__ = (
        "_bad",
        "_handshakes",
        "_most_handshakes",
        "_refused",
        "_logged_at",
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
        self._refused, self._logged_at = 0, -_LOG_EVERY

    def take_over(self, config: AddressConfig) -> None:
        """Apply these settings from now on."""
        for allowance in (self.connections, self.requests):
            allowance.change(config.connections_per_second, config.burst)
        self._most_handshakes = config.handshakes

    def begin_handshake(self, who: Hashable, drop: Callable[[], None]) -> None:
        """Count a connection on which no request is complete. If there are too many, drop the
        oldest: an honest client is soon done with its own."""
        self._handshakes[who] = drop
        if len(self._handshakes) > self._most_handshakes:
            oldest = next(iter(self._handshakes))
            self._handshakes.pop(oldest)()

    def end_handshake(self, who: Hashable) -> None:
        """Stop counting a connection, whose request is complete, or which is gone. Idempotent."""
        self._handshakes.pop(who, None)

    def refused(self, now: float) -> int:
        """Count a refusal. Return how many there were since the last log line if another is due,
        else 0: a flood logs one line per second."""
        self._refused += 1
        if now - self._logged_at < _LOG_EVERY:
            return 0
        count, self._refused, self._logged_at = self._refused, 0, now
        return count

    def bad_messages(self, most: int) -> deque[float]:
        """Return the times of bad messages of closed sockets, which a new socket inherits."""
        return deque(self._bad, most)

    def remember_bad(self, bad: deque[float]) -> None:
        """Keep the times of bad messages of a closed socket, its own and inherited ones."""
        self._bad = deque(sorted({*self._bad, *bad}), bad.maxlen)


class ClientAddresses:
    """The addresses of all clients of a server, and the request rates of its keys."""

    def __init__(self, config: AddressConfig | None = None) -> None:
        self.config = config or AddressConfig()
        self._known: Recent[str, Address] = Recent(_MOST)
        self._keys: Recent[bytes | str, TokenBucket] = Recent(_MOST)
        self._proxies = [ipaddress.ip_network(one) for one in self.config.trusted_proxies]

    def take_over(self, config: AddressConfig) -> None:
        """Apply these settings from now on; the trusted proxies stay as they are."""
        self.config = config
        for address in self._known.values():
            address.take_over(config)
        for allowance in self._keys.values():
            allowance.change(config.connections_per_second, config.burst)

    def of(self, client: tuple[str, int] | None) -> Address:
        """Return the address of a client, as the scope or the transport names it."""
        name = network_of(client[0]) if client else ""
        found = self._known[name] = self._known.get(name) or Address(name, self.config)
        return found

    def of_key(self, key: bytes | str) -> TokenBucket:
        """Return the request rate of a key: the digest of a server's key, or a customer's id."""
        config = self.config
        found = self._keys.get(key) or TokenBucket(config.connections_per_second, config.burst)
        self._keys[key] = found
        return found

    def is_proxy(self, client: tuple[str, int] | None) -> bool:
        """Return whether the client is a trusted proxy."""
        if client is None or not self._proxies:
            return False
        try:
            address = ipaddress.ip_address(client[0])
        except ValueError:
            return False
        return any(address in network for network in self._proxies)


@lru_cache(maxsize=4_096)
def network_of(host: str) -> str:
    """Return what counts as one address: an IPv4 address, an IPv6 network of 64 bits, or a proxy's
    name."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host[:_NAME]
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, 64), strict=False))
