"""Opens the socket; every way in which that can fail is an error with advice."""

from __future__ import annotations

import asyncio
import ssl
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidHandshake, InvalidProxy, InvalidStatus, InvalidURI
from websockets.typing import Subprotocol

from realtime_tts.client.address import is_local
from realtime_tts.client.refusals import http_error
from realtime_tts.client.trust import key_header
from realtime_tts.client.unanswered import misunderstood, no_answer, shown, unanswered
from realtime_tts.errors import ConfigError, HandshakeRefused
from realtime_tts.protocol.messages import SUBPROTOCOL
from realtime_tts.version import __version__

PING_SECONDS = 10.0
"""Seconds between pings. A dead peer is noticed after at most twice this."""

NEXT_ADDRESS_SECONDS = 0.25
"""Seconds after which the next address of a host is tried as well (RFC 8305)."""

MAX_MESSAGE_BYTES = 8 * 1024 * 1024
"""The largest message accepted: `turn.interrupted` has the whole text of a turn, six bytes a
character when escaped."""


class _Connect(connect):
    """Follows no redirect: the key is for the server that the user has named."""

    def process_redirect(self, exc: Exception) -> Exception:
        """Return the error that the answer is otherwise."""
        return exc


async def open_socket(
    url: str, api_key: str | None, timeout_s: float, trust: ssl.SSLContext | None
) -> ClientConnection:
    """Connect to `url` with our subprotocol, within `timeout_s` seconds.

    `trust` is for wss:// addresses (trust.py). Raises HandshakeRefused (of status 0 if no HTTP was
    answered; Unreachable if nothing was), CertificateRefused, OverloadedError if the server says
    when to try again, or ConfigError for a key that cannot be sent.
    """
    headers = key_header(api_key)
    # A host with several addresses may not answer at the first one. uvloop has no such parameter.
    has_it = isinstance(asyncio.get_running_loop(), asyncio.BaseEventLoop)
    delay: dict[str, Any] = {"happy_eyeballs_delay": NEXT_ADDRESS_SECONDS} if has_it else {}
    try:
        socket = await _Connect(
            url,
            ssl=trust,
            subprotocols=[Subprotocol(SUBPROTOCOL)],
            compression=None,  # PCM does not compress; trying costs 200 us a packet on the server
            additional_headers=headers,
            user_agent_header=f"realtime-tts/{__version__}",
            # The system's proxy settings often forget to except the machine itself.
            proxy=None if is_local(url) else True,
            open_timeout=timeout_s,
            close_timeout=2.0,
            ping_interval=PING_SECONDS,
            ping_timeout=PING_SECONDS,
            max_size=MAX_MESSAGE_BYTES,
            **delay,
        )
    except InvalidStatus as error:
        response = error.response
        body, location = response.body or b"", response.headers.get("Location")
        raise http_error(url, response.status_code, body, location=location) from error
    except (InvalidProxy, ImportError) as error:  # SOCKS needs a package more
        # Without the proxy's URL, which may have a password.
        raise ConfigError(
            f"the proxy that the environment names cannot be used: {error.msg}; expected a URL "
            "such as http://proxy.example:3128"
        ) from error
    except (InvalidHandshake, InvalidURI, EOFError) as error:
        raise misunderstood(url, "a WebSocket server", error) from error
    except TimeoutError as error:
        raise no_answer(url, timeout_s) from error
    except OSError as error:
        raise unanswered(url, error) from error
    if socket.subprotocol != SUBPROTOCOL:
        await socket.close()
        raise HandshakeRefused(
            f"{shown(url)} is a WebSocket server but does not speak {SUBPROTOCOL}; "
            "is it a realtime-tts server of the same version?"
        )
    return socket
