"""A running server takes its file over, with one front and with several, and no session notices."""

from __future__ import annotations

import os
import shutil
import signal
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from websockets import ConnectionClosed, InvalidStatus

from realtime_tts.server.self_signed import write_self_signed
from tests.configuration.serving import Served, served
from tests.waiting import wait_until

OLD, NEW = "first-key-of-all", "second-key-of-all"
TEXT = "one " * 25  # five seconds of tones
FRONTS = {1: (), 2: ("--devices", "cpu,cpu", "--fronts", "2")}


def settings(folder: Path, *more: str, key: str = OLD, certificate: str = "one") -> str:
    """The text of a file; `more`: further tables."""
    files = folder / certificate
    tls = f'tls-cert = "{files}/certificate.pem"\ntls-key = "{files}/key.pem"'
    return "\n".join([f'[access]\napi-key = ["{key}"]\n[tls]\n{tls}', *more, ""])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("configuration")
    for name in ("one", "two"):
        (made / name).mkdir()
        write_self_signed(made / name)
    return made


@pytest.fixture(scope="module", params=sorted(FRONTS), ids="{} front(s)".format)
def running(request: pytest.FixtureRequest, folder: Path) -> Iterator[Served]:
    """One server for all tests; each writes its file anew."""
    file = folder / f"fronts{request.param}.toml"
    file.write_text(settings(folder))
    file.chmod(0o600)
    with served(file, "--step-seconds", "0.002", *FRONTS[request.param]) as server:
        yield server


@pytest.fixture
def server(running: Served, folder: Path) -> Served:
    assert running.reload(settings(folder))["event"] == "config.reloaded"
    return running


EXPIRY = "tts_certificate_expiry_timestamp_seconds"


def expiry(certificate: Path) -> float:
    found = x509.load_pem_x509_certificate(certificate.read_bytes())
    return found.not_valid_after_utc.timestamp()


def refused(server: Served, key: str) -> bool:
    try:
        server.visit(key)
    except InvalidStatus as error:
        return error.response.status_code == 401
    return False


def test_a_turn_in_flight_loses_no_sample_while_everything_is_reloaded(
    server: Served, folder: Path
) -> None:
    with server.connect(OLD, query="?lead_ms=30000") as socket:
        undisturbed = socket.say(TEXT)
        undisturbed.wait()
    with server.connect(OLD) as first, server.connect(OLD) as second:
        turns = [first.say(TEXT), second.say(TEXT)]
        wait_until(lambda: all(turn.speaks for turn in turns))
        limits = "[limits]\nmax-sessions = 1\nmax-text-chars = 50\nconnection-rate = 10\n"
        more = settings(folder, limits, '[log]\nlog-level = "debug"', key=NEW, certificate="two")
        for text in (more, settings(folder), more):
            assert server.reload(text)["event"] == "config.reloaded"
        assert all(turn.speaks for turn in turns), "they ended before the settings changed"
        for turn in turns:
            turn.wait()
            assert turn.done["reason"] == "complete"
            assert turn.pcm == undisturbed.pcm


def test_a_key_that_is_gone_opens_nothing_any_more_and_a_new_one_does(
    server: Served, folder: Path
) -> None:
    assert refused(server, NEW) and not refused(server, OLD)
    told = server.reload(settings(folder, key=NEW))
    assert told["changed"] == "access.api-key"
    for _ in range(4):  # whichever front it comes to
        assert refused(server, OLD) and not refused(server, NEW)
    assert not any(OLD in str(line) or NEW in str(line) for line in server.log)


def test_new_connections_get_the_new_certificate_and_the_old_ones_stay(
    server: Served, folder: Path
) -> None:
    one, two = (folder / name / "certificate.pem" for name in ("one", "two"))
    with server.connect(OLD, one) as socket:
        assert server.metric(EXPIRY, OLD) == expiry(one)
        server.reload(settings(folder, certificate="two"))
        assert server.metric(EXPIRY, OLD) == expiry(two)
        for _ in range(4):
            server.visit(OLD, two)
            with pytest.raises(ssl.SSLCertVerificationError):
                server.visit(OLD, one)
        socket.ping()


