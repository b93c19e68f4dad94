"""One refusal is the same error, whichever way it came."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from realtime_tts.client.lexicons import LexiconClient
from realtime_tts.client.refusals import http_error, session_error, turn_error
from realtime_tts.errors import HandshakeRefused, OverloadedError, RequestError, TurnError
from realtime_tts.protocol.messages import ErrorMessage

URL = "http://127.0.0.1:8000/v1/voices"


def said(code: str, **more: Any) -> ErrorMessage:
    fields: dict[str, Any] = {"message": "what happened", "fatal": False, "retryable": False}
    return ErrorMessage(code=code, **(fields | more))


def body(code: str, **more: Any) -> bytes:
    fields = {"message": "what happened", "fatal": True, "retryable": False}
    return json.dumps({"type": "error", "code": code} | fields | more).encode()


@contextmanager
def answering(status: int, answer: bytes) -> Iterator[str]:
    """A server that refuses every request like this."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *args: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(("status", "code"), [(429, "key_limit_reached"), (503, "not_ready")])
def test_over_http_too_a_time_to_come_back_is_an_overload(status: int, code: str) -> None:
    with answering(status, body(code, retryable=True, retry_after_ms=2500)) as url:
        with pytest.raises(OverloadedError, match="what happened") as refused:
            LexiconClient(url).lexicons()
    assert (refused.value.retry_after, refused.value.server_code) == (2.5, code)
    assert refused.value.retryable


@pytest.mark.parametrize("code", ["overloaded", "key_limit_reached", "queue_full", "not_ready"])
def test_no_code_loses_the_time_to_come_back(code: str) -> None:
    refused = said(code, retryable=True, retry_after_ms=850)
    for error in (turn_error(refused), session_error(refused)):
        assert isinstance(error, OverloadedError), error
        assert (error.retry_after, error.server_code) == (0.85, code)


@pytest.mark.parametrize("again", [True, False])
def test_an_error_without_one_says_whether_the_same_again_may_work(again: bool) -> None:
    turn = turn_error(said("engine_error", retryable=again))
    assert isinstance(turn, TurnError) and turn.server_code == "engine_error"
    assert turn.retryable is turn.server_retryable is again
    session = session_error(said("internal", retryable=again))
    assert isinstance(session, RequestError) and session.retryable is again


def test_without_capacity_and_without_a_time_it_is_an_overload_for_a_moment() -> None:
    error = turn_error(said("overloaded", retryable=True))
    assert isinstance(error, OverloadedError) and error.retry_after == 1.0


@pytest.mark.parametrize("status", [400, 404, 409, 413])
def test_what_was_asked_for_may_be_wrong_in_a_request_and_not_in_a_handshake(status: int) -> None:
    error = http_error(URL, status, body("bad_request"), request=True)
    assert isinstance(error, RequestError) and str(error) == "what happened"
    error = http_error(URL, status, body("not_found"))
    assert isinstance(error, HandshakeRefused) and error.status == status


@pytest.mark.parametrize("status", [401, 403, 500, 503])
def test_who_asks_may_be_refused_in_both(status: int) -> None:
    for request in (True, False):
        error = http_error(URL, status, body("unauthorized"), request=request)
        assert isinstance(error, HandshakeRefused) and error.status == status
        assert URL in str(error) and f"what happened (HTTP {status})" in str(error)


@pytest.mark.parametrize("answer", [b"<html>nothing here</html>", b"\xff", b"", b'{"message": 3}'])
def test_what_no_such_server_says_is_not_repeated(answer: bytes) -> None:
    error = http_error(URL, 404, answer, request=True)
    assert isinstance(error, HandshakeRefused) and "no speech server" in str(error)
