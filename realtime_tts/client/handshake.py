"""Opening the socket, and every way in which that can be refused, as errors with advice."""

from __future__ import annotations

import ssl

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidHandshake, InvalidStatus, InvalidURI
from websockets.http11 import Response
from websockets.typing import Subprotocol

from realtime_tts.client.address import is_loopback
from realtime_tts.client.trust import key_header
from realtime_tts.client.unanswered import misunderstood, no_answer, shown, unanswered
from realtime_tts.errors import (
    CertificateRefused,
    ConnectionLost,
    HandshakeRefused,
    OverloadedError,
    RealtimeTTSError,
)
from realtime_tts.protocol.messages import SUBPROTOCOL, ErrorMessage
from realtime_tts.protocol.parsing import ProtocolError, parse_server_message
from realtime_tts.version import __version__

PING_SECONDS = 10.0
"""A dead peer is noticed after at most twice this."""

MAX_MESSAGE_BYTES = 8 * 1024 * 1024
"""`turn.interrupted` carries the whole text of a turn, six bytes a character when escaped."""

_ADVICE = {
    401: "the server wants an API key and got none that it knows; pass api_key=",
    403: "the server does not let this client in",
    404: "there is no speech server at this path; give the URL of a realtime-tts server",
    429: "the server gets too many connections from here",
    503: "the server has no capacity now or is not ready yet",
}


async def open_socket(
    url: str, api_key: str | None, patience: float, trust: ssl.SSLContext | None = None
) -> ClientConnection:
    """Connect to `url` with our subprotocol, within `patience` seconds.

    `trust` is for wss:// addresses (trust.py). Raises HandshakeRefused (of status 0 if there was no
    answer of HTTP; Unreachable if there was none at all), CertificateRefused, OverloadedError where
    the server says when to try again, or ConfigError for a key that cannot be sent.
    """
    headers = key_header(api_key)
    try:
        socket = await connect(
            url,
            ssl=trust,
            subprotocols=[Subprotocol(SUBPROTOCOL)],
            compression=None,  # PCM does not compress; trying costs 200 us a packet on the server
            additional_headers=headers,
            user_agent_header=f"realtime-tts/{__version__}",
            # The system's proxy settings often forget to except the machine itself.
            proxy=None if is_loopback(url) else True,
            open_timeout=patience,
            close_timeout=2.0,
            ping_interval=PING_SECONDS,
            ping_timeout=PING_SECONDS,
            max_size=MAX_MESSAGE_BYTES,
        )
    except InvalidStatus as error:
        raise refusal(url, error.response) from error
    except (InvalidHandshake, InvalidURI, EOFError) as error:
        raise misunderstood(url, "a WebSocket server", error) from error
    except TimeoutError as error:
        raise no_answer(url, patience) from error
    except OSError as error:
        raise unanswered(url, error) from error
    if socket.subprotocol != SUBPROTOCOL:
        await socket.close()
        raise HandshakeRefused(
            f"{shown(url)} is a WebSocket server but does not speak {SUBPROTOCOL}; "
            "is it a realtime-tts server of the same version?"
        )
    return socket


def refusal(url: str, response: Response) -> RealtimeTTSError:
    """The error for an HTTP answer in place of a WebSocket."""
    status = response.status_code
    reason = _ADVICE.get(status, "the server refused the connection")
    said = _server_error(response)
    if said is not None:
        reason = f"{reason}: {said.message}"
    if status in (429, 503) and said is not None and said.retry_after_ms is not None:
        return OverloadedError(
            f"{shown(url)}: {reason} (HTTP {status})", said.retry_after_ms / 1000
        )
    return HandshakeRefused(f"{shown(url)}: {reason} (HTTP {status})", status)


def _server_error(response: Response) -> ErrorMessage | None:
    """The `error` message in the body of a refusal, if it is one of ours."""
    try:
        message = parse_server_message((response.body or b"").decode())
    except (ProtocolError, UnicodeDecodeError):
        return None  # a proxy's page, for example; the status says enough
    return message if isinstance(message, ErrorMessage) else None


def is_final(error: BaseException) -> bool:
    """Whether trying to connect again with the same arguments is pointless."""
    if isinstance(error, CertificateRefused):
        return True
    if isinstance(error, HandshakeRefused):
        return 400 <= error.status < 500 and error.status not in (408, 425, 429)
    return not isinstance(error, OverloadedError | ConnectionLost)
