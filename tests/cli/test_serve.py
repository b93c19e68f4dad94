"""`realtime-tts serve`: flags reach the settings, and what cannot work is said in one line."""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import re
import shlex
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from realtime_tts.cli import command_parser, main
from realtime_tts.cli.reachable import EVERYWHERE, addresses_for_others
from realtime_tts.cli.serve import server_config, welcome
from realtime_tts.cli.serve_engine import engine_config, engine_configs
from realtime_tts.cli.serve_settings import Sources
from realtime_tts.config import ServerConfig
from realtime_tts.engine.settings import EngineConfig
from realtime_tts.errors import ConfigError
from realtime_tts.loopback import is_loopback
from realtime_tts.server.listening import bind
from tests.cli.endless import EndlessModel, interrupted_while_loading
from tests.serving import serve_command, serving


def flags(*words: str) -> argparse.Namespace:
    return command_parser(["serve"]).parse_args(["serve", *words])


def serve(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command, environment = serve_command(*words), os.environ | environment
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)


def test_the_lead_reaches_the_sessions_and_the_scheduler() -> None:
    arguments = flags("--lead-seconds", "1.5")
    assert server_config(arguments, terminal=False).lead_seconds == 1.5
    assert engine_config(arguments).scheduler.lead_cap == 1.5


def test_logs_are_json_unless_somebody_watches() -> None:
    assert server_config(flags(), terminal=False).log_format == "json"
    assert server_config(flags(), terminal=True).log_format == "text"
    assert server_config(flags("--log-format", "json"), terminal=True).log_format == "json"


def test_keys_come_from_the_flags_or_else_from_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def keys(*words: str) -> tuple[str, ...]:
        return server_config(Sources(words).read().namespace(), terminal=False).api_keys

    monkeypatch.setenv("REALTIME_TTS_API_KEYS", "first-key, second-key")
    assert keys() == ("first-key", "second-key")
    given = "--api-key", "third-key", "--api-key", "fourth-key"
    assert keys(*given) == ("third-key", "fourth-key")


@pytest.mark.parametrize(
    "words",
    [
        ["--slots", "0"],
        ["--lead-seconds", "0.25"],
        ["--utilisation", "-1"],
        ["--utilisation", "inf"],
        ["--queue-seconds", "inf"],
        ["--step-seconds", "nan"],
        ["--engine", "fake", "--model", "somewhere"],
        ["--engine", "fake", "--random-weights", "demo"],
        ["--step-seconds", "0.01"],
        ["--engine", "inline", "--devices", "cpu,cpu"],
        ["--gpu-memory", "40GiB"],
        ["--gpu-memory", "lots", "--device", "cuda"],
    ],
    ids=" ".join,
)
def test_engine_flags_that_cannot_work_are_refused(words: list[str]) -> None:
    with pytest.raises(ConfigError):
        engine_config(flags(*words))


@pytest.mark.parametrize("option", ["lead-seconds", "queue-seconds", "max-queue", "utilisation"])
def test_a_number_that_cannot_be_is_refused_by_the_name_of_its_option(option: str) -> None:
    with pytest.raises(ConfigError, match=f" {option.replace('-', '_')} must be .*, got -1"):
        engine_config(flags(f"--{option}", "-1"))


@pytest.mark.parametrize(
    ("words", "devices"),
    [
        ([], []),
        (["--device", "mps"], []),
        (["--engine", "fake"], []),
        (["--engine", "process"], ["cpu"]),
        (["--device", "cuda"], ["cuda"]),
        (["--device", "cuda:1", "--engine", "inline"], []),
        (["--devices", "cuda:0,cuda:1"], ["cuda:0", "cuda:1"]),
        (["--engine", "fake", "--devices", "cpu,cpu"], ["cpu", "cpu"]),
    ],
)
def test_a_gpu_gets_a_process_and_a_cpu_a_thread(words: list[str], devices: list[str]) -> None:
    assert [one.device for one in engine_config(flags(*words)).processes()] == devices


