"""Files that the server delivers unchanged: the demo page and what it imports.

They are read once, and each has a route of its own: no path of a request ever reaches the file
system. They hold no secret, so they pass the gate without a key; otherwise a browser could not even
show the field for the key.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterator
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

_MEDIA_TYPES = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}

# The page talks to this server only. blob: is the AudioWorklet's, and data: an icon's.
CONTENT_SECURITY_POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self' blob:",
        "worker-src 'self' blob:",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ]
)


def static_routes(folder: Traversable, prefix: str) -> Iterator[Route]:
    """Yield a route for every file in `folder`, at `prefix` and the file's path in it.

    Other kinds of files than the page needs (documents, tests' settings) are left out.
    """
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            yield from static_routes(entry, f"{prefix}{entry.name}/")
        elif _media_type(entry.name) is not None:
            yield file_route(f"{prefix}{entry.name}", entry)


def file_route(path: str, file: Traversable) -> Route:
    """Return the route that answers GET `path` with `file`, as it was when the server started."""
    return bytes_route(path, file.read_bytes(), _media_type(file.name))


def bytes_route(path: str, body: bytes, media_type: str | None) -> Route:
    """Return the route that answers GET `path` with `body`."""
    small = gzip.compress(body, 9, mtime=0)
    tag = f'W/"{hashlib.sha256(body).hexdigest()[:16]}"'
    headers = {
        "cache-control": "no-cache",  # ask each time, so that page and client always fit together
        "content-security-policy": CONTENT_SECURITY_POLICY,
        "etag": tag,
        "vary": "accept-encoding",
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
    }

    async def answer(request: Request) -> Response:
        if tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        if "gzip" in request.headers.get("accept-encoding", ""):
            encoded = {**headers, "content-encoding": "gzip"}
            return Response(small, media_type=media_type, headers=encoded)
        return Response(body, media_type=media_type, headers=headers)

    return Route(path, answer)


def _media_type(name: str) -> str | None:
    return _MEDIA_TYPES.get(name[name.rfind(".") :])


def client_files() -> Traversable:
    """Return the folder of the JavaScript client, for the server's own page and others.

    A wheel has them as `realtime_tts/server/client` (pyproject.toml puts them there); a checkout,
    installed or not, uses its own.
    """
    packed = resources.files("realtime_tts.server").joinpath("client")
    return packed if packed.is_dir() else Path(__file__).parents[2] / "client_js" / "src"