def test_limits_are_those_of_sessions_that_begin_afterwards(server: Served, folder: Path) -> None:
    with server.connect(OLD) as before:
        server.reload(settings(folder, "[limits]\nmax-text-chars = 50\nmax-sessions = 2"))
        with server.connect(OLD) as after:
            with pytest.raises(InvalidStatus) as full:
                server.visit(OLD)
            assert full.value.response.status_code == 503
            for socket, most in ((before, 16_384), (after, 50)):
                assert socket.ready()["limits"]["max_text_chars"] == most
    server.reload(settings(folder))
    with server.connect(OLD), server.connect(OLD), server.connect(OLD):
        pass


def test_the_level_of_the_log_changes(server: Served, folder: Path) -> None:
    def infos() -> list[str]:
        """All but those of our own look at the metrics, some of which are not in the log yet."""
        events = [line["event"] for line in server.log[begun:] if line["level"] == "info"]
        return [event for event in events if "/metrics" not in event]

    def taken_at() -> float:
        return server.metric("tts_config_last_reload_success_timestamp_seconds", OLD)

    begun, before = len(server.log), taken_at()
    server.write(settings(folder, '[log]\nlog-level = "warning"'))
    server.process.send_signal(signal.SIGHUP)
    wait_until(lambda: taken_at() > before)
    for _ in range(4):  # whichever front it comes to
        server.visit(OLD)
    server.reload(settings(folder, '[log]\nlog-level = "info"'))
    assert infos() == ["config.reloaded"]
    server.visit(OLD)
    wait_until(lambda: "session.open" in infos())


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[access\n", "at line 1"),
        ("", "no key is left"),
        ("[server]\nprot = 3\n", "did you mean server.port?"),
        ("[limits]\nmax-sessions = 0\n", "max_sessions must be positive"),
        ('[tls]\ntls-cert = "/none/such.pem"\n', "cannot read the TLS certificate"),
    ],
)
def test_a_file_with_a_fault_changes_nothing_and_the_log_says_why(
    server: Served, folder: Path, text: str, why: str
) -> None:
    taken_at = server.metric("tts_config_last_reload_success_timestamp_seconds", OLD)
    access = f'[access]\napi-key = ["{NEW}"]\n' if text and "access" not in text else ""
    told = server.reload(access + text)
    assert (told["event"], told["level"]) == ("config.not_reloaded", "error")
    assert why in told["why"]
    assert refused(server, NEW) and not refused(server, OLD)
    server.visit(OLD, folder / "one" / "certificate.pem")
    assert server.metric("tts_config_last_reload_successful", OLD) == 0
    assert server.metric("tts_config_last_reload_success_timestamp_seconds", OLD) == taken_at
    server.reload(settings(folder))
    assert server.metric("tts_config_last_reload_successful", OLD) == 1
    assert server.metric("tts_config_last_reload_success_timestamp_seconds", OLD) > taken_at


def test_what_needs_a_restart_is_named(server: Served, folder: Path) -> None:
    server.reload(settings(folder, '[engine]\nslots = 7\n[server]\nmarking = "watermark"', key=NEW))
    told = wait_until(lambda: server.events("config.needs_restart"))
    assert told[-1]["options"] == "engine.slots, server.marking"
    assert not refused(server, NEW), "the rest is taken over"


def test_a_changed_file_is_taken_over_by_itself(server: Served, folder: Path) -> None:
    told = server.told(lambda: server.write(settings(folder, key=NEW)))
    assert told["changed"] == "access.api-key" and refused(server, OLD)


def test_a_renewed_certificate_is_taken_over_by_itself(server: Served, folder: Path) -> None:
    renewed = folder / "renewed"

    def renew() -> None:
        shutil.rmtree(renewed, ignore_errors=True)
        renewed.mkdir()
        write_self_signed(renewed)

    renew()
    server.reload(settings(folder, certificate="renewed"))
    server.visit(OLD, renewed / "certificate.pem")
    told = server.told(renew)
    assert told["changed"] == "", "the names are the same"
    assert str(renewed / "certificate.pem") in told["files"].split(", ")
    server.visit(OLD, renewed / "certificate.pem")