def test_a_repeated_model_is_an_engine_each_with_the_same_settings() -> None:
    arguments = flags("--model", "demo", "--model", "elsewhere", "--slots", "3")
    assert [(one.model, one.scheduler.slots) for one in engine_configs(arguments)] == [
        ("demo", 3),
        ("elsewhere", 3),
    ]
    with pytest.raises(ConfigError, match="twice"):
        engine_configs(flags("--model", "demo", "--model", "demo"))
    with pytest.raises(ConfigError, match="only `serve`"):
        engine_config(arguments)


def test_voices_are_kept_where_the_flag_says_and_never_the_fake_engine_s_unless_it_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert engine_config(flags()).voices_dir == "/data/realtime-tts/voices"
    assert engine_config(flags("--engine", "fake")).voices_dir is None
    given = flags("--engine", "fake", "--voices-dir", "here")
    assert engine_config(given).voices_dir == "here"


def test_a_folder_without_a_checkpoint_ends_the_server_with_one_line(tmp_path: Path) -> None:
    """Before torch is imported, which takes seconds: with this one it would be another line."""
    (tmp_path / "torch.py").write_text("raise ImportError('torch was imported')")
    path = os.pathsep.join([str(tmp_path), *sys.path])
    done = serve("--model", str(tmp_path), "--log-format", "text", PYTHONPATH=path)
    assert done.returncode == 1
    assert str(tmp_path) in done.stderr and "is missing" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_device_that_is_not_there_ends_the_server_with_one_line() -> None:
    done = serve("--device", "nonsense", "--log-format", "text")
    assert done.returncode == 1
    wanted = "expected cpu, cuda or cuda:N"
    assert f"torch cannot use the device 'nonsense': {wanted}\n" in done.stderr
    assert "Traceback" not in done.stderr


@dataclass
class Ended:
    """What a server said that has ended."""

    status: int
    welcome: list[str]
    log: list[dict[str, Any]]


@pytest.fixture(scope="module")
def ended() -> Ended:
    """A server with a key, which got SIGTERM as soon as it was ready."""
    with serving("--engine", "fake", "--api-key", "a-secret-of-ours") as server:
        status = server.stop()
        return Ended(status, server.said[:4], server.records())


def test_standard_error_is_json_lines_and_the_welcome_goes_elsewhere(ended: Ended) -> None:
    assert "http://127.0.0.1:" in ended.welcome[0] and "say" in ended.welcome[1]
    assert ended.status == 0
    events = [line["event"] for line in ended.log]
    assert events[:3] == ["server.starting", "engine.started", "engine.ready"]


def test_the_commands_of_the_welcome_have_a_placeholder_for_the_key(ended: Ended) -> None:
    welcome = ended.welcome
    assert "secret" not in "".join(welcome)
    assert all("--api-key KEY" in line for line in welcome[1:3])
    assert "-H 'X-API-Key: KEY'" in welcome[3]


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "127.0.0.1"])
def test_every_address_of_the_welcome_leads_to_the_server(host: str) -> None:
    if host == "::" and not Path("/proc/net/if_inet6").exists() and sys.platform == "linux":
        pytest.skip("this machine has no IPv6")
    config = ServerConfig(host=host, port=0)
    output = StringIO()
    with contextlib.ExitStack() as stack:
        for listener in bind(config):
            stack.enter_context(listener)
            port = listener.getsockname()[1]
        welcome(Console(file=output), config, [EngineConfig(kind="fake")], port)
        found = re.findall(r"http://(\S+):\d+", output.getvalue())
        for address in found:
            with socket.create_connection((address.strip("[]"), port), timeout=60):
                pass
    others = addresses_for_others(host) if host in EVERYWHERE else []  # none without a network
    assert [one.strip("[]") for one in found if not is_loopback(one.strip("[]"))] == others
    assert ("--tls-self-signed" in output.getvalue()) == (host != "127.0.0.1")


def test_random_weights_make_noise_that_no_guard_ends_and_are_else_as_a_checkpoint() -> None:
    for words in ([], ["--device", "cuda:1"], ["--device", "cuda", "--dtype", "float32"]):
        random = engine_config(flags("--random-weights", "0.6B", *words))
        trained = engine_config(flags(*words))
        assert not random.guards.enabled and trained.guards.enabled
        assert replace(random, random_weights=None, guards=trained.guards) == trained
    for model in ("somewhere", "demo"):
        with pytest.raises(ConfigError, match="give one of the two"):
            engine_config(flags("--random-weights", "0.6B", "--model", model))


