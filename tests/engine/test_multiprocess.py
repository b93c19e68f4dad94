"""The engine in a process of its own: the same events as inline, and what happens when it ends."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import signal
import socket
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from realtime_tts.engine import wire
from realtime_tts.engine.addresses import Addresses
from realtime_tts.engine.child import HEARTBEAT_SECONDS
from realtime_tts.engine.fake import FakeEngine, FakeEngineConfig
from realtime_tts.engine.in_process import InProcessEngine
from realtime_tts.engine.interface import UtteranceSpec, check_spec
from realtime_tts.engine.link import (
    Append,
    Audio,
    Cancel,
    Ended,
    EngineLink,
    Event,
    Failed,
    Finish,
    Last,
    Open,
    Refused,
    Waits,
)
from realtime_tts.engine.multiprocess import MultiprocessEngine, Supervision
from realtime_tts.engine.pulse import Age
from realtime_tts.errors import RequestError
from realtime_tts.metrics import Metrics
from tests.engine.faulty import Faulty, files
from tests.waiting import until
from tts_scheduler import SchedulerConfig

QUICK = Supervision(
    hang_seconds=1.5, first_delay=0.05, max_restarts=3, stop_seconds=1.0, tick_seconds=0.05
)
SLOTS = SchedulerConfig(slots=16, max_start_wait=0.01, utilisation=1_000, codec_chunks=(1,))
"""A frame of sound at a time, so that a guard's last look at it does not depend on the clock."""


class Listener:
    """Collects the events of a link."""

    def __init__(self, link: EngineLink) -> None:
        self.events: list[Event] = []
        self._link = link

    def of(self, id: str) -> list[Event]:
        return [event for event in self.events if event.id == id]

    def speak(self, id: str, tokens: int, **spec: object) -> None:
        text = Append(id, list(range(tokens)))
        self._link.submit(Open(id, UtteranceSpec(**spec)), text, Finish(id))  # type: ignore[arg-type]

    async def over(self, id: str) -> Event:
        await until(lambda: any(isinstance(e, Last) for e in self.of(id)))
        return self.of(id)[-1]

    def summary(self, id: str) -> list[object]:
        """The utterance's events but for the engine's name and what the clock decides: packets are
        one sound, and how much of a silence without end was made before the guard saw it."""
        events = self.of(id)
        sound = b"".join(event.pcm for event in events if isinstance(event, Audio))
        rest = [event for event in events if not isinstance(event, Audio | Waits)]
        differs: dict[str, object] = {"held_seconds": 0.0, "seconds": 0.0, "engine": ""}
        if id == "runaway":
            differs["frames"] = 0
        return [
            sound.rstrip(b"\0"),
            *(
                {name: getattr(event, name) for name in event.__struct_fields__} | differs
                for event in rest
            ),
        ]


@contextlib.asynccontextmanager
async def started(link: EngineLink) -> AsyncIterator[Listener]:
    listener = Listener(link)
    link.start(listener.events.extend)
    try:
        await until(lambda: link.status().ready or link.status().failure)
        yield listener
    finally:
        await link.stop()


def process(load: Faulty | None = None, **options: object) -> MultiprocessEngine:
    settings: dict[str, object] = {"supervision": QUICK} | options
    return MultiprocessEngine(load or Faulty(), SLOTS, **settings)  # type: ignore[arg-type]


async def scenario(link: EngineLink) -> dict[str, list[object]]:
    """A bit of everything; what was heard, by utterance."""
    async with started(link) as heard:
        heard.speak("plain", 8)
        heard.speak("voice", 5, voice="soprano", layout="full_text")
        heard.speak("numerics", 5)
        heard.speak("runaway", 3)
        heard.speak("wrong", 3, voice="nobody")
        heard.speak("empty", 0)
        link.submit(Open("piecewise", UtteranceSpec(layout="streaming")), Append("piecewise", [1]))
        link.submit(Append("piecewise", [2, 3]))
        link.submit(Append("nobody", [2, 3]))
        link.submit(Finish("piecewise"))
        ids = ("plain", "voice", "numerics", "runaway", "wrong", "empty", "piecewise")
        for id in ids:
            await heard.over(id)
        return {id: heard.summary(id) for id in ids}


async def test_the_events_are_those_of_the_inline_engine() -> None:
    inline = await scenario(InProcessEngine(Faulty(), SLOTS))
    # Nothing hangs here, and a machine that stands still for two seconds is no reason to end it.
    patient = process(supervision=replace(QUICK, hang_seconds=60.0))
    assert await scenario(patient) == inline
    assert inline["plain"][0] and inline["numerics"][-1]["code"] == "numerics"  # type: ignore[index]


