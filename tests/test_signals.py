"""The signals of a server's process, from its first to its last moment, as a supervisor sends
them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from realtime_tts.background import cancel
from tests.serving import ROOT, serve_command, serving_beside
from tests.waiting import SECONDS, wait_until

EARLY = """
import os, signal, sys

class Signalling:
    def find_spec(self, name, *_):
        if name == "realtime_tts.cli" and hasattr(signal, "SIGHUP"):
            os.kill(os.getpid(), signal.SIGHUP)

sys.meta_path.insert(0, Signalling())
sys.argv = ["realtime-tts", "serve", "--check-that-this-is-unknown"]
from realtime_tts.__main__ import run
sys.exit(run())
"""


def test_a_hangup_while_the_server_is_imported_ends_nothing() -> None:
    """systemd sends it to a service that has just been started, and takes that end for a clean
    one: the server would stay away."""
    ended = subprocess.run([sys.executable, "-c", EARLY], capture_output=True, timeout=SECONDS)
    assert ended.returncode == 2, ended.stderr.decode()


def test_serve_where_there_is_no_hangup_says_what_it_lacks() -> None:
    """On Windows, which lacks more than that."""
    lacks = "import signal, sys; del signal.SIGHUP; sys.modules['resource'] = None"
    ended = subprocess.run(
        [sys.executable, "-c", f"{lacks}{EARLY}"], capture_output=True, timeout=SECONDS
    )
    assert ended.returncode == 1
    assert b"Traceback" not in ended.stderr and b"resource" in ended.stderr


ENDED_BY = """
import os, signal, sys

number, module = int(sys.argv[1]), sys.argv[2]

class Ending:
    def find_spec(self, name, *_):
        if name == module:
            try:
                os.kill(os.getpid(), number)
            except BaseException:  # what is raised into an import that is written in C++
                os.abort()

