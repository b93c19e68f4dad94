"""The servers that `make test-clients` lends to one client's tests after another's."""

from __future__ import annotations

import contextlib
import sys
import urllib.error
from collections.abc import Iterator
from functools import partial
from typing import Any

import psutil
import pytest
from websockets.sync.client import connect
from websockets.typing import Subprotocol

from tests.clients.kinds import LENDER_VARIABLE, lent
from tests.clients.lending import Lender, lending
from tests.clients.serving import Server, serving

STARTS: list[str] = []


@contextlib.contextmanager
def fake(**options: Any) -> Iterator[Server]:
    with serving("--engine", "fake", **options) as found:
        STARTS.append(found.url)
        yield found


KINDS = {
    "open": fake,
    "keyed": partial(fake, api_key="a-key-for-the-tests"),
    "wanted": fake,
    "broken": partial(serving, "--engine", "none-such"),
}


@pytest.fixture(scope="module")
def lender() -> Iterator[Lender]:
    """One for all tests, as for a run of all clients."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("REALTIME_TTS_PYTHON", sys.executable)
        with lending(kinds=KINDS, settle_seconds=0.5) as found:
            patched.setenv(LENDER_VARIABLE, found.url)
            yield found


def test_a_server_is_started_when_it_is_asked_for_and_lent_again(lender: Lender) -> None:
    before = len(STARTS)
    with lent("wanted") as first:
        assert first.value("tts_sessions") == 0
    assert lender.take_back() == []
    with lent("wanted") as again, lent("keyed") as other:
        assert again == first
        assert other.api_key == "a-key-for-the-tests" and other.value("tts_sessions") == 0
    assert STARTS[before] == first.url and STARTS[before + 1 :] in ([], [other.url])


def test_a_server_that_was_killed_is_told_of_and_replaced(lender: Lender) -> None:
    keyed, first = lender.lend("keyed"), lender.lend("open")
    victim = psutil.Process(first.pid)
    victim.kill()
    victim.wait()
    (fault,) = lender.take_back()
    assert "the open server" in fault and "refused" in fault
    assert lender.lend("keyed") == keyed
    other = lender.lend("open")
    assert other != first and other.value("tts_sessions") == 0
    assert lender.take_back() == []


def test_a_session_that_was_left_open_is_told_of_and_left_to_nobody(lender: Lender) -> None:
    with lent("open") as first:
        address = f"{first.websocket_url}/v1/tts"
    with connect(address, subprotocols=[Subprotocol("realtime-tts.v1")], proxy=None) as left:
        left.recv()
        (fault,) = lender.take_back()
    assert "tts_sessions is 1.0, expected 0.0" in fault
    with lent("open") as other:
        assert other.value("tts_sessions") == 0


def test_whoever_asks_for_a_server_that_does_not_start_is_told_why(lender: Lender) -> None:
    for _ in range(2):
        with pytest.raises(AssertionError, match="did not start:(.|\n)*none-such"), lent("broken"):
            pass
    with pytest.raises(AssertionError, match="no kind 'none'; there are: open"), lent("none"):
        pass
    with lent("open") as other:
        assert other.value("tts_sessions") == 0
    assert lender.take_back() == []


def test_nothing_is_left_at_the_end_and_nothing_more_is_lent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("REALTIME_TTS_PYTHON", sys.executable)
    with lending(kinds=KINDS) as lender:
        server = lender.lend("open")
        assert server.value("tts_sessions") == 0
    with pytest.raises(urllib.error.URLError, match="refused"):
        server.metrics()
    with pytest.raises(AssertionError, match="the run is over"):
        lender.lend("open")
