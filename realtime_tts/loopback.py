"""Whether a host is this machine, which server and client must answer alike."""

from __future__ import annotations

from ipaddress import ip_address


def is_loopback(host: str) -> bool:
    """Return whether `host`, a name or an address without port, can only mean this machine."""
    name = host.lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False