sys.meta_path.insert(0, Ending())
sys.argv = ["realtime-tts", *sys.argv[3:]]
from realtime_tts.__main__ import run
sys.exit(run())
"""
SERVE = ("serve", "--engine", "fake", "--port", "0", "--tls-self-signed")
INGRESS = ("ingress", "--member", "127.0.0.1:1")


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
@pytest.mark.parametrize(
    ("module", "words"),
    [
        ("realtime_tts.cli", SERVE),
        ("realtime_tts.cli.serve", SERVE),
        ("realtime_tts.server.run", SERVE),  # its certificate has been made
        ("realtime_tts.cli.ingress", INGRESS),
    ],
)
def test_a_signal_in_the_first_moments_ends_a_server(
    module: str, words: tuple[str, ...], number: signal.Signals, status: int, tmp_path: Path
) -> None:
    """Even the first process of a container, for which the kernel ignores what has no handler: the
    handler is what ends it here, with a status and not by the signal. Nothing is left behind."""
    pytest.importorskip("cryptography")
    ended = subprocess.run(
        [sys.executable, "-c", ENDED_BY, str(int(number)), module, *words],
        env=os.environ | {"TMPDIR": str(tmp_path)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=SECONDS,
    )
    assert ended.returncode == status, ended.stderr.decode()
    assert b"Traceback" not in ended.stderr
    assert not list(tmp_path.iterdir())


def test_a_server_is_ended_by_sigterm_also_if_its_parent_ignores_that() -> None:
    """What is ignored stays so in the programs that a process starts."""
    ignoring = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    ended = subprocess.run(
        [sys.executable, "-c", f"{ignoring}\n{ENDED_BY}", "15", "realtime_tts.cli.serve", *SERVE],
        capture_output=True,
        timeout=SECONDS,
    )
    assert ended.returncode == 0, ended.stderr.decode()
    assert b"server.starting" not in ended.stderr, "it ended before it did anything"


def test_a_signal_while_haproxy_is_started_ends_an_ingress(tmp_path: Path) -> None:
    """Its start may last, as while a name is looked up."""
    folder, started = tmp_path / "temporary", tmp_path / "started"
    folder.mkdir()
    haproxy = tmp_path / "haproxy"
    haproxy.write_text(
        f"#!/bin/sh\necho $$ > {started}.new\nmv {started}.new {started}\nexec sleep 600\n"
    )
    haproxy.chmod(0o755)
    process = subprocess.Popen(
        [sys.executable, "-m", "realtime_tts", *INGRESS],
        env=os.environ | {"TMPDIR": str(folder), "PATH": str(tmp_path) + os.pathsep + os.defpath},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    try:
        wait_until(started.exists)
        process.terminate()
        assert process.wait(SECONDS) == 0
    finally:
        process.kill()
        os.kill(int(started.read_text()), signal.SIGKILL)
    assert not list(folder.iterdir())


def test_ctrl_c_that_was_ignored_from_the_start_still_is() -> None:
    ignoring = f"import signal; signal.signal({int(signal.SIGINT)}, signal.SIG_IGN)"
    ended = subprocess.run(
        [sys.executable, "-c", f"{ignoring}\n{ENDED_BY}", str(int(signal.SIGINT))]
        + ["realtime_tts.cli", "serve", "--no-such-flag"],
        capture_output=True,
        timeout=SECONDS,
    )
    assert ended.returncode == 2, ended.stderr.decode()


@pytest.mark.parametrize("flags", [("--tls-self-signed",), ("--fronts", "2")], ids=" ".join)
def test_signals_that_come_until_a_server_has_ended_change_nothing(
    tmp_path: Path, flags: tuple[str, ...]
) -> None:
    """It ends with 0, and leaves neither a private key nor a shared folder."""
    pytest.importorskip("cryptography")
    process = subprocess.Popen(
        serve_command("--engine", "fake", *flags),
        cwd=ROOT,
        env=os.environ | {"TMPDIR": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    late = threading.Timer(SECONDS, process.kill)
    late.start()
    assert process.stdout is not None
    while b"/v1/tts" not in process.stdout.readline():
        assert process.poll() is None
    while process.poll() is None:
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            process.send_signal(number)
            time.sleep(0.002)
    late.cancel()
    _, log = process.communicate()
    assert process.returncode == 0, log.decode()
    assert all(line.startswith(b"{") for line in log.splitlines()), log.decode()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("fronts", ["1", "2"])
async def test_nobody_waits_for_a_server_that_only_finishes_requests(fronts: str) -> None:
    """An upload that does not go on is given seconds; whoever comes is refused at once."""
    flags = ("--engine", "fake", "--fronts", fronts, "--close-timeout", "20")
    async with serving_beside(*flags) as server:
        answer, upload = await asyncio.open_connection("127.0.0.1", server.port)
        head = "POST /v1/audio/speech HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99\r\n\r\n{"
        upload.write(head.encode())
        await upload.drain()
        ended = asyncio.create_task(answer.read())
        await asyncio.sleep(0.2)
        server.process.terminate()
        with pytest.raises(ConnectionRefusedError):
            while True:
                with contextlib.suppress(ConnectionResetError):  # it came as the listener closed
                    _, probe = await asyncio.open_connection("127.0.0.1", server.port)
                    probe.close()
                await asyncio.sleep(0.01)
        assert not ended.done(), "the upload has time left"
        upload.close()
        ended.cancel()
        await asyncio.to_thread(server.process.wait, SECONDS)


async def test_requests_that_keep_coming_do_not_hold_up_a_front_that_has_no_turn() -> None:
    """It takes no more sockets once it ends; it would have waited for the last request."""
    async with serving_beside("--engine", "fake", "--fronts", "2") as server:

        async def ask() -> None:
            while True:
                try:
                    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
                    writer.write(b"GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
                    await reader.read()
                    writer.close()
                except OSError:
                    await asyncio.sleep(0.01)

        asking = [asyncio.create_task(ask()) for _ in range(16)]
        await asyncio.sleep(0.2)
        server.process.terminate()
        await asyncio.to_thread(server.process.wait, SECONDS)
        await cancel(*asking)
        said = [json.dumps(line) for line in server.records()]
    cut_off = ("graceful shutdown exceeded", "Exception in ASGI", "not_taken")
    assert not [line for line in said if any(words in line for words in cut_off)]
