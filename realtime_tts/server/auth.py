"""Refuses who may not talk to the server, by API key or origin, before a route sees the request.

It is pure ASGI, because Starlette's `BaseHTTPMiddleware` never sees a WebSocket. `OPEN_PATHS` are
exempt, because probes carry no key and learn only a word from them; so are the files of the demo
page, which are no secret and have the field for the key.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send

from realtime_tts.access.account import ACCOUNT, FREE, UNAUTHORIZED, Account, KeyAccount
from realtime_tts.config import ServerConfig
from realtime_tts.configuration.reload import Reloads
from realtime_tts.logs import event
from realtime_tts.loopback import is_loopback
from realtime_tts.metrics import Metrics
from realtime_tts.protocol.messages import KEY_SUBPROTOCOL_PREFIX
from realtime_tts.server.addresses import ClientAddresses
from realtime_tts.server.denials import send_denial, send_retry_after
from realtime_tts.server.state_signer import SECRET
from realtime_tts.server.tokens import MINT, Shown, Tokens, UsedHere, UsedTokens
from realtime_tts.tracing.context import REFUSED

if TYPE_CHECKING:  # it needs packages of the extra `keys`
    from realtime_tts.access.access import Access

log = logging.getLogger(__name__)

OPEN_PATHS = frozenset({"/livez", "/readyz", "/health"})

Denial = Callable[[Scope, Send, int, str, str], Awaitable[None]]
"""Answers with a status, a code and a message, in the form that a route's clients expect."""


TOO_MANY_REQUESTS = "too_many_requests"
LATE_KEY = "realtime_tts.late_key"
"""Key in the ASGI scope of a socket that has shown no key yet: a function that checks a key."""

_NO_KEY = 401, UNAUTHORIZED, "a valid API key is needed (Authorization: Bearer KEY)"
_CANNOT_USE = 503, "not_ready", "the server cannot note now that a single-use token is used"
_KEY_HEADERS = frozenset({b"x-api-key", b"xi-api-key"})
_KEY_FOLLOWS = frozenset({"token", "bearer"})


@dataclass(frozen=True, slots=True)
class PathRule:
    """What differs for the paths that begin with a prefix, and for their clients.

    `query_keys`: parameters that may hold the key. `late_key`: a WebSocket without a key is let in,
    and its endpoint must ask for it (`LATE_KEY`). `token_methods`: the methods for which a
    short-lived token is accepted; None: all, and WebSockets. `open_methods`: the methods for every
    key; others are for the server's own keys and `admin` ones; None: all, and WebSockets.
    """

    deny: Denial
    query_keys: frozenset[str] = frozenset()
    late_key: bool = False
    token_methods: frozenset[str] | None = None
    open_methods: frozenset[str] | None = None