with_two_fronts = pytest.mark.parametrize("running", [2], indirect=True, ids="{} front(s)".format)


@with_two_fronts
def test_a_signal_for_the_whole_group_ends_no_child(server: Served) -> None:
    psutil = pytest.importorskip("psutil")
    children = psutil.Process(server.process.pid).children()
    assert len(children) == 4
    for child in children:
        child.send_signal(signal.SIGHUP)
    assert server.reload()["event"] == "config.reloaded"
    assert all(child.is_running() for child in children) and not refused(server, OLD)


@with_two_fronts
def test_a_front_that_is_started_later_has_the_new_settings(server: Served, folder: Path) -> None:
    psutil = pytest.importorskip("psutil")
    server.reload(settings(folder, key=NEW))
    for child in psutil.Process(server.process.pid).children():
        if "fronts.process" in " ".join(child.cmdline()):
            child.kill()
    wait_until(lambda: len(server.events("front.died")) == 2)

    def answers() -> bool:
        with suppress(OSError, ConnectionClosed, EOFError):
            return refused(server, OLD) and not refused(server, NEW)
        return False

    wait_until(answers)


@with_two_fronts
def test_a_front_waits_for_a_certificate_that_is_whole(server: Served, folder: Path) -> None:
    """One that dies while the file is only half there; the other front has the old one."""
    psutil = pytest.importorskip("psutil")
    certificate, begun = folder / "one" / "certificate.pem", len(server.log)
    whole = certificate.read_bytes()
    certificate.write_bytes(whole[: len(whole) // 2])
    try:
        children = psutil.Process(server.process.pid).children()
        front = next(one for one in children if "fronts.process" in " ".join(one.cmdline()))
        front.kill()
        wait_until(lambda: any(why(line) for line in server.log[begun:]))
    finally:
        certificate.write_bytes(whole)
    assert all("traceback" not in str(line).lower() for line in server.log[begun:])
    restored = len(server.log)
    wait_until(lambda: any(line["event"] == "config.reloaded" for line in server.log[restored:]))
    wait_until(lambda: server.metric("tts_fronts", OLD) == 2)
    server.visit(OLD, certificate)


def why(line: dict[str, Any]) -> bool:
    """Whether it tells of a front that cannot use the certificate."""
    return line["event"] == "front.not_started" and "certificate.pem" in line["why"]


@with_two_fronts
def test_if_one_front_cannot_take_the_settings_over_no_front_does(
    server: Served, folder: Path
) -> None:
    """One that has no file left to read the certificate with."""
    psutil = pytest.importorskip("psutil")
    children = psutil.Process(server.process.pid).children()
    front = next(one for one in children if "fronts.process" in " ".join(one.cmdline()))
    limits = front.rlimit(psutil.RLIMIT_NOFILE)
    front.rlimit(psutil.RLIMIT_NOFILE, (3, limits[1]))
    told = server.reload(settings(folder, key=NEW))
    front.rlimit(psutil.RLIMIT_NOFILE, limits)
    assert told["event"] == "config.not_reloaded" and "cannot take the settings over" in told["why"]
    for _ in range(4):  # whichever front it comes to
        assert refused(server, NEW) and not refused(server, OLD)
    assert server.reload(settings(folder, key=NEW))["event"] == "config.reloaded"
    for _ in range(4):
        assert refused(server, OLD) and not refused(server, NEW)


def test_a_terminal_that_is_closed_ends_its_server(folder: Path) -> None:
    """As the leader of its session the server gets SIGHUP from the kernel."""
    ours, theirs = os.openpty()
    program = (
        "import fcntl, os, sys, termios; os.setsid(); fcntl.ioctl(2, termios.TIOCSCTTY, 0); "
        "os.execv(sys.executable, [sys.executable, '-m', 'realtime_tts', 'serve', '--port', '0', "
        "'--engine', 'fake'])"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    try:
        shown = b""
        while b"realtime-tts say" not in shown:
            shown += os.read(ours, 4096)
        process.send_signal(signal.SIGHUP)
        while b"config.reloaded" not in shown:
            shown += os.read(ours, 4096)
        os.close(ours)
        assert process.wait(timeout=60) == 0
    finally:
        process.kill()
        process.wait()
