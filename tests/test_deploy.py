"""What deploys a server: locks that say what the constraints say, and files that fit together."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
LOCK, CPU_LOCK = DEPLOY / "requirements.lock", DEPLOY / "requirements-cpu.lock"
_PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;]+)(.*)$", re.MULTILINE)


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(file: Path) -> dict[str, str]:
    return {canonical(name): version for name, version, _ in _PIN.findall(file.read_text("utf-8"))}


def test_the_lock_has_the_versions_of_the_constraints() -> None:
    wanted, locked = pins(ROOT / "constraints.txt"), pins(LOCK)
    assert {"torch", "uvicorn", "websockets", "av", "cryptography"} <= set(locked)
    different = {name for name in wanted.keys() & locked.keys() if wanted[name] != locked[name]}
    assert not different


def test_the_lock_for_cpus_is_the_other_without_torch_and_cuda() -> None:
    whole, cpu = pins(LOCK), pins(CPU_LOCK)
    assert cpu.items() <= whole.items()
    left_out = whole.keys() - cpu.keys()
    assert {"torch", "triton"} <= left_out
    assert all(name.startswith(("nvidia-", "cuda-", "torch", "triton")) for name in left_out)


@pytest.mark.parametrize("lock", [LOCK, CPU_LOCK], ids=lambda lock: lock.stem)
def test_every_locked_package_has_hashes_and_no_index_is_named(lock: Path) -> None:
    entries = re.split(r"^(?=\S)", lock.read_text("utf-8"), flags=re.MULTILINE)
    entries = [entry for entry in entries if _PIN.match(entry)]
    assert len(entries) == len(_PIN.findall(lock.read_text("utf-8"))) > 40
    assert all(re.search(r"--hash=sha256:[0-9a-f]{64}", entry) for entry in entries)
    assert "://" not in lock.read_text("utf-8") and "--index-url" not in lock.read_text("utf-8")


def test_the_image_and_the_lock_have_the_same_torch() -> None:
    dockerfile = (DEPLOY / "Dockerfile").read_text("utf-8")
    assert re.findall(r"^ARG TORCH=(\S+)$", dockerfile, re.MULTILINE) == [pins(LOCK)["torch"]]


def test_the_server_in_an_image_is_not_root() -> None:
    stages = re.split(r"^FROM ", (DEPLOY / "Dockerfile").read_text("utf-8"), flags=re.MULTILINE)
    final = {stage.splitlines()[0].split()[-1]: stage for stage in stages}
    for name in ("base", "cuda"):  # `cpu` changes no user
        assert re.findall(r"^USER (\S+)$", final[name], re.MULTILINE)[-1] == "10001"
    assert "USER" not in final["cpu"] and "pip" not in final["cpu"] + final["base"]


def test_the_files_that_compose_mounts_are_there() -> None:
    compose = (DEPLOY / "compose.yaml").read_text("utf-8")
    mounted = re.findall(r"^ +- (\./[^:]+):", compose, re.MULTILINE)
    assert len(mounted) == 4 and all((DEPLOY / path).exists() for path in mounted)


def test_compose_has_prometheus_ask_the_server_by_its_name() -> None:
    """Not in the network of its container: who joins that has none once the server restarts."""
    compose = (DEPLOY / "compose.yaml").read_text("utf-8")
    assert "network_mode" not in compose
    services = re.findall(r"^  (\w+):\n    (?:build|image):", compose, re.MULTILINE)
    assert services == ["server", "prometheus", "grafana"]
    alone, composed = (
        re.sub(r"(?m)^#.*\n", "", (DEPLOY / "prometheus" / name).read_text("utf-8"))
        for name in ("prometheus.yml", "compose.yml")
    )
    assert alone.replace('"localhost:8000"', '"server:8000"') == composed
    source = DEPLOY / "grafana/provisioning/datasources/prometheus.yml"
    assert "url: http://prometheus:9090 " in source.read_text("utf-8")


@pytest.mark.skipif(not shutil.which("hadolint"), reason="hadolint is not installed")
def test_the_dockerfile_has_no_warning_of_hadolint() -> None:
    command = ["hadolint", "--failure-threshold", "warning", "deploy/Dockerfile"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_all_that_the_unit_keeps_is_in_folders_that_it_may_write() -> None:
    unit = (DEPLOY / "realtime-tts.service").read_text("utf-8")
    kinds = re.findall(r"^(State|Cache)Directory=realtime-tts$", unit, re.MULTILINE)
    assert kinds == ["State", "Cache"]
    lines = re.findall(r"^Environment=(.*)$", unit, re.MULTILINE)
    kept = dict(each.split("=") for line in lines for each in line.split())
    assert kept.keys() == {"HF_HOME", "XDG_DATA_HOME", "HOME"}
    for folder in kept.values():
        assert re.match(r"/var/(lib|cache)/realtime-tts(/|$)", folder), folder


def test_the_unit_takes_no_device_from_the_server() -> None:
    """ProtectClock=, before systemd 253, and any DeviceAllow= leave only the devices they name: a
    server with GPUs would run on the CPU."""
    unit = (DEPLOY / "realtime-tts.service").read_text("utf-8")
    lines = re.findall(r"^(\w+)=(.*)$", unit, re.MULTILINE)
    limits = {"ProtectClock", "PrivateDevices", "DevicePolicy", "DeviceAllow"}
    assert not limits & dict(lines).keys()
    assert {("CapabilityBoundingSet", ""), ("SystemCallFilter", "@system-service")} <= set(lines)


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd is not installed")
def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / "realtime-tts.service"
    program = "/opt/realtime-tts/bin/realtime-tts"
    text = (DEPLOY / unit.name).read_text("utf-8")
    assert f"ExecStart={program} serve" in text
    unit.write_text(text.replace(program, "/bin/true"))  # it need not be installed here
    command = ["systemd-analyze", "verify", str(unit)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
