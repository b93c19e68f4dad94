"""A child process: messages both ways, what it prints, and its end, whoever brings it about."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from realtime_tts.child_process import ChildProcess
from tests.waiting import SECONDS, wait_until

CHILD = '''
import os, sys, time


def echo(parent):
    """Sends back what it hears, and does what some messages ask for."""
    while True:
        match parent.receive():
            case b"print":
                print("one\\rtwo")
                sys.stderr.write("three\\n\\nfour")
                os.write(1, b"five\\n")
            case b"leave":
                return 3
            case b"break":
                raise ZeroDivisionError
            case b"describe":
                parent.send(f"{os.nice(0)} {os.environ.get('OMP_NUM_THREADS')}".encode())
            case message:
                parent.send(message)


def busy(parent):
    """Hears nothing more, says where it will have tidied up, and sends until nobody takes it."""
    file = parent.receive().decode()

    def tidy_up():
        time.sleep(0.2)
        open(file, "w").close()

    parent.listen(lambda message: None, at_end=tidy_up)
    parent.send(str(os.getpid()).encode())
    while True:
        parent.send(b"still here")

'''

BREAKS = """
import os, sys
sys.path.insert(0, sys.argv[1])
from realtime_tts.parent_process import run
run("a_breaking_child", False)
"""


def test_what_ends_a_child_is_printed_in_one_piece(tmp_path: Path) -> None:
    """Of several that end at once, each writes to the parent's standard error."""
    (tmp_path / "a_breaking_child.py").write_text(
        "def main(parent):\n    raise ZeroDivisionError\n"
    )
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)  # a message for each write
    with ours, theirs:
        ours.setblocking(False)
        command = [sys.executable, "-u", "-c", BREAKS, str(tmp_path)]
        ended = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=theirs.fileno()
        )
        assert ended.returncode == 1
        said = ours.recv(65_536).decode()
        assert said.startswith("Traceback") and said.endswith("ZeroDivisionError\n")
        with pytest.raises(BlockingIOError):
            ours.recv(65_536)


Start = Callable[..., Awaitable[ChildProcess]]


@pytest.fixture
async def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Start]:
    """Starts a child that runs one of the functions above."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    children = []

    async def start(main: str = "echo", **options: Any) -> ChildProcess:
        module = tmp_path / f"a_{main}_child.py"
        if not module.exists():  # another child may be reading it
            module.write_text(CHILD + f"\n\nmain = {main}\n")
        children.append(await ChildProcess.start(f"a_{main}_child", **options))
        return children[-1]

    yield start
    for child in children:
        await child.close()
        assert not psutil.pid_exists(child.pid)


async def test_messages_of_any_length_travel_both_ways(start: Start) -> None:
    child = await start()
    long = os.urandom(3_000_000)
    for message in (b"", b"a", long):
        sending = asyncio.create_task(child.send(message))
        assert await child.receive() == message
        await sending
    await child.send(b"in ", b"", b"pieces")
    assert await child.receive() == b"in pieces"


async def test_a_message_longer_than_is_wanted_is_not_read(start: Start) -> None:
    child = await start()
    await child.send(bytes(100))
    await child.send(bytes(101))
    assert len(await child.receive(most_bytes=100)) == 100
    with pytest.raises(ValueError, match="101 bytes, of at most 100"):
        await child.receive(most_bytes=100)


async def test_what_a_child_prints_comes_line_by_line_and_is_no_message(start: Start) -> None:
    lines: list[str] = []
    child = await start(output=lines.append)
    await child.send(b"print")
    await child.send(b"next")
    assert await child.receive() == b"next"
    await child.send(b"leave")
    await child.ended()
    await child.close()
    # A line without an end is joined by what comes next, as on a terminal.
    assert lines == ["one", "two", "three", "fourfive"]


async def test_the_end_of_a_child_is_told_and_messages_to_it_are_dropped(start: Start) -> None:
    leaves, breaks, killed, other = [await start(output=lambda line: None) for _ in range(4)]
    await leaves.send(b"leave")
    await breaks.send(b"break")
    killed.kill()
    os.kill(other.pid, signal.SIGRTMIN + 1)  # which has no name in Python
    for child, how in (
        (leaves, "ended with status 3"),
        (breaks, "ended with status 1"),
        (killed, "was ended by SIGKILL"),
        (other, f"was ended by signal {signal.SIGRTMIN + 1}"),
    ):
        assert await child.ended() == how
        assert not child.running
        await child.send(bytes(1_000_000))
        with pytest.raises(EOFError):
            await child.receive()


async def test_a_child_in_the_background_has_the_lowest_priority_and_one_thread(
    start: Start,
) -> None:
    for background, described in ((True, b"19 1"), (False, b"%d None" % os.nice(0))):
        child = await start(background=background)
        await child.send(b"describe")
        assert await child.receive() == described


async def test_signals_to_a_child_are_not_its_business(start: Start) -> None:
    child = await start()
    await child.send(b"started")
    assert await child.receive() == b"started"
    assert os.getpgid(child.pid) != os.getpgid(0), "a Ctrl-C would reach it"
    os.kill(child.pid, signal.SIGINT)
    os.kill(child.pid, signal.SIGTERM)
    await child.send(b"still here")
    assert await child.receive() == b"still here"


async def test_closing_leaves_nothing_even_if_it_is_cancelled(start: Start, tmp_path: Path) -> None:
    child = await start("busy")
    await child.send(str(tmp_path / "tidied").encode())
    pid = int(await child.receive())
    closing = asyncio.create_task(child.close())
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    await child.close()
    assert pid == child.pid and not psutil.pid_exists(pid)


async def test_what_nobody_takes_does_not_keep_a_child_that_is_closed(start: Start) -> None:
    child = await start("busy")
    await child.send(b"nowhere")
    while not child._stdout._paused:  # type: ignore[attr-defined]  # noqa: ASYNC110
        await asyncio.sleep(0.001)
    waiting = asyncio.create_task(child.receive())
    async with asyncio.timeout(30):
        await child.close()
    assert int(await waiting) == child.pid
    with pytest.raises(EOFError):
        await child.receive()


PARENT = """
import asyncio, sys
sys.path[:] = {path!r}
from realtime_tts.child_process import ChildProcess


async def main():
    child = await ChildProcess.start("a_busy_child")
    await child.send(sys.argv[1].encode())
    print((await child.receive()).decode(), flush=True)
    await asyncio.sleep(600)


asyncio.run(main())
"""


def test_a_child_tidies_up_and_ends_whatever_its_parent_dies_of(tmp_path: Path) -> None:
    (tmp_path / "a_busy_child.py").write_text(CHILD + "\n\nmain = busy\n")
    code = PARENT.format(path=[str(tmp_path), *sys.path])
    command = [sys.executable, "-c", code, str(tmp_path / "tidied")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        parent.kill()
    with contextlib.suppress(psutil.NoSuchProcess):
        child.wait(timeout=SECONDS)
    wait_until((tmp_path / "tidied").exists)
