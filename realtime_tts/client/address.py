"""The server's address: from what a user types to the URLs that the client uses."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from realtime_tts.errors import ConfigError
from realtime_tts.loopback import is_loopback

DEFAULT_PATH = "/v1/tts"
_SCHEMES = {"ws": "ws", "wss": "wss", "http": "ws", "https": "wss"}


def websocket_url(server: str) -> str:
    """Return the WebSocket URL of `server`, which is a ws(s) or http(s) URL or just `host:port`.

    A URL without a path gets `/v1/tts`. Raises ConfigError if `server` names no host.
    """
    if not isinstance(server, str):
        raise _refused(server)
    text = server.strip()
    if "://" not in text:
        text = f"ws://{text}"
    try:
        parts = urlsplit(text)
        host, _port = parts.hostname, parts.port
        (host or "").encode("idna")  # as Python does before it looks a name up
    except ValueError as error:
        raise _refused(server) from error
    scheme = _SCHEMES.get(parts.scheme.lower())
    if scheme is None or not host:
        raise _refused(server)
    path = parts.path if parts.path not in ("", "/") else DEFAULT_PATH
    return urlunsplit((scheme, parts.netloc, path, parts.query, ""))


def with_query(url: str, **parameters: str) -> str:
    """Return the URL with these query parameters added, except for those that it has."""
    parts = urlsplit(url)
    has = dict(parse_qsl(parts.query, keep_blank_values=True))
    more = {name: value for name, value in parameters.items() if name not in has}
    query = "&".join(part for part in (parts.query, urlencode(more)) if part)
    return urlunsplit(parts._replace(query=query))


def http_url(server: str, path: str) -> str:
    """Return the URL of `path` (such as `/readyz`) on the same server."""
    parts = urlsplit(websocket_url(server))
    scheme = "https" if parts.scheme == "wss" else "http"
    return urlunsplit((scheme, parts.netloc, path, "", ""))


def is_local(url: str) -> bool:
    """Return whether `url` leads to this machine, for which no proxy is used."""
    return is_loopback(urlsplit(url).hostname or "")


def _refused(server: object) -> ConfigError:
    return ConfigError(
        f"cannot use {server!r} as the server's address; expected a ws://, wss://, http:// or "
        "https:// URL or host:port, such as ws://127.0.0.1:8000"
    )