class Gate:
    """ASGI middleware in front of every route.

    - `open_paths` are open to all.
    - `rules`: by the prefix of a path, the first that matches; other paths are denied with the
      native `error`, and ignore a key in the query.
    - `access`: keys of customers, each with origins of its own.
    - No key configured: open. Otherwise one of `Authorization: Bearer|Token KEY`, `X-API-Key: KEY`,
      `xi-api-key: KEY` or the subprotocols `realtime-tts.key.KEY` or `token, KEY`, else 401. A
      short-lived token (tokens.py) is as good as a key, except where `token_methods` excludes it.
    - More requests per second from an address, or with a key, than `addresses` allow: 429.
    - An `Origin` header (browsers send it, and nothing else stops one page from using another's
      server) must be this server's own or in the list, else 403. No `Origin` is fine.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        api_keys: Iterable[str],
        allowed_origins: Iterable[str],
        loopback: bool,
        metrics: Metrics,
        addresses: ClientAddresses | None = None,
        open_paths: Collection[str] = OPEN_PATHS,
        rules: Mapping[str, PathRule] | None = None,
        used_tokens: UsedTokens | None = None,
        access: Access | None = None,
        reloads: Reloads | None = None,
    ) -> None:
        self._app = app
        self._open_paths = frozenset(open_paths)
        self._rules = dict(rules or {})
        self._keys = [_digest(key.encode()) for key in api_keys]
        self._access = access
        self._used_tokens = used_tokens or UsedHere()
        self._tokens = self._tokens_of(self._keys)
        self._origins = frozenset(origin.lower() for origin in allowed_origins)
        self._loopback = loopback
        self._metrics = metrics
        self._addresses = addresses or ClientAddresses()
        if reloads is not None:
            reloads.add(self)

    def prepare(self, config: ServerConfig) -> Callable[[], None]:
        """Prepare the API keys. Tokens of keys that stay remain valid. See `Reloadable`."""
        keys = [_digest(key.encode()) for key in config.api_keys]
        tokens = self._tokens_of(keys)

        def take_over() -> None:
            self._keys, self._tokens = keys, tokens

        return take_over

    def _tokens_of(self, keys: list[bytes]) -> Tokens:
        stored = None if self._access is None else self._access.secret
        return Tokens(keys, self._used_tokens, stored)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket"):
            denial = self._too_many(scope)
            if denial is None and scope["path"] not in self._open_paths:
                denial = self._denial(scope)
            if denial is not None:
                await self._deny(scope, send, *denial)
                return
        await self._app(scope, receive, send)

    def _too_many(self, scope: Scope) -> tuple[int, str, str] | None:
        """Return a denial if this address sends too many requests. Probes, which may share it with
        others, are always answered."""
        requests = self._addresses.of(scope.get("client")).requests
        if scope["path"] in OPEN_PATHS or requests.take(time.monotonic()):
            return None
        return self._busy("of this address")

    def _busy(self, whose: str) -> tuple[int, str, str]:
        why = f"more requests a second {whose} than --connection-rate allows"
        return 429, TOO_MANY_REQUESTS, why

    def _denial(self, scope: Scope) -> tuple[int, str, str] | None:
        """Return None to let the request pass, else status, code and message."""
        headers = scope["headers"]
        origins = [value.decode("latin-1") for name, value in headers if name == b"origin"]
        hosts = [value.decode("latin-1") for name, value in headers if name == b"host"]
        if not all(self._origin_allowed(origin, hosts) for origin in origins):
            message = "this origin is not allowed; start the server with --allow-origin to add it"
            return 403, "origin_not_allowed", message
        rule = self._rule_for(scope["path"])
        offered = list(_keys_offered(scope, rule.query_keys))

        def late(key: str) -> bool:
            shown = self._shown([key.encode(errors="replace")], scope, rule, origins)
            return shown is not None and self._not_for(shown, scope, rule, origins) is None

        shown = self._shown(offered, scope, rule, origins)
        if shown is None:
            if not offered and rule.late_key and scope["type"] == "websocket":
                scope[LATE_KEY] = late
                return None
            return _NO_KEY
        if shown.key and not self._addresses.of_key(shown.key).take(time.monotonic()):
            return self._busy("with this key")
        scope[SECRET] = self._tokens.secret(shown.key)
        return self._not_for(shown, scope, rule, origins)

    def _not_for(
        self, shown: Shown, scope: Scope, rule: PathRule, origins: list[str]
    ) -> tuple[int, str, str] | None:
        """Return why a valid key may not do this, and note its account. The server's own keys may
        do everything. A single-use token is used up only if nothing else refuses the request."""
        denial = None
        if self._access is not None and isinstance(shown.key, str):
            account = self._access.account(shown.key)
            if account is None:  # the key has just expired
                return _NO_KEY
            scope[ACCOUNT] = account
            denial = _not_for(account, scope, rule, origins)
        return denial or self._use(shown)

    def _use(self, shown: Shown) -> tuple[int, str, str] | None:
        """Use a token up, if one for a single use was shown. Return a denial if that cannot be."""
        try:
            return None if self._tokens.use(shown) else _NO_KEY
        except OSError as error:  # no space left, for example: it must not be used twice
            event(log, logging.ERROR, "token.not_used", why=str(error))
            return _CANNOT_USE

    @property
    def _closed(self) -> bool:
        """Whether a key is needed."""
        return bool(self._keys) or self._access is not None

    def _shown(
        self, offered: list[bytes], scope: Scope, rule: PathRule, origins: list[str]
    ) -> Shown | None:
        """Return the valid key that was shown, or the key of the token that was shown."""
        key = self._known(offered)
        if key is not None:
            scope[MINT] = partial(self._tokens.mint, key)
            return Shown(key)
        allowed = rule.token_methods
        if allowed is not None and scope.get("method") not in allowed:
            return None
        found = (self._tokens.read(token, origins) for token in offered)
        return next((shown for shown in found if shown is not None), None)

    def _origin_allowed(self, origin: str, hosts: list[str]) -> bool:
        if origin.lower() in self._origins or "*" in self._origins:
            return True
        try:
            parts = urlsplit(origin)
        except ValueError:  # such as http://[, which no browser sends
            return False
        own = len(hosts) == 1 and parts.netloc.lower() == hosts[0].lower() != ""
        # A page can make its own host name resolve to 127.0.0.1 and then has "our" host: on a
        # server that only this machine reaches, the name must be this machine's as well.
        return own and (not self._loopback or is_loopback(parts.hostname or ""))

    def _known(self, offered: Iterable[bytes]) -> bytes | str | None:
        """Return the digest of the server's key among the offers, or the id of a customer's; empty
        if no key is needed. Every offer is compared with all of the server's keys, and a customer's
        with the one it names, so that the time taken reveals nothing."""
        if not self._closed:
            return b""
        digests = [_digest(key) for key in offered]
        matches = [
            known
            for digest in digests
            for known in self._keys
            if hmac.compare_digest(digest, known)
        ]
        if matches:
            return matches[0]
        accounts = map(self._access.account_of, offered) if self._access is not None else ()
        return next((account.id for account in accounts if account is not None), None)

    async def _deny(self, scope: Scope, send: Send, status: int, code: str, message: str) -> None:
        self._metrics.refused.labels(code).inc()
        scope[REFUSED] = code
        client, path = scope.get("client"), scope["path"]
        if status != 429:
            event(log, logging.WARNING, "refused", code=code, path=path, client=client)
        elif count := self._addresses.of(client).refused(time.monotonic()):
            event(log, logging.WARNING, "address.refused", code=code, client=client, count=count)
        if status == 429:
            send = partial(send_retry_after, send)
        await self._rule_for(path).deny(scope, send, status, code, message)

    def _rule_for(self, path: str) -> PathRule:
        found = (rule for prefix, rule in self._rules.items() if path.startswith(prefix))
        return next(found, _NATIVE)


def _not_for(
    account: KeyAccount, scope: Scope, rule: PathRule, origins: list[str]
) -> tuple[int, str, str] | None:
    """Return why a customer's key, which is valid, may not do this."""
    own = {origin.lower() for origin in account.key.origins}
    if own and not all(origin.lower() in own for origin in origins):
        return 403, "origin_not_allowed", "this key is not for pages of this origin"
    allowed = rule.open_methods
    if allowed is None or account.is_admin or scope.get("method") in allowed:
        return None
    return 403, "admin_only", "this is for the server's own keys, and for keys with `admin`"


