"""The blocking client is the asyncio client, with calls that wait."""

from __future__ import annotations

import asyncio
import gc
import inspect
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from functools import partial
from operator import attrgetter
from typing import Any

import pytest

from realtime_tts import RealtimeTTS, Speech, SyncRealtimeTTS, SyncSpeech, SyncTurn, Turn
from realtime_tts.client.blocking import _Loop
from realtime_tts.errors import ClientError, HandshakeRefused, RequestError
from tests.waiting import SECONDS, wait_until

TEXT = "The tide is coming in, and the boats are going out."


@pytest.fixture
def server(fake_server: str, key: str) -> Iterator[Any]:
    """Makes a client of a real server."""
    yield partial(SyncRealtimeTTS, fake_server, api_key=key)


@pytest.mark.parametrize(
    ("blocking", "original"),
    [(SyncRealtimeTTS, RealtimeTTS), (SyncTurn, Turn), (SyncSpeech, Speech)],
)
def test_it_has_all_that_the_asyncio_client_has(blocking: type, original: type) -> None:
    def members(of: type) -> set[str]:
        return {name for name in dir(of) if not name.startswith("_")} - {"url"}

    assert members(blocking) == members(original)
    for name in members(original):
        one, other = getattr(original, name), getattr(blocking, name)
        if callable(one) and name != "speak":  # which takes no async iterable
            assert list(inspect.signature(one).parameters) == list(
                inspect.signature(other).parameters
            )


def test_a_text_is_spoken(server: Any) -> None:
    with server(voice="alto", lead_ms=30_000) as tts:
        assert tts.connected and tts.ready.settings.voice == "alto"
        speech = tts.speak(TEXT)
        made = b"".join(speech)
        assert speech.result.reason == "complete" and speech.turn.text == TEXT
        assert len(made) == 2 * speech.result.samples > 24_000
        assert b"".join(tts.speak([TEXT[:9], "", TEXT[9:]])) == made, "the next turn, in pieces"
        assert list(tts.speak([])) == []
    assert not tts.connected
    with pytest.raises(ClientError, match="closed"):
        tts.turn()
    tts.close()


def test_a_delta_without_content_does_not_end_the_text(server: Any) -> None:
    """As a chunk of a language model's stream that brings only a role."""
    with server() as tts:
        speech = tts.speak([None, TEXT])
        assert b"".join(speech) and speech.turn.text == TEXT


def test_packets_come_while_the_text_is_still_being_written(server: Any) -> None:
    heard = threading.Event()

    def deltas() -> Iterator[str]:
        yield "These words are known already. "
        assert heard.wait(SECONDS), "would wait for ever if packets came only at the end"
        yield "And these follow."

    with server() as tts:
        for _ in (speech := tts.speak(deltas())):
            heard.set()
        assert speech.result.reason == "complete"


def test_a_turn_is_interrupted_from_another_thread(server: Any) -> None:
    with server(lead_ms=500) as tts:
        turn = tts.turn()
        turn.send(20 * TEXT, end=True)
        assert len(next(turn)) > 0
        report: list[Any] = []
        thread = threading.Thread(target=lambda: report.append(turn.interrupt(40.0)))
        thread.start()
        left = list(turn)
        thread.join(SECONDS)
        assert report and report[0].played_ms == 40.0 and turn.result.reason == "interrupted"
        assert len(left) < 40 and turn.over
        assert [len(packet) for packet in tts.speak("Again.")], "the session goes on"


def test_leaving_the_loop_interrupts(server: Any) -> None:
    with server(lead_ms=500) as tts:
        for _ in (speech := tts.speak(iter([20 * TEXT]))):
            break
        wait_until(lambda: speech.turn.over)
        assert speech.result.reason == "interrupted"


def test_leaving_the_loop_or_the_block_interrupts_a_turn(server: Any) -> None:
    with server(lead_ms=500) as tts:
        turn = tts.turn()
        turn.send(20 * TEXT, end=True)
        for _ in turn:
            break
        assert turn.interrupt(40.0).played_ms == 40.0, "the position counts, though it comes later"
        with tts.turn() as turn:
            turn.send(20 * TEXT, end=True)
            next(turn)
        assert turn.interrupt().text_remaining and turn.result.reason == "interrupted"
        with tts.turn() as turn:
            turn.send("One.", end=True)
            assert list(turn)
        assert turn.result.reason == "complete"


