"""A blocking client of a server's own routes over plain HTTP, for voices and lexicons."""

from __future__ import annotations

from http.client import HTTPException, IncompleteRead
from typing import Any, ClassVar
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import OpenerDirector, Request

from realtime_tts.client.address import http_url
from realtime_tts.client.arguments import check_seconds
from realtime_tts.client.refusals import http_error
from realtime_tts.client.trust import http_opener, key_header, trust_for
from realtime_tts.client.unanswered import misunderstood, no_answer, unanswered
from realtime_tts.errors import HandshakeRefused, RequestError
from realtime_tts.protocol.parsing import ProtocolError, load_object
from realtime_tts.version import __version__

_MAX_ANSWER = 16 * 1024 * 1024


class HttpClient:
    """Makes requests to `path` and the paths below it.

    `server`, `api_key` and `tls_ca` are as `RealtimeTTS` takes them; `timeout` is in seconds,
    `patience` if it is not given.

    Every method raises RequestError for what the server refuses, OverloadedError if it says when to
    try again, HandshakeRefused if it does not let the client in or does not answer. A key that
    cannot be sent is a ConfigError at once.
    """

    path: ClassVar[str]
    patience: ClassVar[float] = 60.0
    """Seconds to wait by default."""

    def __init__(
        self,
        server: str,
        *,
        api_key: str | None = None,
        tls_ca: str | None = None,
        timeout: float | None = None,
    ) -> None:
        self._server = server
        self._trust = trust_for(http_url(server, ""), tls_ca)
        self._key_header = key_header(api_key)
        self._timeout = self.patience if timeout is None else timeout
        check_seconds("timeout", self._timeout)

    def _json(
        self, method: str, path: str, body: bytes | None = None, kind: str | None = None
    ) -> dict[str, Any]:
        answer = self._request(method, path, body, kind)
        try:
            return load_object(answer.decode())
        except (ProtocolError, UnicodeDecodeError):
            text = f"{self._server} did not answer as a realtime-tts server"
            raise HandshakeRefused(text) from None

    def _request(
        self, method: str, path: str, body: bytes | None = None, kind: str | None = None
    ) -> bytes:
        url = http_url(self._server, self.path + path)
        headers = {"User-Agent": f"realtime-tts/{__version__}"}
        headers |= {"Content-Type": kind} if kind else {}
        headers |= self._key_header
        opener = http_opener(url, self._trust)
        request = Request(url, body, headers, method=method)
        try:
            with _answer(opener, request, self._timeout) as answer:
                found: bytes = answer.read(_MAX_ANSWER)
                status, location = answer.status, answer.headers["Location"]
                if answer.length and 200 <= status < 300:  # which read() does not mind
                    raise IncompleteRead(found, answer.length)
        except IncompleteRead:
            raise unanswered(url, OSError("its answer broke off")) from None
        except HTTPException as error:
            raise misunderstood(url, "an HTTP server", error) from None
        except OSError as error:
            why = error.reason if isinstance(error, URLError) else error
            if isinstance(why, TimeoutError):
                raise no_answer(url, self._timeout) from None
            raise unanswered(url, why if isinstance(why, OSError) else error) from None
        if not 200 <= status < 300:
            raise http_error(url, status, found, location=location, request=True)
        return found


def _answer(opener: OpenerDirector, request: Request, timeout_s: float) -> Any:
    """Return the answer, whatever its status."""
    try:
        return opener.open(request, timeout=timeout_s)
    except HTTPError as error:
        return error


def quoted(name: str) -> str:
    """Escape a name for use in a path. Raises RequestError if it is empty: the path would be that
    of all names."""
    if not name:
        raise RequestError("the name is empty; it must have at least one character")
    return quote(name, safe="", errors="replace")
