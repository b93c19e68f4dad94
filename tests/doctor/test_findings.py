"""What `realtime-tts doctor` says of a machine, beside what is known of it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import sysconfig
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from realtime_tts.cli import main
from realtime_tts.doctor import findings
from realtime_tts.doctor.findings import (
    Finding,
    Verdict,
    compiler,
    disk,
    machine_findings,
    server_packages,
)
from realtime_tts.doctor.self_test import judged_rtf, judged_ttfa
from realtime_tts.engine import devices
from realtime_tts.engine.devices import Gpu, Machine


def one(subject: str, host: str = "127.0.0.1", port: int = 0) -> Finding:
    return next(each for each in machine_findings(host, port) if each.subject == subject)


def test_a_port_that_is_taken_is_told_and_a_free_one_is_not() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        taken = one("port", port=port)
    assert taken.verdict == Verdict.WARNING and f"127.0.0.1 port {port}" in taken.text
    assert one("port", port=port).verdict == Verdict.OK
    none = one("port", port=70_000)
    assert none.verdict == Verdict.WARNING and "65535" in none.text


def test_the_machine_names_as_many_cores_as_this_process_may_use() -> None:
    count = len(os.sched_getaffinity(0))
    assert f", {count} {'core' if count == 1 else 'cores'}, " in one("machine").text


@pytest.mark.parametrize(("most", "verdict"), [(64, Verdict.WARNING), (4_096, Verdict.OK)])
def test_a_limit_on_open_files_that_sessions_would_reach_is_told(
    most: int, verdict: Verdict
) -> None:
    program = "from realtime_tts.doctor.findings import files; print(files())"
    limited = f"ulimit -n {most} && exec {sys.executable} -c '{program}'"
    said = subprocess.run(["sh", "-c", limited], capture_output=True, text=True, check=True).stdout
    assert said.startswith(verdict) and (f"{most} open files" in said) == (most == 64)


def test_a_disk_is_judged_where_the_folder_will_be(tmp_path: Path) -> None:
    folder = tmp_path / "not" / "there" / "yet"
    assert disk("voices", folder, 0.0).verdict == Verdict.OK
    full = disk("voices", folder, 1e9)
    assert full.verdict == Verdict.WARNING and str(folder) in full.text
    assert not folder.exists()
    assert disk("voices", tmp_path / ("long" * 100), 0.0).verdict == Verdict.OK, "nor can it be"


@pytest.mark.parametrize("variables", ["", "XDG_CACHE_HOME", "XDG_CACHE_HOME HF_HOME HF_HUB_CACHE"])
def test_the_disk_of_models_is_that_to_which_they_are_downloaded(
    variables: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("XDG_CACHE_HOME", "HF_HOME", "HF_HUB_CACHE"):
        monkeypatch.delenv(name, raising=False)
    for name in variables.split():
        monkeypatch.setenv(name, f"/elsewhere/{name}")
    asked = "from huggingface_hub.constants import HF_HUB_CACHE; print(HF_HUB_CACHE)"
    told = subprocess.run([sys.executable, "-c", asked], check=True, capture_output=True, text=True)
    assert findings.models_folder() == Path(told.stdout.strip())


def test_a_missing_package_of_the_server_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def find(name: str) -> str:
        if name == "uvicorn":
            raise PackageNotFoundError(name)
        return "1.0"

    monkeypatch.setattr(
        findings,
        "requires",
        lambda _: [
            "uvicorn>=0.50; extra == 'server'",
            "msgspec>=0.19",
            "av>=18; extra == 'codecs'",
        ],
    )
    assert server_packages(find) == {"uvicorn": "", "msgspec": "1.0"}
    monkeypatch.setattr(findings, "server_packages", lambda: server_packages(find))
    missing = one("versions")
    assert missing.verdict == Verdict.FAILED and "missing: uvicorn" in missing.text
    assert list(machine_findings("127.0.0.1", 0))[-1] == missing  # the rest would need it


def test_a_gpu_needs_a_compiler_and_the_headers_of_python(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def include(_name: str, _scheme: str) -> str:
        return str(tmp_path)

    monkeypatch.setattr(sysconfig, "get_path", include)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    nothing = compiler()
    assert nothing.verdict == Verdict.FAILED
    assert nothing.text == f"no C compiler (gcc, clang or $CC) and no Python.h in {tmp_path}"
    assert "python3-dev" in nothing.advice

    clang = tmp_path / "clang"
    clang.touch(0o755)
    assert compiler().text == f"no Python.h in {tmp_path}"

    (tmp_path / "Python.h").touch()
    assert compiler() == Finding("compiler", Verdict.OK, f"{clang}, with the headers of Python")


@pytest.mark.parametrize(
    ("machine", "asks"),
    [(Machine("cuda", (Gpu("H200", (9, 0)),)), True), (Machine("cpu"), False)],
    ids=["GPU", "CPU"],
)
def test_the_compiler_is_looked_for_where_there_are_kernels(
    machine: Machine, asks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devices, "look_up", lambda: machine)
    subjects = [one.subject for one in machine_findings("127.0.0.1", 0)]
    assert ("compiler" in subjects) == asks


def test_speech_is_judged_by_whether_a_listener_hears_gaps() -> None:
    assert judged_rtf(1.0, 4.0).text.startswith("RTF 0.25")
    assert judged_rtf(1.0, 4.0).verdict == Verdict.OK
    assert judged_rtf(4.0, 4.0).verdict == Verdict.FAILED
    assert judged_ttfa(300.0, 300.0).verdict == Verdict.OK
    assert judged_ttfa(300.1, 300.0).verdict == Verdict.WARNING


def test_a_server_speaks_and_its_environment_does_not_matter(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("REALTIME_TTS_API_KEYS", "somebody-else-s-key")
    monkeypatch.setenv("REALTIME_TTS_TLS_CERT", "/none/such.pem")
    assert main(["doctor", "--port", "0", "--start", "--engine fake"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.split()[:3] == ["ok", "engine", "tones,"] for line in lines)
    assert any(line.split()[:3] == ["ok", "speech", "TTFA"] for line in lines)
    assert any(line.split()[:3] == ["ok", "speech", "RTF"] for line in lines)
    assert lines[-1].startswith("0 failed, ")


def test_a_server_that_does_not_start_fails_the_test_and_says_why(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["doctor", "--port", "0", "--start", "--engine fake --slots 0"]) == 1
    output = capsys.readouterr().out
    assert "failed   start" in output and "slots" in output
    assert output.splitlines()[-1].startswith("1 failed, ")
