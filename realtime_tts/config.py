"""Settings of the server: frozen dataclasses with defaults, checked once when they are built.

Building a config opens no file and reads no environment; the command line does both and calls
these constructors. Units: seconds and bytes unless the name says otherwise.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from realtime_tts.errors import ConfigError
from realtime_tts.protocol.settings import Limits
from tts_scheduler import SchedulerConfig

Marking = Literal["off", "watermark"]
LogFormat = Literal["json", "text"]
_LEAST_SESSIONS = 512
_MOST = {"write_stall": 10, "close_timeout": 3600, "tcp_user_timeout": 3600, "send_buffer": 1 << 30}
"""The largest settings of a socket, where larger ones fit into no integer of the kernel, or would
keep a client that reads nothing for too long."""
LOG_LEVELS = ("debug", "info", "warning", "error")


def _require_positive(name: str, value: float) -> None:
    if not value > 0:
        raise ConfigError(f"{name} must be positive, got {value}")


def _check_api_key(key: str) -> None:
    """Check a key, which travels in a header, and from browsers inside a subprotocol name."""
    if len(key) < 8 or not key.isascii() or not key.isprintable() or " " in key:
        # The key itself stays out of the message: messages end up in logs.
        raise ConfigError(
            f"an API key must be at least 8 printable ASCII characters without spaces, "
            f"got one of {len(key)} characters; make one with `openssl rand -hex 24`"
        )


def is_origin(text: str) -> bool:
    """Return whether a page can have this origin: a scheme, a host and perhaps a port."""
    try:
        parts = urlsplit(text)
        host = parts.netloc if parts.scheme in ("http", "https") else ""
        return bool(host) and not (parts.path or parts.query or parts.fragment)
    except ValueError:  # such as http://[
        return False


def _check_origin(origin: str) -> None:
    if origin != "*" and not is_origin(origin):
        raise ConfigError(
            f"an allowed origin looks like https://example.com or http://localhost:3000 "
            f"(no path), or is *; got {origin!r}"
        )


@dataclass(frozen=True, slots=True)
class SocketConfig:
    """When a socket that misbehaves is closed. The defaults suit the open internet.

    `write_stall`: seconds without progress while the peer does not read. Together with what the
    kernel buffers absorb it bounds how long a client that stopped reading is kept, so it must stay
    well below ten seconds.
    """

    ping_interval: float = 15.0
    ping_timeout: float = 10.0
    write_stall: float = 5.0
    write_high_water: int = 16 * 1024
    send_buffer: int = 32 * 1024
    """SO_SNDBUF: audio in the kernel cannot be taken back at an interrupt, so keep it small."""
    write_buffer_cap: int = 1024 * 1024
    handshake_timeout: float = 5.0
    """Seconds for a complete request header, and again for the answer to a WebSocket upgrade."""
    body_timeout: float = 30.0
    keep_alive: float = 75.0
    """Seconds that a connection may wait for its next request. Longer than clients and most proxies
    keep one (60 s): who closes later cannot be the one that closes upon a request."""
    max_header_bytes: int = 32 * 1024
    pings_per_second: int = 50
    pending_fragments: int = 256
    close_timeout: float = 2.0
    tcp_user_timeout: float = 20.0

    def __post_init__(self) -> None:
        for name in self.__slots__:
            _require_positive(name, getattr(self, name))
        for name, most in _MOST.items():
            if getattr(self, name) > most:
                raise ConfigError(f"{name} must be at most {most}, got {getattr(self, name)}")


class LimitsConfig(Limits, frozen=True, kw_only=True):
    """What one client may ask for, which `ready` announces, and limits for all clients together.

    `max_sessions`: None follows from what the engine can speak at once (`sessions_for`).
    `outbox_ms`: how much audio beyond its lead may wait for a slow reader before it is dropped.
    `max_turn_audio_ms` follows from the checkpoint and `write_stall_ms` from the socket's settings.
    """

    max_sessions: int | None = None
    outbox_ms: int = 20_000

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            if getattr(self, name) is not None:
                _require_positive(name, getattr(self, name))
        for name in ("max_turn_audio_ms", "write_stall_ms"):
            if getattr(self, name) != getattr(Limits(), name):
                raise ConfigError(f"{name} is no setting: it follows from others")
        if self.max_text_chars > self.max_turn_chars:
            raise ConfigError(
                f"max_text_chars ({self.max_text_chars}) must not be larger than "
                f"max_turn_chars ({self.max_turn_chars})"
            )

    def sessions_for(self, slots: int) -> int:
        """Return the most sessions of a server whose engines have `slots` slots: `max_sessions`,
        else two for each slot, since in a conversation each side speaks half of the time, and 512
        at least."""
        return max(_LEAST_SESSIONS, 2 * slots) if self.max_sessions is None else self.max_sessions


@dataclass(frozen=True, slots=True)
class AccessConfig:
    """Keys of customers, besides the server's own. `keys`: the file that `realtime-tts keys`
    writes. `usage`: the database in which their usage is recorded, as SQLAlchemy names it; None: a
    SQLite file beside the keys. `limits_store`: Redis or Valkey, where several servers share
    limits."""

    keys: str
    usage: str | None = None
    limits_store: str | None = None

    @property
    def usage_url(self) -> str:
        """The URL of the database, also if `usage` is None."""
        return self.usage or f"sqlite:///{Path(self.keys).absolute()}.usage.db"


@dataclass(frozen=True, slots=True)
class AddressConfig:
    """What the clients of one address may do: an IPv4 address or an IPv6 network of 64 bits.

    `connections_per_second`: new connections, and requests, of an address, and requests with one
    key; four times as many may come at once. `handshakes`: connections at once on which no request
    is complete. `sockets_without_key`: open at once, where the key comes with a message.
    `trusted_proxies`: addresses and networks whose `X-Forwarded-For` is taken for the client's
    address; that of others is ignored.
    """

    connections_per_second: float = 256.0
    handshakes: int = 256
    sockets_without_key: int = 32
    trusted_proxies: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("connections_per_second", "handshakes", "sockets_without_key"):
            _require_positive(name, getattr(self, name))
        for proxy in self.trusted_proxies:
            try:
                ipaddress.ip_network(proxy)
            except ValueError as error:
                raise ConfigError(
                    f"a trusted proxy is an address or a network, such as 10.0.0.5 or 10.0.0.0/8: "
                    f"{error}"
                ) from None

    @property
    def burst(self) -> float:
        """Connections that one address may open at once."""
        return max(1.0, 4 * self.connections_per_second)


@dataclass(frozen=True, slots=True)
class TlsConfig:
    """PEM files: the server's certificate, then those between it and the authority, if any; and its
    private key, not encrypted. `key` None: the key is in the certificate's file."""

    certificate: str
    key: str | None = None


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """Everything `realtime-tts serve` decides about the front; the engine has its own settings.

    `api_keys`: none means open to everybody who can connect. `allowed_origins`: web pages, as
    `scheme://host[:port]`, that may connect besides the server's own; `*` means all.
    `lead_seconds`: audio sent ahead of a listener at most, where a session asks for nothing else.
    `tls`: speak https and wss only; None: http and ws only. `engine_stall_seconds`: an engine whose
    loop has not moved for this time counts as dead. `failover_seconds`: a turn whose engine failed
    waits this time for another one, or for the restart; 0: it fails at once. `turn_reserve`: the
    share of the capacity that is kept for turns of open sessions; new sessions are refused while no
    more is free. None: only while the engine refuses turns. `agent_port`: where HAProxy's agent
    check is answered; None: nowhere. `marking`: what marks the sound itself as synthetic, besides
    its metadata. `tracing`: a span for every turn, by OTLP; the environment's `OTEL_*` set where to
    and how.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    api_keys: tuple[str, ...] = field(default=(), repr=False)
    allowed_origins: tuple[str, ...] = ()
    lead_seconds: float = SchedulerConfig().lead_cap
    drain_seconds: float = 30.0
    engine_stall_seconds: float = 20.0
    failover_seconds: float = 30.0
    turn_reserve: float | None = None
    agent_port: int | None = None
    marking: Marking = "off"
    tracing: bool = False
    log_format: LogFormat = "json"
    log_level: str = "info"
    access_log: bool = True
    tls: TlsConfig | None = None
    limits: LimitsConfig = LimitsConfig()
    socket: SocketConfig = SocketConfig()
    addresses: AddressConfig = AddressConfig()
    access: AccessConfig | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65_535:
            raise ConfigError(f"port must be between 0 and 65535, got {self.port}")
        if not self.drain_seconds >= 0:
            raise ConfigError(f"drain_seconds must not be negative, got {self.drain_seconds}")
        if not 0.2 <= self.lead_seconds <= self.limits.max_lead_ms / 1000:
            raise ConfigError(
                f"lead_seconds must be between 0.2 and {self.limits.max_lead_ms / 1000:g} "
                f"(max_lead_ms), got {self.lead_seconds}"
            )
        _require_positive("engine_stall_seconds", self.engine_stall_seconds)
        if not self.failover_seconds >= 0:
            raise ConfigError(f"failover_seconds must not be negative, got {self.failover_seconds}")
        if self.turn_reserve is not None and not 0 <= self.turn_reserve < 1:
            raise ConfigError(
                f"turn_reserve must be None or a share from 0 to below 1, got {self.turn_reserve}"
            )
        if self.agent_port is not None and not 0 <= self.agent_port <= 65_535:
            raise ConfigError(
                f"agent_port must be None or between 0 and 65535, got {self.agent_port}"
            )
        if self.agent_port and self.agent_port == self.port:
            raise ConfigError(f"agent_port must be another port than the server's own {self.port}")
        if self.log_format not in ("json", "text"):
            raise ConfigError(f"log_format must be json or text, got {self.log_format!r}")
        if self.log_level not in LOG_LEVELS:
            known = ", ".join(LOG_LEVELS)
            raise ConfigError(f"log_level must be one of {known}, got {self.log_level!r}")
        for key in self.api_keys:
            _check_api_key(key)
        for origin in self.allowed_origins:
            _check_origin(origin)