def test_a_server_with_random_weights_says_so_in_its_welcome_and_in_its_log() -> None:
    with serving("--random-weights", "demo", "--max-frames", "3", "--slots", "1") as server:
        server.stop()
        logged = server.records()
    assert "random weights (demo dimensions)" in server.said[0]
    assert [line["event"] for line in logged][:4] == [
        "server.starting",
        "engine.started",
        "engine.ready",
        "engine.random_weights",
    ]
    assert "random weights" in logged[2]["model"]


def test_control_c_while_it_loads_ends_it_and_gives_the_terminal_its_cursor_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # to rich, a terminal
    monkeypatch.setattr("logging.shutdown", lambda: None)
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    try:
        words = ["serve", "--port", "0", "--voices-dir", str(tmp_path / "voices")]
        assert interrupted_while_loading(words, tmp_path, monkeypatch) == 0
    finally:
        for handler in set(root.handlers) - set(handlers):
            root.removeHandler(handler)
            handler.close()
        root.setLevel(level)
    told = capsys.readouterr().err
    assert "\x1b[?25l" in told.partition("start")[0] and told.rstrip().count("\x1b[?25h") == 1
    assert "server.stopped" in told and "engine_stuck" not in told, "nobody has to look at that"


def test_the_tls_flags_go_together_and_are_looked_at_before_anything_is_loaded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for words, message in (
        (["--tls-key", "key.pem"], "give --tls-cert, too"),
        (["--tls-self-signed", "--tls-cert", "cert.pem"], "makes its own certificate"),
        (["--tls-cert", str(tmp_path / "none.pem")], "cannot read the TLS certificate"),
    ):
        command = ["serve", "--port", "0", "--model", str(tmp_path), "--log-format", "text"]
        status, told = main([*command, *words]), capsys.readouterr().err
        assert status == 2, told
        assert message in told and "Traceback" not in told
        assert "is missing" not in told, "the checkpoint was looked at first"


@pytest.mark.parametrize("loading", [False, True], ids=["at its start", "while it loads"])
def test_a_server_that_is_ended_early_leaves_no_key_behind(tmp_path: Path, loading: bool) -> None:
    model, made = EndlessModel(tmp_path), tmp_path / "made"
    made.mkdir()

    def has_a_key() -> bool:
        # By its name: Python itself writes a file there for a moment, to see whether it can.
        return any(made.glob("realtime-tts-tls-*"))

    flags = "--tls-self-signed", "--model", str(tmp_path), "--voices-dir", str(tmp_path / "voices")
    environment = model.environment() | {"TMPDIR": str(made)}
    process = subprocess.Popen(serve_command(*flags), env=environment)
    try:
        if loading:
            model.until_it_loads()
            assert has_a_key()
        else:
            while process.poll() is None and not has_a_key():
                time.sleep(0.001)
        process.terminate()
        assert process.wait(60) == 0
    finally:
        process.kill()
        if loading:
            model.end()
    assert not list(made.iterdir())


def test_a_self_signed_server_is_trusted_by_the_commands_that_its_welcome_names() -> None:
    with serving("--engine", "fake", "--tls-self-signed") as server:
        welcome = server.said[:4]
        say = shlex.split(welcome[1].strip())
        said = subprocess.run(
            [sys.executable, "-m", "realtime_tts", *say[1:], "--output", "-"],
            capture_output=True,
            timeout=60,
        )
        without = [word for word in say[1:] if word not in ("--tls-ca", Path(say[5]).as_posix())]
        refused = subprocess.run(
            [sys.executable, "-m", "realtime_tts", *without, "--output", "-"],
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert "https://127.0.0.1:" in welcome[0] and "wss://127.0.0.1:" in welcome[3]
    assert say[4] == "--tls-ca" and not Path(say[5]).exists(), "it is deleted at the end"
    assert said.returncode == 0 and any(said.stdout), said.stderr
    assert refused.returncode == 3 and "is not trusted" in refused.stderr
