"""The addresses at which machines reach a server that listens on all addresses of this one."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator

EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}
"""Hosts that mean all addresses, and the address at which this machine itself reaches them."""

_ELSEWHERE = {socket.AF_INET: "192.0.2.1", socket.AF_INET6: "2001:db8::1"}
"""Addresses of no machine (RFC 5737, RFC 3849): the system chooses its own for the way to them."""


def addresses_for_others(host: str) -> list[str]:
    """Return the addresses of this machine for a server that listens on `host`, one of EVERYWHERE;
    none without a network. Nothing is sent: the system says from which of its addresses it would
    send."""
    families = {"0.0.0.0": (socket.AF_INET,), "::": (socket.AF_INET6,)}
    return [one for family in families.get(host, tuple(_ELSEWHERE)) for one in _own(family)]


def _own(family: socket.AddressFamily) -> Iterator[str]:
    with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as way:  # no route
        way.connect((_ELSEWHERE[family], 9))
        yield way.getsockname()[0]


def url_authority(host: str, port: int) -> str:
    """Return `host:port` as URLs have it."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