def test_ctrl_c_in_the_wait_for_a_packet_leaves_the_loop(server: Any) -> None:
    heard, over = threading.Event(), threading.Event()

    def deltas() -> Iterator[str]:
        yield TEXT
        heard.wait(SECONDS)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        over.wait(SECONDS)

    with server() as tts:
        speech = tts.speak(deltas())
        with pytest.raises(KeyboardInterrupt):
            for _ in speech:
                heard.set()
        assert TEXT.startswith(speech.turn.interrupt().text_spoken), "the client can go on"
        over.set()
        assert b"".join(tts.speak("One."))


def test_an_error_in_the_text_source_comes_out_of_the_loop(server: Any) -> None:
    def broken() -> Iterator[str]:
        yield "Some words. "
        raise ZeroDivisionError("the model failed")

    with server() as tts, pytest.raises(ZeroDivisionError, match="the model failed"):
        for _ in tts.speak(broken()):
            pass


def test_a_text_source_that_ends_its_thread_ends_the_speech(server: Any) -> None:
    def deltas() -> Iterator[str]:
        yield "Half a sen"
        raise SystemExit(3)

    with server() as tts, pytest.raises(ClientError, match=r"ended with SystemExit\(3\)"):
        for _ in tts.speak(deltas()):
            pass


def test_errors_are_those_of_the_asyncio_client(fake_server: str, server: Any) -> None:
    with pytest.raises(HandshakeRefused), SyncRealtimeTTS(fake_server, api_key="wrong"):
        pytest.fail("it has let us in")
    with server() as tts, pytest.raises(RequestError, match="nobody"):
        tts.configure(voice="nobody")


def test_closing_ends_what_waits_in_other_threads(server: Any) -> None:
    with server(lead_ms=500) as tts:
        turn = tts.turn()
        turn.send("And then")  # more text would follow
        heard, failures = threading.Event(), list[BaseException]()

        def listen() -> None:
            try:
                for _ in turn:
                    heard.set()
            except ClientError as error:  # ConnectionLost, unless it was not waiting just then
                failures.append(error)

        thread = threading.Thread(target=listen)
        thread.start()
        assert heard.wait(SECONDS)
        tts.close()
        thread.join(SECONDS)
        assert failures and not thread.is_alive()
        with pytest.raises(ClientError, match="closed"):
            next(turn)


def test_work_that_comes_while_the_client_closes_is_refused() -> None:
    loop = _Loop()

    async def resolve() -> None:  # as an address is looked up, in a thread that nothing can end
        asyncio.get_running_loop().run_in_executor(None, time.sleep, 1.0)

    loop.wait(resolve())
    failures = list[Exception]()

    def late() -> None:
        try:
            loop.wait(asyncio.sleep(60))
        except Exception as error:
            failures.append(error)

    begun = threading.Thread(target=late, daemon=True)
    begun.start()
    closing = threading.Thread(target=loop.close)
    closing.start()
    time.sleep(0.2)
    assert closing.is_alive()
    while_closing = threading.Thread(target=late, daemon=True)
    while_closing.start()
    for thread in (closing, begun, while_closing):
        thread.join(SECONDS)
        assert not thread.is_alive()
    assert [type(each) for each in failures] == [ClientError, ClientError]


def test_a_loop_that_is_collected_in_the_clients_own_thread_is_left(server: Any) -> None:
    """Garbage is collected in whichever thread makes the last of it."""
    with server(lead_ms=500) as tts:
        speech = tts.speak(20 * TEXT)
        cycle: list[Any] = [iter(speech)]
        cycle.append(cycle)
        next(cycle[0])
        gc.disable()
        try:
            del cycle
            tts._loop._loop.call_soon_threadsafe(gc.collect)
            wait_until(lambda: speech.turn.over, 10.0)
        finally:
            gc.enable()
        assert speech.result.reason == "interrupted"


def test_a_source_that_outlives_its_client_ends_quietly(server: Any) -> None:
    go_on = threading.Event()

    def deltas() -> Iterator[str]:
        yield TEXT
        go_on.wait(SECONDS)
        yield TEXT

    with server() as tts:
        next(iter(tts.speak(deltas())))
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        go_on.set()
        wait_until(
            lambda: "realtime-tts text" not in map(attrgetter("name"), threading.enumerate())
        )
    assert not warned


def test_a_program_ends_that_left_a_loop_and_its_client_open(fake_server: str, key: str) -> None:
    program = (
        "from realtime_tts import SyncRealtimeTTS\n"
        f"tts = SyncRealtimeTTS({fake_server!r}, api_key={key!r})\n"
        f"packets = iter(tts.speak({TEXT!r}))\n"
        "next(packets)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=30)


def test_nothing_is_left_behind(server: Any) -> None:
    before = threading.active_count()
    for _ in range(3):
        with server() as tts:
            next(iter(tts.speak(TEXT)))
    wait_until(lambda: threading.active_count() <= before)
    assert threading.active_count() == before
