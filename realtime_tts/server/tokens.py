"""Short-lived tokens: a page gets one in place of the key, from its own server, which has the key.

A token is a claim and its HMAC-SHA256 (RFC 2104), both in base64url: its bearer may speak for some
minutes. The HMAC's secret comes from the key that asked for the token: all servers with that key
accept it, and it ends with the key. scrypt (RFC 7914) makes the secret: each guess at a key costs
50 ms and 16 MB.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import hmac
import os
import secrets
import time
from collections.abc import Callable, Collection
from functools import cache
from heapq import heappop, heappush
from pathlib import Path
from typing import NamedTuple, Protocol, TypedDict

import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from realtime_tts.errors import RequestError
from realtime_tts.server.denials import error_response

TOKEN_PATH = "/v1/token"
LONGEST_SECONDS = 3_600
MINT = "realtime_tts.mint"
"""Key in the ASGI scope of a request whose key is valid: `Tokens.mint` for that key."""

DEFAULT_SECONDS = 300
_MAC_BYTES = 32
_SWEEP_SECONDS = 60.0


class Claim(msgspec.Struct, frozen=True):
    """The claim of a token. `until`: in seconds since 1970. `origin`: of the page that may use it;
    None: any that is allowed. `once`: it is good for one request or socket."""

    id: str
    until: float
    origin: str | None
    once: bool


class Shown(NamedTuple):
    """The key of a request: the digest of a server's key, the id of a customer's, or empty if none
    is needed. `claim`: of the token that was shown in its place."""

    key: bytes | str
    claim: Claim | None = None


class UsedTokens(Protocol):
    """The single-use tokens that have been used."""

    def has(self, id: str) -> bool:
        """Return whether this one was used."""

    def use(self, id: str, until: float) -> bool:
        """Use a token that expires at `until`; return whether it had not been used before."""


class UsedHere:
    """Used tokens of this process, remembered until they expire."""

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._forget: list[tuple[float, str]] = []  # a heap: when to forget each

    def has(self, id: str) -> bool:
        return id in self._used

    def use(self, id: str, until: float) -> bool:
        while self._forget and self._forget[0][0] <= time.time():
            self._used.discard(heappop(self._forget)[1])
        if id in self._used:
            return False
        self._used.add(id)
        heappush(self._forget, (until, id))
        return True


class UsedByAll:
    """Used tokens of all processes that share a folder: an empty file for each. The folder is made
    if it does not exist, and must hold nothing else: old files in it are removed."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, exist_ok=True)
        self._folder = folder
        self._sweep_at = 0.0

    def has(self, id: str) -> bool:
        return (self._folder / id).exists()

    def use(self, id: str, until: float) -> bool:
        """Use a token, as `UsedTokens` says. Raises OSError if the folder cannot be written."""
        if self._sweep_at <= time.time():
            self._sweep()
        path = self._folder / id
        try:
            path.touch(exist_ok=False)
        except FileExistsError:
            return False
        os.utime(path, (until, until))
        return True

    def _sweep(self) -> None:
        now = time.time()
        self._sweep_at = now + _SWEEP_SECONDS
        for path in self._folder.iterdir():
            with contextlib.suppress(FileNotFoundError):  # another process sweeps as well
                if path.stat().st_mtime < now - _SWEEP_SECONDS:
                    path.unlink()


