"""The TLS flags of `serve`, and the certificate that one of them makes."""

from __future__ import annotations

import argparse
import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from realtime_tts.errors import ConfigError

if TYPE_CHECKING:
    from realtime_tts.config import TlsConfig

EVERYWHERE = ("0.0.0.0", "::", "")
"""Hosts to listen on that are nobody's name."""


def add_tls_arguments(group: argparse._ArgumentGroup) -> None:
    """--tls-cert, --tls-key and --tls-self-signed."""
    group.add_argument(
        "--tls-cert",
        metavar="FILE",
        help="speak https and wss, with this certificate (PEM, its chain after it if it has one)",
    )
    group.add_argument(
        "--tls-key", metavar="FILE", help="its private key (default: in the certificate's file)"
    )
    group.add_argument(
        "--tls-self-signed",
        action="store_true",
        help="the same with a certificate made now, for development (extra `tls`)",
    )


@contextlib.contextmanager
def tls_config(arguments: argparse.Namespace) -> Iterator[TlsConfig | None]:
    """What the flags say, for the block: a certificate made for it is deleted afterwards.

    Raises ConfigError.
    """
    from realtime_tts.config import TlsConfig

    certificate, key = arguments.tls_cert, arguments.tls_key
    if arguments.tls_self_signed and (certificate or key):
        raise ConfigError("--tls-self-signed makes its own certificate; leave out the others'")
    if key and not certificate:
        raise ConfigError("--tls-key is the key of a certificate: give --tls-cert, too")
    if not arguments.tls_self_signed:
        yield TlsConfig(certificate, key) if certificate else None
        return
    from realtime_tts.server.self_signed import write_self_signed

    hosts = [] if arguments.host in EVERYWHERE else [arguments.host]
    with tempfile.TemporaryDirectory(prefix="realtime-tts-tls-") as folder:
        yield write_self_signed(Path(folder), *hosts)
