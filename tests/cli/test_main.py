import argparse
import contextlib
import io
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from rich.console import Console

import realtime_tts
from realtime_tts.cli import bench, main, serve
from realtime_tts.cli.failures import ExitStatus, explain
from realtime_tts.errors import (
    CertificateRefused,
    ConfigError,
    ConnectionLost,
    HandshakeRefused,
    OverloadedError,
    RealtimeTTSError,
    RequestError,
    TurnError,
    Unreachable,
)


def test_every_command_has_help(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("serve", "say", "voices", "bench"):
        with pytest.raises(SystemExit) as left:
            main([command, "--help"])
        assert left.value.code == 0
        assert f"usage: realtime-tts {command}" in capsys.readouterr().out


def test_the_overview_names_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    out = capsys.readouterr().out
    for command in ("serve", "say", "voices", "bench"):
        assert command in out


def test_no_command_and_an_unknown_one_are_wrong_usage() -> None:
    for words in ([], ["speak"]):
        with pytest.raises(SystemExit) as left:
            main(words)
        assert left.value.code == ExitStatus.USAGE


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["sya", "Hello."], "no command 'sya'; did you mean say?"),
        (["say", "Hello.", "--voise", "ava"], "unknown: --voise ava; did you mean --voice?"),
        (["serve", "--potr=9000"], "unknown: --potr=9000; did you mean --port?"),
        (["say", "Hello", "there."], "words that belong together go in quotes"),
        (["say", "Hi.", "--start", "--eager"], "one argument, as in --start='--eager'"),
        (["bench", "--start", "--eager"], "are one word: --start='--eager'"),
        (["serve", "--port", "http"], "argument --port: expected an integer, got 'http'"),
        (["say", "Hello.", "--speed", "fast"], "--speed: expected a number, got 'fast'"),
    ],
)
def test_a_slip_is_told_with_the_usage_of_its_command_and_the_nearest_name(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        main(words)
    error = capsys.readouterr().err
    assert left.value.code == ExitStatus.USAGE and told in error
    known = words[0] in ("say", "serve", "bench")
    assert error.startswith(f"usage: realtime-tts {words[0]}" if known else "usage: realtime-tts ")
    assert error.count("\n") <= 3, "a page of flags would hide it"
    assert not known or error.endswith(f"all options: realtime-tts {words[0]} --help\n")


_INTERRUPTED_IMPORT = """
import os, runpy, signal, sys
class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == "realtime_tts.cli":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupt())
runpy.run_module("realtime_tts", run_name="__main__")
"""


def test_control_c_while_the_command_is_imported_ends_it_quietly() -> None:
    command = [sys.executable, "-c", _INTERRUPTED_IMPORT]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout + done.stderr) == (ExitStatus.INTERRUPTED, "")


_INTERRUPTED_END = """
import atexit, os, runpy, signal, sys
atexit.register(os.kill, os.getpid(), signal.SIGINT)
sys.argv = ["realtime-tts", "--version"]
runpy.run_module("realtime_tts", run_name="__main__")
"""


def test_control_c_while_python_ends_ends_it_quietly() -> None:
    command = [sys.executable, "-c", _INTERRUPTED_END]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (-signal.SIGINT, "")


def test_what_a_command_needs_is_in_its_short_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["keys", "create", "acme"])
    usage = capsys.readouterr().err.splitlines()[0]
    assert usage == "usage: realtime-tts keys create [OPTIONS] --keys FILE name"