async def test_the_front_checks_settings_as_the_engine_does() -> None:
    engine = FakeEngine()
    for spec in (
        UtteranceSpec(),
        UtteranceSpec(voice="Alto", language="English"),
        UtteranceSpec(voice="nobody"),
        UtteranceSpec(language="klingon"),
    ):
        verdicts = []
        for check in (engine.check, lambda spec: check_spec(engine.info, spec)):
            try:
                verdicts.append(check(spec) is None)
            except RequestError:
                verdicts.append(False)
        assert verdicts[0] == verdicts[1], spec


async def test_a_cancelled_utterance_falls_silent() -> None:
    link = process()
    async with started(link) as heard:
        heard.speak("a", 500)
        await until(lambda: len(heard.of("a")) > 3)
        link.submit(Cancel("a"))
        heard.speak("b", 2)
        await heard.over("b")
        count = len(heard.of("a"))
        heard.speak("c", 2)
        await heard.over("c")
        assert len(heard.of("a")) == count and link.open_utterances == 0


@pytest.mark.parametrize("how", ["kill", "segv", "raise"])
async def test_turns_of_an_engine_that_dies_fail_and_the_next_one_speaks(how: str) -> None:
    metrics = Metrics()
    link = process(observer=metrics, supervision=replace(QUICK, hang_seconds=120.0))
    async with started(link) as heard:
        for number in range(4):
            heard.speak(f"turn-{number}", 400)
        await until(lambda: all(heard.of(f"turn-{number}") for number in range(4)))
        died = time.monotonic()
        if how == "kill":
            os.kill(link.pid or 0, signal.SIGKILL)
        for attempt in range(3 if how == "raise" else 1):
            heard.speak(f"{how}-{attempt}", 2)
            if how == "raise":
                await heard.over(f"raise-{attempt}")
        ends = [await heard.over(f"turn-{number}") for number in range(4)]
        assert time.monotonic() - died < 20
        codes = {end.code for end in ends if isinstance(end, Failed) and end.retryable}
        assert codes == ({"engine_error"} if how == "raise" else {"engine_restarted"})
        assert not link.status().ready or link.open_utterances == 0
        await until(lambda: not link.status().ready)
        heard.speak("meanwhile", 2)
        meanwhile = await heard.over("meanwhile")
        assert isinstance(meanwhile, Refused) and meanwhile.code == "engine_unavailable"
        await until(lambda: link.status().ready)
        heard.speak("again", 3)
        assert isinstance(await heard.over("again"), Ended)
        assert metrics.registry.get_sample_value("tts_engine_restarts_total") == 1


@pytest.mark.parametrize("how", ["sleeps", "stopped"])
async def test_an_engine_that_hangs_is_killed_and_started_again(how: str) -> None:
    link = process()
    async with started(link) as heard:
        first = link.pid
        heard.speak("hang" if how == "sleeps" else "a", 400)
        if how == "stopped":
            os.kill(first or 0, signal.SIGSTOP)
        failed = await heard.over("hang" if how == "sleeps" else "a")
        assert isinstance(failed, Failed) and failed.code == "engine_restarted"
        await until(lambda: link.status().ready)
        assert link.pid != first and not psutil.pid_exists(first or 0)
        heard.speak("again", 3)
        assert isinstance(await heard.over("again"), Ended)


async def test_a_turn_that_waits_for_text_fails_with_its_engine_as_well() -> None:
    link = process()
    async with started(link) as heard:
        link.submit(Open("held", UtteranceSpec(layout="streaming")), Append("held", [1, 2]))
        await until(lambda: any(isinstance(event, Waits) for event in heard.of("held")))
        os.kill(link.pid or 0, signal.SIGKILL)
        failed = await heard.over("held")
        assert isinstance(failed, Failed) and failed.code == "engine_restarted"


async def test_an_idle_engine_does_not_count_as_hung(monkeypatch: pytest.MonkeyPatch) -> None:
    link = process(supervision=replace(QUICK, hang_seconds=1.2))
    async with started(link):
        first, heartbeats = link.pid, 0
        hear = link._health.heard

        def heard(message: wire.Up) -> None:
            nonlocal heartbeats
            heartbeats += isinstance(message, wire.Heartbeat)
            hear(message)

        monkeypatch.setattr(link._health, "heard", heard)
        await until(lambda: heartbeats * HEARTBEAT_SECONDS > 1.5)
        assert link.pid == first and link.status().ready


