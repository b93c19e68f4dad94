"""The sockets that a server listens on. Nothing of the application is imported: with several
fronts, the process that listens has none."""

from __future__ import annotations

import errno
import socket

from realtime_tts.config import ServerConfig
from realtime_tts.errors import ConfigError

BACKLOG = 2_048
"""Connections that may wait in the kernel."""
_ABSENT = {errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT}
_ADVICE = {
    errno.EADDRINUSE: "; is another server running there?",
    errno.EACCES: ". Ports below 1024 are for root and for processes with CAP_NET_BIND_SERVICE "
    "(in systemd AmbientCapabilities=): choose another port, or grant it",
}


def bind(config: ServerConfig, port: int | None = None) -> list[socket.socket]:
    """Bind a socket for every address of the host, all on one port: by default the server's own.
    Addresses that this machine lacks are left out if it has another: in many containers, localhost
    is ::1, too, although there is no IPv6.

    They listen already, so that of two servers that start together the second learns here that
    the port is taken: the kernel lets both bind it. Raises ConfigError.
    """
    port, listeners = config.port if port is None else port, []
    absent = None
    try:
        found = socket.getaddrinfo(config.host, port, type=socket.SOCK_STREAM)
        for family, address in dict.fromkeys((info[0], info[4][0]) for info in found):
            try:
                listeners.append(_listen(config, family, str(address), port))
            except OSError as error:
                if error.errno not in _ABSENT:
                    raise
                absent = error
            else:
                port = int(listeners[0].getsockname()[1])
        if absent is not None and not listeners:
            raise absent
    except UnicodeError:  # Python writes a name as IDNA before it asks for its addresses
        raise ConfigError(f"cannot listen on {config.host}: that is no name of a host") from None
    except OSError as error:
        for listener in listeners:
            listener.close()
        advice = _ADVICE.get(error.errno or 0, "")
        raise ConfigError(
            f"cannot listen on {config.host} port {port}: {error.strerror}{advice}"
        ) from error
    return listeners


def bind_agent(config: ServerConfig) -> list[socket.socket]:
    """Bind the sockets for HAProxy's agent check; none if it is off. Raises ConfigError."""
    return [] if config.agent_port is None else bind(config, config.agent_port)


def _listen(config: ServerConfig, family: int, host: str, port: int) -> socket.socket:
    # The protocol is named because asyncio turns Nagle's algorithm off only for sockets that it
    # knows to be TCP. With it on, a packet waits up to 40 ms for the client to acknowledge the
    # message before it.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        # Accepted sockets inherit it: the kernel drops a peer that acknowledges nothing, even
        # where the timers of websocket.py see no reason to.
        timeout_ms = round(config.socket.tcp_user_timeout * 1000)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, timeout_ms)
    try:
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener
