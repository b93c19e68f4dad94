"""The sockets that a server listens on."""

from __future__ import annotations

import errno
import socket
from typing import Any

import pytest

from realtime_tts.config import ServerConfig
from realtime_tts.doctor.findings import Verdict, machine_findings
from realtime_tts.errors import ConfigError
from realtime_tts.server.listening import bind

HERE = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 0))
AWAY = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("192.0.2.77", 0))
"""An address of no machine (RFC 5737)."""


@pytest.mark.parametrize("found", [[AWAY, HERE], [HERE, AWAY]], ids=["first", "last"])
def test_an_address_that_this_machine_lacks_is_left_out(
    monkeypatch: pytest.MonkeyPatch, found: list[Any]
) -> None:
    """Of a name with several: localhost is ::1, too, in containers that have no IPv6."""
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    config = ServerConfig(host="app.example", port=0)
    (listener,) = bind(config)
    with listener:
        assert listener.getsockname()[0] == "127.0.0.1"
    (port,) = (one for one in machine_findings("app.example", 0) if one.subject == "port")
    assert port.verdict == Verdict.OK, "doctor asks as the server does"


def test_a_family_that_the_system_lacks_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    made = socket.socket

    def without_ipv6(family: int, *rest: int) -> socket.socket:
        if family == socket.AF_INET6:
            raise OSError(errno.EAFNOSUPPORT, "Address family not supported by protocol")
        return made(family, *rest)

    six = (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("::1", 0, 0, 0))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [six, HERE])
    monkeypatch.setattr(socket, "socket", without_ipv6)
    (listener,) = bind(ServerConfig(host="localhost", port=0))
    listener.close()


def test_a_server_without_any_address_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [AWAY, AWAY])
    with pytest.raises(ConfigError, match="cannot listen on app.example port 0: Cannot assign"):
        bind(ServerConfig(host="app.example", port=0))
