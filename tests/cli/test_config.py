"""`realtime-tts config`: what is wrong, what holds and what there is, without a server."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from realtime_tts.cli import main
from realtime_tts.cli.serve_arguments import RELOADED
from realtime_tts.cli.serve_settings import serve_options

DOCUMENT = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text(encoding="utf-8")


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("REALTIME_TTS_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "realtime-tts.toml"


def test_a_file_without_a_fault_passes(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text('[server]\nport = 9000\n[model]\nmodel = ["demo"]\n')
    assert main(["config", "--check", str(file)]) == 0
    assert capsys.readouterr() == (f"{file}: nothing is wrong\n", "")


def test_all_faults_are_printed_and_the_status_is_1(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text("[server]\nprot = 3\nfronts = true\n")
    assert main(["config", "--check", str(file)]) == 1
    output, errors = capsys.readouterr()
    assert output == "" and errors.splitlines() == [
        f"{file}: server.prot: there is no such option; did you mean server.port?",
        f"{file}: server.fronts: expected an integer, got True",
    ]


def test_values_that_cannot_work_are_all_told_where_they_are(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(
        "[limits]\nmax-lead-ms = 60000\nmax-sessions = 0\n[scheduling]\nlead-seconds = 45\n"
        "[engine]\nslots = 0\n[server]\nport = 70000\nfronts = 0\n"
        '[access]\napi-key = ["short"]\nallow-origin = ["example.com"]\n'
        '[tls]\ntls-cert = "/none/such.pem"\n'
    )
    file.chmod(0o600)
    assert main(["config", "--check", str(file)]) == 1
    told = [line.split(": ")[1] for line in capsys.readouterr().err.splitlines()]
    assert told == [
        "engine.slots",
        "server.port",
        "server.fronts",
        "access.api-key",
        "access.allow-origin",
        "tls.tls-cert",
        "limits.max-sessions",
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[engine]\ndevices = ""\n', "engine.devices: --devices must name a device, or be all"),
        ('[tls]\ntls-cert = "a\\u0000b"\n', "tls.tls-cert: a text may have no character NUL"),
        (f"[server]\ndrain-seconds = 1{'0' * 400}\n", "server.drain-seconds: expected a number"),
        ("[sockets]\nclose-timeout = inf\n", "sockets.close-timeout: close_timeout must be at"),
        ('[access]\nkeys = "/"\n', "access.keys: the keys in / cannot be read"),
    ],
)
def test_an_odd_value_is_a_fault_and_ends_in_no_traceback(
    file: Path, capsys: pytest.CaptureFixture[str], text: str, told: str
) -> None:
    file.write_text(text)
    assert main(["config", "--check", str(file)]) == 1
    assert capsys.readouterr().err.startswith(f"{file}: {told}")


def test_what_turns_cannot_be_traced_with_is_a_fault(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    file.write_text("[log]\ntracing = true\n")
    assert main(["config", "--check", str(file)]) == 1
    assert "log.tracing: " in capsys.readouterr().err


def test_a_fault_of_the_environment_is_told_by_its_variable(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text("")
    monkeypatch.setenv("REALTIME_TTS_PORT", "70000")
    assert main(["config", "--check", str(file)]) == 1
    assert capsys.readouterr().err.startswith("REALTIME_TTS_PORT: port must be between")


def test_a_warning_does_not_make_a_file_wrong(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text('[access]\napi-key = ["long-enough"]\n')
    file.chmod(0o644)
    assert main(["config", "--check", str(file)]) == 0
    assert "warning: " in (told := capsys.readouterr().err) and "chmod o-r" in told


def test_what_is_printed_says_where_each_value_came_from(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text("[server]\ndrain-seconds = 5\n[engine]\nslots = 3\n")
    monkeypatch.setenv("REALTIME_TTS_SLOTS", "4")
    assert main(["config", "--print", "--config", str(file), "--port", "9000"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith(str(file))
    for line in (
        "port = 9000  # command line",
        "slots = 4  # environment: REALTIME_TTS_SLOTS",
        "drain-seconds = 5.0  # file",
        "queue-seconds = 2.0  # default",
        "# max-sessions is not set",
    ):
        assert line in lines
    assert all(
        any(re.match(rf"(# )?{one.name} ", line) for line in lines) for one in serve_options()
    )


@pytest.mark.parametrize("source", ["command line", "environment", "file"])
def test_no_secret_is_printed_and_nobody_opens_a_server_with_what_is(
    file: Path,
    source: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    secret = "top-secret-key"
    words = ["--api-key", secret] if source == "command line" else []
    file.write_text(f'[access]\napi-key = ["{secret}"]\n' if source == "file" else "")
    if source == "environment":
        monkeypatch.setenv("REALTIME_TTS_API_KEYS", secret)
    assert main(["config", "--print", "--config", str(file), *words]) == 0
    printed = capsys.readouterr().out
    assert secret not in printed
    monkeypatch.delenv("REALTIME_TTS_API_KEYS", raising=False)
    file.write_text(printed)
    assert main(["config", "--check", str(file)]) == 1
    (told,) = capsys.readouterr().err.splitlines()
    assert re.search("access.api-key: the environment's REALTIME_TTS_API_KEYS? is not set", told)
    monkeypatch.setenv("REALTIME_TTS_API_KEY", secret)
    monkeypatch.setenv("REALTIME_TTS_API_KEYS", secret)
    assert main(["config", "--check", str(file)]) == 0


def test_a_secret_that_is_elsewhere_is_printed_as_where_it_is(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (file.parent / "keys").write_text("top-secret-key")
    said = f'[{{ file = "{file.parent}/keys" }}]'
    file.write_text(f"[access]\napi-key = {said}\n")
    assert main(["config", "--print", "--config", str(file)]) == 0
    assert f"api-key = {said}  # file" in capsys.readouterr().out


def test_what_is_printed_passes_the_check_through_a_pipe(file: Path) -> None:
    file.write_text('[engine]\ndevices = "cpu,cpu"\n[scheduling]\nlead-seconds = 1.5\n')
    command = f"{sys.executable} -m realtime_tts config"
    done = subprocess.run(
        f"{command} --print --config {file} --port 9000 | {command} --check -",
        shell=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "-: nothing is wrong\n", "")


def test_a_wrong_file_ends_the_server_before_anything_is_loaded(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text("[server]\nport = true\nprot = 3\n")
    assert main(["serve", "--config", str(file)]) == 2
    told = capsys.readouterr().err
    assert "server.port: expected an integer" in told and "server.prot" in told


def test_a_server_takes_no_file_that_it_cannot_read_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    assert main(["serve", "--engine", "fake", "--config", "-"]) == 2
    assert "reads its file again" in capsys.readouterr().err


# The example and the document.


def test_the_example_has_every_option_with_its_default(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["config", "--example"]) == 0
    text = capsys.readouterr().out
    assert text.isprintable() or all(len(line) <= 100 for line in text.splitlines())
    assert not any(tomllib.loads(text).values()), "it says nothing"
    used = tomllib.loads(re.sub(r"^#([\w-]+ = (?!\"?…))", r"\1", text, flags=re.M))
    for option in serve_options():
        assert option.table in used
        assert f"\n#{option.name} = " in text and f"[{option.variables[0]}" in text
        choices = f"one of {', '.join(map(str, option.choices))} [{option.variables[0]}"
        assert not option.choices or choices in re.sub(r"\n# ", " ", text)
        if option.default is not None:
            assert used[option.table][option.name] == option.default
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    assert main(["config", "--check", "-"]) == 0


def test_the_document_s_example_passes_the_check(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from realtime_tts.server.self_signed import write_self_signed

    tls = write_self_signed(file.parent)
    keys = file.parent / "keys"
    keys.write_text("some-long-key")
    keys.chmod(0o600)
    (text,) = re.findall(r"^```toml\n(.*?)^```", DOCUMENT, re.M | re.S)
    text = text.replace("/etc/realtime-tts/keys", str(keys))
    text = text.replace("/etc/realtime-tts/fullchain.pem", tls.certificate)
    text = text.replace("/etc/realtime-tts/privkey.pem", str(tls.key))
    file.write_text(text)
    assert main(["config", "--check", str(file)]) == 0, capsys.readouterr().err
    assert capsys.readouterr().err == ""


def test_the_document_names_every_table_and_all_that_is_reloaded() -> None:
    tables = re.findall(r"^\| `\[(\w+)\]` \|", DOCUMENT, re.M)
    assert tables == list(dict.fromkeys(one.table for one in serve_options()))
    reloaded = DOCUMENT.split("## What is reloaded")[1].split("\n## ")[0]
    for option in serve_options():
        named = f"`{option.name}`" in reloaded or (
            option.table == "limits" and "everything in `[limits]`" in reloaded
        )
        assert named == (option.dest in RELOADED), option.name