def test_a_pause_of_the_whole_process_is_not_held_against_its_loop() -> None:
    """Whichever of its threads comes first afterwards: the clock alone says that the loop hangs."""
    age = Age(0.5)
    assert age.at(10.2, 10.0) == pytest.approx(0.2)
    assert age.at(70.7, 10.0) <= 1.0  # a pause; the loop has not run yet
    assert age.at(71.2, 70.8) == pytest.approx(0.4)
    for number in range(1, 41):
        assert age.at(71.2 + number * 0.5, 70.8) <= 0.4 + number * 0.5 + 1e-9
    assert age.at(92.0, 70.8) > 20.0  # but a loop that hangs is found


async def test_an_engine_lives_through_a_pause_of_the_whole_server() -> None:
    link = process()
    async with started(link) as heard:
        first = link.pid
        for number in range(2):
            os.kill(first or 0, signal.SIGSTOP)
            time.sleep(QUICK.hang_seconds + 0.3)  # noqa: ASYNC251 -- the front is paused, too
            os.kill(first or 0, signal.SIGCONT)
            heard.speak(f"after-{number}", 3)
            assert isinstance(await heard.over(f"after-{number}"), Ended)
            await asyncio.sleep(HEARTBEAT_SECONDS)
        assert link.pid == first


async def test_an_engine_that_dies_again_and_again_is_given_up() -> None:
    link = process()
    async with started(link) as heard:
        for number in range(QUICK.max_restarts + 1):
            await until(lambda: link.status().ready)
            heard.speak(f"segv-{number}", 2)
            await heard.over(f"segv-{number}")
        await until(lambda: link.status().failure)
        assert "SIGSEGV" in str(link.status().failure)
        heard.speak("after", 2)
        assert isinstance(await heard.over("after"), Refused)


async def test_a_first_load_that_fails_is_final_and_says_why() -> None:
    link = process(Faulty(refuse="torch cannot use the device 'nonsense'"))
    async with started(link):
        assert link.status().failure == "torch cannot use the device 'nonsense'"


async def test_a_later_load_that_fails_is_tried_again(tmp_path: Path) -> None:
    marker = tmp_path / "loaded"
    told: list[Addresses | None] = []
    link = process(Faulty(once=marker), on_addresses=told.append)
    async with started(link):
        os.kill(link.pid or 0, signal.SIGKILL)
        await until(lambda: told.count(None) == 2)  # the end of the next process, too
        assert not link.status().ready and link.status().failure is None
        marker.unlink()
        await until(lambda: link.status().ready)


async def test_stopping_ends_turns_properly_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    link = process()
    async with started(link) as heard:
        pid = link.pid or 0
        assert files(tmp_path)
        heard.speak("a", 400)
        await until(lambda: len(heard.of("a")) > 2)
        await link.stop()
        last = heard.of("a")[-1]
        assert isinstance(last, Failed) and last.code == "engine_stopped"
    assert not psutil.pid_exists(pid)
    assert not files(tmp_path)


async def test_a_hung_engine_cannot_hold_up_the_end() -> None:
    link = process(supervision=replace(QUICK, hang_seconds=60.0))
    async with started(link) as heard:
        pid = link.pid or 0
        heard.speak("hang", 3)
        await until(lambda: link.status().last_step_age > 0.6)
        begun = time.monotonic()
        await link.stop()
        assert time.monotonic() - begun < 30
        assert isinstance(await heard.over("hang"), Failed)
    assert not psutil.pid_exists(pid)


async def test_an_engine_that_still_loads_stops_at_once() -> None:
    link = process(supervision=replace(QUICK, stop_seconds=60.0))
    link.start(lambda events: None)
    await until(lambda: link.pid is not None)
    pid, begun = link.pid or 0, time.monotonic()
    await link.stop()
    assert time.monotonic() - begun < 30 and not psutil.pid_exists(pid)


async def test_signals_to_the_whole_group_are_the_fronts_business() -> None:
    link = process()
    async with started(link) as heard:
        assert os.getpgid(link.pid or 0) != os.getpgid(0)
        os.kill(link.pid or 0, signal.SIGINT)
        os.kill(link.pid or 0, signal.SIGTERM)
        heard.speak("a", 3)
        assert isinstance(await heard.over("a"), Ended)


