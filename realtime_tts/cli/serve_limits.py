"""The flags of `serve` that limit clients: one for each limit."""

from __future__ import annotations

import argparse

from realtime_tts.cli.session_arguments import add_number_arguments
from realtime_tts.config import AddressConfig, LimitsConfig, SocketConfig

SESSIONS = {
    "max_message_bytes": "longest message of a session, in bytes",
    "max_text_chars": "longest text in one message, in characters",
    "max_turn_chars": "longest text of a turn",
    "max_instructions_chars": "longest instructions",
    "max_lexicon_entries": "most words in the lexicon that a session brings",
    "max_lexicon_chars": "longest word there, and longest respelling",
    "max_lexicons": "most stored lexicons that a session names",
    "max_queued_turns": "most turns that wait behind the one on the air",
    "messages_per_second": "most messages of a session, in a second",
    "message_burst": "messages that may come at once before that rate applies",
    "max_bad_messages": "bad messages after which a socket is closed",
    "bad_message_window_ms": "milliseconds in which those are counted",
    "max_lead_ms": "furthest ahead of its listener that a session may ask to be, in milliseconds",
    "turn_idle_ms": "milliseconds without text after which the input of a turn is ended",
    "outbox_ms": "milliseconds of audio beyond the lead that may wait for a slow reader",
}
"""Fields of LimitsConfig that are flags of the same name; it computes the others."""

ADDRESSES = {
    "handshakes": "connections of one address on which no request is complete",
    "sockets_without_key": "sockets of one address that have not shown their key yet",
}
"""Fields of AddressConfig that are flags of the same name."""

SOCKETS = {
    "ping_interval": "seconds between pings",
    "ping_timeout": "seconds that the answer to a ping may take",
    "write_stall": "seconds after which a client that reads nothing is given up, at most 10",
    "write_high_water": "bytes in the server's buffer from which a socket counts as full",
    "send_buffer": "bytes of the kernel's buffer; what is in it cannot be taken back",
    "write_buffer_cap": "bytes in the server's buffer at which a socket is given up",
    "handshake_timeout": "seconds for the head of a request, and for the answer to an upgrade",
    "body_timeout": "seconds for the body of a request",
    "keep_alive": "seconds that a connection may wait for its next request",
    "max_header_bytes": "longest head of a request, in bytes",
    "pings_per_second": "most pings of a client, in a second",
    "pending_fragments": "most fragments of a message",
    "close_timeout": "seconds that a client may take to answer a close",
    "tcp_user_timeout": "seconds after which the kernel gives up a silent client",
}
"""All fields of SocketConfig."""


def add_limit_arguments(group: argparse._ArgumentGroup) -> None:
    """Add the flags for how many clients there may be, and what each may ask for."""
    group.add_argument(
        "--max-sessions", type=int, help="open sockets (default: twice the slots, at least 512)"
    )
    group.add_argument(
        "--connection-rate",
        type=float,
        default=AddressConfig().connections_per_second,
        metavar="PER_SECOND",
        help="new connections, and requests, of one address or with one key; four times as many "
        "may come at once (default: %(default)g)",
    )
    group.add_argument(
        "--turn-reserve",
        type=float,
        metavar="SHARE",
        help="refuse new sessions, so that a proxy tries another server, while no more than this "
        "share of the capacity is free: it is for the turns of open sessions (default: refuse them "
        "while turns are refused, too; 0.1 suits a fleet)",
    )
    add_number_arguments(group, AddressConfig(), ADDRESSES)
    add_number_arguments(group, LimitsConfig(), SESSIONS)


def add_socket_arguments(group: argparse._ArgumentGroup) -> None:
    """Add the flags for when a socket that misbehaves is closed."""
    add_number_arguments(group, SocketConfig(), SOCKETS)


def limits_config(arguments: argparse.Namespace) -> LimitsConfig:
    """Return the limits that the flags give. Raises ConfigError."""
    given = {name: getattr(arguments, name) for name in SESSIONS}
    return LimitsConfig(max_sessions=arguments.max_sessions, **given)


def address_config(arguments: argparse.Namespace) -> AddressConfig:
    """Return the limits of addresses that the flags give. Raises ConfigError."""
    return AddressConfig(
        connections_per_second=arguments.connection_rate,
        trusted_proxies=tuple(arguments.trusted_proxy or ()),
        **{name: getattr(arguments, name) for name in ADDRESSES},
    )


def socket_config(arguments: argparse.Namespace) -> SocketConfig:
    """Return the limits of sockets that the flags give. Raises ConfigError."""
    return SocketConfig(**{name: getattr(arguments, name) for name in SOCKETS})