class Tokens:
    """Makes tokens and verifies them.

    `keys`: digests of the server's keys; without any, no token is needed. `stored` returns the
    secret of a customer's key by its id, with which its tokens begin; None if it is not valid.
    """

    def __init__(
        self,
        keys: Collection[bytes],
        used: UsedTokens | None = None,
        stored: Callable[[str], bytes | None] | None = None,
    ) -> None:
        self._secrets: dict[bytes | str, bytes] = {key: _secret_of(key) for key in keys}
        self._stored = stored or (lambda id: None)
        self._used = used or UsedHere()

    def mint(
        self, key: bytes | str, seconds: int, *, origin: str | None = None, once: bool = False
    ) -> str:
        """Return a token that is as good as the key, for speech, for this time."""
        claim = Claim(secrets.token_urlsafe(12), time.time() + seconds, origin, once)
        body = msgspec.json.encode(claim)
        mac = hmac.digest(self.secret(key), body, "sha256")
        token = base64.urlsafe_b64encode(mac + body).decode().rstrip("=")
        return f"{key}.{token}" if isinstance(key, str) else token

    def secret(self, key: bytes | str) -> bytes:
        """Return what only servers with this key know; empty if no key is needed."""
        found = self._stored(key) if isinstance(key, str) else self._secrets.get(key)
        return found or b""

    def read(self, token: bytes, origins: Collection[str]) -> Shown | None:
        """Return the key of a valid token in a request with these `Origin` headers, else None. The
        token is not used up: see `use`."""
        key, claim = self._read(token)
        if claim is None or claim.until <= time.time():
            return None
        if claim.origin is not None and [one.lower() for one in origins] != [claim.origin]:
            return None
        used = claim.once and self._used.has(claim.id)
        return None if used else Shown(key, claim)

    def use(self, shown: Shown) -> bool:
        """Use a token up, if it is for one use; return False if it was used before."""
        claim = shown.claim
        return claim is None or not claim.once or self._used.use(claim.id, claim.until)

    def _read(self, token: bytes) -> tuple[bytes | str, Claim | None]:
        """Return the key that signed the token, and its claim."""
        secrets = self._secrets
        if b"." in token:
            key_id, _, token = token.partition(b".")
            name = key_id.decode("ascii", "replace")
            secret = self._stored(name)
            secrets = {} if secret is None else {name: secret}
        try:
            sealed = base64.b64decode(token + b"=" * (-len(token) % 4), b"-_", validate=True)
        except (binascii.Error, ValueError):
            return b"", None
        mac, body = sealed[:_MAC_BYTES], sealed[_MAC_BYTES:]
        macs = [(key, hmac.digest(one, body, "sha256")) for key, one in secrets.items()]
        signed = [key for key, one in macs if hmac.compare_digest(mac, one)]
        return (signed[0], msgspec.json.decode(body, type=Claim)) if signed else (b"", None)


@cache  # keys mostly stay when settings are reloaded
def _secret_of(key: bytes) -> bytes:
    return hashlib.scrypt(key, salt=b"realtime-tts token", n=2**14, r=8, p=1, dklen=_MAC_BYTES)


def token_for(request: Request, seconds: object, *, once: bool = False) -> str:
    """Return a token of the request's key, for the page of the parameter `origin` if there is one.

    Raises RequestError if it cannot last for this number of seconds.
    """
    whole = isinstance(seconds, int) and not isinstance(seconds, bool)
    if not (whole and 1 <= seconds <= LONGEST_SECONDS):  # type: ignore[operator]
        raise RequestError(f"a token lasts 1 to {LONGEST_SECONDS} seconds, found {seconds!r:.40}")
    origin = request.query_params.get("origin")
    token: str = request.scope[MINT](seconds, origin=origin and origin.lower(), once=once)
    return token


def token_route() -> Route:
    """Return the route `POST /v1/token`, with the parameters `seconds` and `origin`."""
    return Route(TOKEN_PATH, _token, methods=["POST"])


class Token(TypedDict):
    """A short-lived token, and for how many seconds it can be used."""

    token: str
    expires_in: int


async def _token(request: Request) -> Response:
    asked = request.query_params.get("seconds", str(DEFAULT_SECONDS))
    try:
        seconds = int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 9 else asked
        answer: Token = {"token": token_for(request, seconds), "expires_in": int(seconds)}
    except RequestError as error:
        return error_response(400, error.code, str(error), fatal=False)
    return JSONResponse(answer, headers={"cache-control": "no-store"})