def test_it_runs_as_a_module() -> None:
    command = [sys.executable, "-m", "realtime_tts", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == realtime_tts.__version__


def test_without_a_server_it_says_how_to_start_one(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"ws://127.0.0.1:{probe.getsockname()[1]}"
        for words in (["say", "Hello."], ["voices"]):
            assert main([*words, "--url", url]) == ExitStatus.UNREACHABLE
            message = capsys.readouterr().err
            assert f"no server answers at {url}/v1/tts: Connection refused\n" in message
            assert "realtime-tts serve" in message
            assert "Traceback" not in message


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["say", "Hello.", "--stdin"], "a text or --stdin, not both"),
        (["say", "Hello.", "--url", "ftp://h"], "such as ws://"),
        (["say", "Hello.", "--seed", "-1"], "seed"),
        (["say", "Hello.", "--format", "mp3"], "add --output FILE"),
        (["say", "Hello.", "--format", "vorbis", "-o", "x.ogg"], "there is no format 'vorbis'"),
        (["say", "Hello.", "--format", "mp3_44100_65", "-o", "x"], "it has 32, 40, 48"),
        (["say", "Hello.", "--format", "mp3", "-o", "x.wav"], "--format mp3 for --output x.wav"),
        (["say", "Hello.", "-o", "x.m4a"], "known are .wav, .pcm, .raw, .mp3"),
        (["say", "Hello.", "-o", "no/folder/x.wav"], "x.wav cannot be written: there is no folder"),
        (["say", "Hello.", "-o", "/"], "/ cannot be written: it is a folder"),
        (["say", "Hello.", "--local", "--start", "--slots '2"], "No closing quotation"),
        (["bench", "--start", "--slots '2"], "No closing quotation"),
        (["bench", "--in-process", "--slots '2"], "flags of `serve`, --slots '2: No closing"),
        (["bench", "--sessions", "1,x"], "expected integers separated by commas, got '1,x'"),
        (["bench", "--sessions", "0"], "at least 1 session"),
        (["bench", "--mode", "open", "--rate", "0"], "rate above 0"),
        (["bench", "--interrupts", "2"], "share from 0 to 1"),
        (["bench", "--cut-between", "1"], "two numbers"),
        (["bench", "--json", "no/folder/bench.json"], "there is no folder no/folder"),
        (["profile", "--json", "no/folder/profile.json"], "there is no folder no/folder"),
        (["doctor", "--config", "tts.toml"], "--config is for the bundle"),
        (["doctor", "--log", "tts.log"], "--log is for the bundle"),
        (["keys", "list", "--keys", "no.json"], "there is no file no.json"),
        (["keys", "revoke", "acme", "--keys", "no.json"], "there is no file no.json"),
        (["bench", "--cut-between", "2,1"], "two times that rise"),
        (["bench", "--client-processes", "0"], "at least 1"),
        (["bench", "--suite", "--mode", "open"], "either it or --mode"),
        (["bench", "--mode", "closed", "--rate", "2"], "--rate is not for the mode closed"),
        (["bench", "--arrivals", "9"], "--arrivals is not for the mode closed"),
        (["bench", "--rate", "2", "--sessions", "4"], "--sessions is not for the mode open"),
        (["bench", "--mode", "open", "--stop-at-underrun"], "--stop-at-underrun is not for the"),
        (["bench", "--random-weights", "demo", "--url", "ws://h"], "leave --url out"),
    ],
)
def test_flags_that_cannot_work_are_wrong_usage(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == ExitStatus.USAGE
    assert message in capsys.readouterr().err


def test_a_file_that_may_not_be_written_is_told_before_anything_is_spoken(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr("os.access", lambda path, mode: (path, mode) != (tmp_path, os.W_OK))
    assert main(["say", "Hello.", "-o", str(tmp_path / "x.wav")]) == ExitStatus.USAGE
    assert "x.wav cannot be written: permission denied" in capsys.readouterr().err


def test_a_bench_that_nobody_watches_prints_no_progress() -> None:
    seen = io.StringIO()
    with bench._progress(Console(file=seen)) as report:
        report("1 session", 1, 2)
    assert seen.getvalue() == ""


@pytest.mark.parametrize(("given", "rate"), [("", 1_000_000), ("--connection-rate 7", 7)])
def test_a_server_that_a_bench_starts_takes_all_its_clients_from_one_address(
    given: str, rate: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[str] = []

    @contextlib.asynccontextmanager
    async def server(flags: list[str]) -> AsyncIterator[str]:
        started.extend(flags)
        raise ConfigError("seen")
        yield ""

    monkeypatch.setattr(bench, "local_server", server)
    assert main(["bench", f"--start={given}"]) == ExitStatus.USAGE
    parser = argparse.ArgumentParser()
    serve.add_arguments(parser)
    assert parser.parse_args(started).connection_rate == rate


def test_a_terminal_without_unicode_is_given_what_it_can_show() -> None:
    command = [sys.executable, "-m", "realtime_tts", "doctor", "--help"]
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0 and "\\u2026" in done.stdout, done.stderr


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (ConfigError("bad flag"), ExitStatus.USAGE, "bad flag"),
        (RequestError("no such voice"), ExitStatus.USAGE, "no such voice"),
        (HandshakeRefused("key?", 401), ExitStatus.NOT_ALLOWED, "--api-key"),
        (HandshakeRefused("origin", 403), ExitStatus.NOT_ALLOWED, "origin"),
        (HandshakeRefused("full", 503), ExitStatus.NO_CAPACITY, "full"),
        (OverloadedError("busy", 1.0), ExitStatus.NO_CAPACITY, "busy"),
        (Unreachable("down"), ExitStatus.UNREACHABLE, "realtime-tts serve"),
        (HandshakeRefused("path", 404), ExitStatus.FAILED, "path"),
        (ConnectionLost("cut"), ExitStatus.UNREACHABLE, "cut"),
        (TurnError("numerics", "numerics"), ExitStatus.FAILED, "numerics"),
        (
            PermissionError(13, "Permission denied", "x.wav"),
            ExitStatus.FAILED,
            "x.wav: Permission denied",
        ),
        (OSError(28, "No space left on device"), ExitStatus.FAILED, "No space left on device"),
        (RealtimeTTSError("other"), ExitStatus.FAILED, "other"),
        (ImportError("no torch", name="torch"), ExitStatus.FAILED, "pip install -e '.[server]'"),
        (ImportError("…", name="matplotlib"), ExitStatus.FAILED, "pip install -e '.[plot]'"),
    ],
)
def test_each_kind_of_failure_has_its_status_and_its_advice(
    error: Exception, status: ExitStatus, words: str
) -> None:
    found, message = explain(error)
    assert found is status
    assert words in message


def test_where_another_server_answers_it_does_not_say_how_to_start_one() -> None:
    for error in (HandshakeRefused("it wants wss://"), CertificateRefused("not trusted")):
        assert explain(error) == (ExitStatus.UNREACHABLE, str(error))


@pytest.mark.parametrize("error", [ZeroDivisionError(), ImportError("…", name="realtime_tts.x")])
def test_a_mistake_of_ours_is_not_hidden(error: Exception) -> None:
    with pytest.raises(type(error)):
        explain(error)


def test_a_child_can_write_where_our_own_stream_is_closed() -> None:
    """With `2>&-`, the fronts of a server ended at their start, and nothing could say so."""
    child = "import sys; sys.stderr.write('lost')"
    parent = (
        "import subprocess, sys; from realtime_tts.cli import main; main(['completion', 'bash']); "
        f"sys.exit(subprocess.run([sys.executable, '-c', {child!r}]).returncode)"
    )
    command = ["sh", "-c", 'exec "$0" -c "$1" 2>&-', sys.executable, parent]
    assert subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode == 0


def test_the_end_of_a_process_does_not_wait_for_the_garbage_collector() -> None:
    """It would look through all modules once more: on a busy machine, a server that had drained
    and said so was there for five seconds more."""
    program = (
        "import atexit, gc, sys\n"
        "atexit.register(lambda: print(len(gc.get_objects()) < gc.get_freeze_count()))\n"
        "sys.argv = ['realtime-tts', '--version']\n"
        "from realtime_tts.__main__ import run\nsys.exit(run())"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ended.stdout.splitlines()[-1] == "True", ended.stderr