async def test_logs_prints_and_progress_come_to_the_front(caplog: pytest.LogCaptureFixture) -> None:
    progress: list[tuple[str, int, int]] = []
    link = process(progress=lambda *stage: progress.append(stage))
    with caplog.at_level(logging.INFO):
        async with started(link) as heard:
            heard.speak("log", 2)
            heard.speak("print", 2)
            await heard.over("log")
            await heard.over("print")
            heard.speak("raise", 2)
            assert isinstance(await heard.over("raise"), Failed)
            await until(lambda: any(r.message == "engine.output" for r in caplog.records))
    assert progress[0] == ("load", 1, 2)
    said = next(r for r in caplog.records if r.name == "faulty")
    assert (said.message, said.fields) == ("said", {"rows": 1})  # type: ignore[attr-defined]
    failed = next(r for r in caplog.records if r.message == "engine.step_failed")
    assert "device lost, injected" in str(failed.exc_text)
    printed = next(r for r in caplog.records if r.message == "engine.output")
    assert printed.fields["line"] == "printed by a library"  # type: ignore[attr-defined]


async def test_an_engine_that_cannot_hear_any_more_ends_and_is_started_again() -> None:
    link = process()
    async with started(link) as heard:
        first, child = link.pid, link._process
        link.submit(Open("held", UtteranceSpec()), Append("held", [1, 2, 3]))
        await until(lambda: heard.of("held"))
        assert child is not None
        child.channel._stream.send(b"\xc1 this is no message")
        failed = await heard.over("held")
        assert isinstance(failed, Failed) and failed.retryable
        await until(lambda: link.status().ready and link.pid != first)
        heard.speak("again", 3)
        assert isinstance(await heard.over("again"), Ended)


async def test_a_message_that_cannot_be_taken_keeps_nothing_from_the_next(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Several come in one piece."""
    told: list[int] = []

    def progress(what: str, done: int, total: int) -> None:
        told.append(done)
        if len(told) == 1:
            raise BrokenPipeError("nobody reads the progress")

    link = process(progress=progress)
    async with started(link) as heard:
        heard.speak("a", 3)
        assert isinstance(await heard.over("a"), Ended)
    assert len(told) > 1
    failures = [record for record in caplog.records if record.levelno > logging.INFO]
    assert [record.message for record in failures] == ["engine.message_lost"]


async def test_metrics_count_the_steps_of_the_other_process() -> None:
    metrics = Metrics()
    async with started(process(observer=metrics)) as heard:
        heard.speak("a", 4)
        heard.speak("runaway", 2)
        assert isinstance(await heard.over("a"), Ended)
        ended = await heard.over("runaway")
        assert isinstance(ended, Ended) and ended.reason == "guard_silence"
        value = metrics.registry.get_sample_value
        assert value("tts_engine_prefills_total") == 2
        assert (value("tts_engine_frames_total") or 0) >= 12 + 6
        assert value("tts_guard_stops_total", {"reason": "guard_silence"}) == 1


FRONT = """
import asyncio, sys, time
from realtime_tts.engine.multiprocess import MultiprocessEngine
from realtime_tts.engine.load import engine_loader
from realtime_tts.engine.settings import EngineConfig

async def main():
    config = EngineConfig(kind="fake")
    link = MultiprocessEngine(engine_loader(config), config.scheduler)
    link.start(lambda events: None)
    while not link.status().ready:
        await asyncio.sleep(0.01)
    print(link.pid, flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""


async def test_a_front_that_cannot_make_a_socket_tries_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Out of file descriptors, for example, which a front with many clients can be for a while."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    link = process()
    async with started(link):
        connect, failed = socket.socket.connect, asyncio.Event()

        def refused(self: socket.socket, path: str) -> None:
            if failed.is_set():
                return connect(self, path)
            failed.set()
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

        monkeypatch.setattr(socket.socket, "connect", refused)
        assert link.pid is not None
        os.kill(link.pid, signal.SIGKILL)
        await failed.wait()
        await until(lambda: link.status().ready)
        assert len({file.parent for file in files(tmp_path)} - {tmp_path}) == 1  # of what runs
    assert not files(tmp_path)


async def test_an_engine_does_not_outlive_its_front(tmp_path: Path) -> None:
    front = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        FRONT,
        stdout=asyncio.subprocess.PIPE,
        env=os.environ | {"TMPDIR": str(tmp_path)},
    )
    assert front.stdout is not None
    pid = int(await front.stdout.readline())
    assert psutil.pid_exists(pid) and files(tmp_path)
    front.kill()
    await front.communicate()
    await until(lambda: not psutil.pid_exists(pid) or zombie(pid))
    await until(lambda: not files(tmp_path))


def zombie(pid: int) -> bool:
    """Ended, and nobody has asked for its status: where no init process does."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    return True


def test_a_loader_that_cannot_travel_is_refused_at_once() -> None:
    with pytest.raises(Exception, match="pickle|local"):
        MultiprocessEngine(lambda progress: FakeEngine(FakeEngineConfig()), SLOTS)
