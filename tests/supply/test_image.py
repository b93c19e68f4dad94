"""The steps of the image for CPUs, run one after another on this machine: there is no container
runtime in the tests. What needs one or the root user (`FROM`, `useradd`, `USER`) is left out."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def stages() -> dict[str, list[tuple[str, str]]]:
    """The instructions of each stage, by its name; lines that go on are joined."""
    text = (ROOT / "deploy/Dockerfile").read_text("utf-8").replace("\\\n", " ")
    found: dict[str, list[tuple[str, str]]] = {}
    name = ""
    for line in text.splitlines():
        word, _, rest = line.strip().partition(" ")
        if word == "FROM":
            name = rest.split()[-1]
            found[name] = []
        elif word and not word.startswith("#"):
            found.setdefault(name, []).append((word, rest.strip()))
    return found


def listed(stage: list[tuple[str, str]], word: str) -> list[str]:
    """The words of an instruction in JSON's form, such as CMD."""
    found = next(rest for instruction, rest in stage if instruction == word)
    return [str(each) for each in json.loads(found[found.index("[") :])]


def copied() -> list[str]:
    """What `COPY . .` copies: .dockerignore leaves everything out but these."""
    lines = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    assert lines[0] == "**"
    names = [line[1:] for line in lines if line.startswith("!")]
    return sorted(
        str(path.relative_to(ROOT))
        for name in names
        for path in ([ROOT / name] if "*" not in name else ROOT.glob(name))
    )


@pytest.mark.timeout(900)
def test_the_steps_of_the_cpu_image_give_a_server_that_is_healthy(tmp_path: Path) -> None:
    source, prefix, wheels = tmp_path / "src", tmp_path / "prefix", tmp_path / "wheels"
    source.mkdir()
    for name in copied():
        place = ROOT / name
        if place.is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(place, source / name)
        else:
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(place, source / name, ignore=ignored)

    def here(step: str) -> str:
        step = step.replace("/opt/realtime-tts", str(prefix)).replace("/opt/wheels", str(wheels))
        return re.sub(r"^python ", f"{shlex.quote(sys.executable)} ", step)

    outside = ("PYTHONPATH", "VIRTUAL_ENV", "PYTHONHOME")
    environment = {name: it for name, it in os.environ.items() if name not in outside}
    found = stages()
    for name in ("build", "build-cpu"):
        for instruction, rest in found[name]:
            if instruction == "ARG":
                variable, _, value = rest.partition("=")
                environment.setdefault(variable, value)
            elif instruction == "RUN":
                shell = ["sh", "-c", here(rest)]
                done = subprocess.run(
                    shell, cwd=source, env=environment, capture_output=True, text=True
                )
                assert done.returncode == 0, f"{rest}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    environment["PATH"] = f"{prefix}/bin:{os.environ['PATH']}"
    environment |= {"HF_HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)}
    command = [str(prefix / "bin" / listed(found["base"], "ENTRYPOINT")[0])]
    command += [*listed(found["base"], "CMD"), "--port", port]
    check = [part.replace(":8000", f":{port}") for part in listed(found["base"], "HEALTHCHECK")]
    server = subprocess.Popen(command, env=environment, cwd=tmp_path)
    try:
        deadline = time.monotonic() + 120
        quiet = subprocess.DEVNULL
        while subprocess.run(check, env=environment, cwd=tmp_path, stderr=quiet).returncode != 0:
            assert server.poll() is None and time.monotonic() < deadline
            time.sleep(0.5)
    finally:
        server.terminate()
        assert server.wait(timeout=60) == 0
    assert subprocess.run(check, env=environment, cwd=tmp_path, stderr=quiet).returncode != 0
