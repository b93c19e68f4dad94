"""GPUs of this machine and their memory, as the driver's own tool tells; nothing without it."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass

_QUERY = "--query-gpu=name,driver_version,memory.used"


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU. `memory_mib`: in use now, by everybody on it."""

    name: str
    driver: str
    memory_mib: int


def gpus() -> tuple[Gpu, ...]:
    """Every GPU there is; takes some tens of milliseconds."""
    command = ["nvidia-smi", _QUERY, "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return parse(done.stdout) if done.returncode == 0 else ()


def parse(text: str) -> tuple[Gpu, ...]:
    """Lines of `name, driver, MiB`; others are left out."""
    found = []
    for line in text.splitlines():
        parts = [part.strip() for part in line.split(",")]
        if len(parts) == 3 and parts[2].isdigit():
            found.append(Gpu(parts[0], parts[1], int(parts[2])))
    return tuple(found)


def names(found: tuple[Gpu, ...]) -> str:
    """For a machine's description: `2 x NVIDIA H200`; empty without any."""
    kinds = {gpu.name: sum(other.name == gpu.name for other in found) for gpu in found}
    return ", ".join(f"{count} x {name}" if count > 1 else name for name, count in kinds.items())