def account_of(scope: Scope) -> Account:
    """Return the account of a request that passed the gate."""
    found: Account = scope.get(ACCOUNT, FREE)
    return found


_NATIVE = PathRule(send_denial)


def echoed_subprotocol(scope: Scope) -> str | None:
    """Return the subprotocol to accept from clients of other APIs: the first offer that is no key.

    Browsers close a socket that accepts none of their offers.
    """
    secret = {offer for offer, _ in _subprotocol_keys(scope)}
    return next((offer for offer in scope.get("subprotocols", ()) if offer not in secret), None)


def _keys_offered(scope: Scope, query_keys: Collection[str]) -> Iterator[bytes]:
    for name, value in scope["headers"]:
        if name == b"authorization":
            kind, _, key = value.partition(b" ")
            if kind.lower() in (b"bearer", b"token"):
                yield key.strip()
        elif name in _KEY_HEADERS:
            yield value.strip()
    if query_keys:
        for parameter, text in parse_qsl(scope["query_string"].decode("latin-1")):
            if parameter in query_keys:
                yield text.encode()
    for _, subprotocol_key in _subprotocol_keys(scope):
        yield subprotocol_key.encode()


def _subprotocol_keys(scope: Scope) -> Iterator[tuple[str, str]]:
    """Yield the offered subprotocols that hold a key, with the key: ours, or after `token`."""
    offers = list(scope.get("subprotocols", ()))
    for offer in offers:
        if offer.startswith(KEY_SUBPROTOCOL_PREFIX):
            yield offer, offer.removeprefix(KEY_SUBPROTOCOL_PREFIX)
    if len(offers) > 1 and offers[0].lower() in _KEY_FOLLOWS:
        yield offers[1], offers[1]


def _digest(key: bytes) -> bytes:
    """Return a digest, for comparisons of equal length, and to keep keys out of memory dumps."""
    return hashlib.sha256(key).digest()
