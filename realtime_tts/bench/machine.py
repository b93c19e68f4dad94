"""The machine on which a result was measured: a figure without its machine means nothing."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from realtime_tts.cores import usable_cores
from realtime_tts.version import __version__

COMMIT_VARIABLE = "REALTIME_TTS_COMMIT"
_CPU_INFO = Path("/proc/cpuinfo")


def describe_machine() -> dict[str, str | int]:
    """Return CPU model, usable cores, GPUs, system, versions, and the commit where it is known."""
    found = gpus()
    return {
        "cpu": cpu_model(),
        "cores": usable_cores(),
        "gpu": names(found),
        "gpu_driver": found[0].driver if found else "",
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "realtime_tts": __version__,
        "torch": _version("torch"),
        "websockets": _version("websockets"),
        "commit": commit(),
    }


def hardware(machine: Mapping[str, str | int]) -> str:
    """Return processor, cores and GPUs of a `describe_machine` as a phrase."""
    cores = "1 core" if machine["cores"] == 1 else f"{machine['cores']} cores"
    gpu = f", {machine['gpu']} (driver {machine['gpu_driver']})" if machine["gpu"] else ""
    return f"{machine['cpu']}, {cores}{gpu}"


def cpu_model() -> str:
    """Return the processor's own name where the system reports it, else its architecture."""
    try:
        lines = _CPU_INFO.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    for line in lines:
        name, _, value = line.partition(":")
        if name.strip() in ("model name", "Model", "Hardware") and value.strip():
            return value.strip()
    return platform.processor() or platform.machine() or "unknown"


def commit() -> str:
    """Return the checkout's commit, with `+` when files differ from it.

    Outside a checkout, as in a container: the value of REALTIME_TTS_COMMIT, or an empty string.
    """
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return os.environ.get(COMMIT_VARIABLE, "")
    git = "git", "-C", str(root)
    head = _printed(*git, "rev-parse", "--short=12", "HEAD")
    if not head:
        return ""
    return head + ("+" if _printed(*git, "status", "--porcelain", "--untracked-files=no") else "")


def _printed(*command: str) -> str:
    """Return what a program prints; nothing if it is not here, fails or hangs."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return ""


_QUERY = "--query-gpu=name,driver_version,memory.used"


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU, as nvidia-smi reports it. `memory_mib`: memory in use now, by all processes."""

    name: str
    driver: str
    memory_mib: int


def gpus() -> tuple[Gpu, ...]:
    """Return every GPU of this machine, from nvidia-smi; without it there are none.

    Takes some tens of milliseconds.
    """
    return parse(_printed("nvidia-smi", _QUERY, "--format=csv,noheader,nounits"))


def parse(text: str) -> tuple[Gpu, ...]:
    """Parse nvidia-smi's lines of `name, driver, MiB`; other lines are ignored."""
    found = []
    for line in text.splitlines():
        parts = [part.strip() for part in line.split(",")]
        if len(parts) == 3 and parts[2].isdigit():
            found.append(Gpu(parts[0], parts[1], int(parts[2])))
    return tuple(found)


def names(found: tuple[Gpu, ...]) -> str:
    """Return the names of GPUs as in `2 x NVIDIA H200`; an empty string if there are none."""
    kinds = {gpu.name: sum(other.name == gpu.name for other in found) for gpu in found}
    return ", ".join(f"{count} x {name}" if count > 1 else name for name, count in kinds.items())
