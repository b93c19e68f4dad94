"""What a device can do at best: bandwidth of large copies and reads, rate of large products."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from realtime_tts.engine.torch_setup import name_of

_COPY_BYTES = {"cpu": 1 << 28, "cuda": 1 << 31}
_PRODUCT = {"cpu": 1024, "cuda": 8192}
_CPU_CACHE = Path("/sys/devices/system/cpu/cpu0/cache")


@dataclass(frozen=True, slots=True)
class Limits:
    """What the machine can do at best.

    `bytes_per_second`: the better of a copy, read and written, and a read; a processor that fetches
    what it is about to overwrite copies slower than it reads. `flops_per_second` by precision.
    `cache_bytes`: size of the last cache; 0 where unknown.
    """

    device: str
    bytes_per_second: float
    flops_per_second: dict[str, float]
    cache_bytes: int


def measure_limits(device: torch.device, dtypes: tuple[torch.dtype, ...]) -> Limits:
    """Measure a device's limits, with products in these precisions. Takes about a second."""
    rates = {name_of(dtype): _product_rate(device, dtype) for dtype in dtypes}
    return Limits(_name(device), _bandwidth(device), rates, _cache_bytes(device))


def fastest(work: Callable[[], object], device: torch.device, seconds: float = 0.3) -> float:
    """Return the seconds of the fastest of at least three runs, repeated for about `seconds`."""
    work()
    synchronise(device)
    best, until, runs = float("inf"), time.perf_counter() + seconds, 0
    while runs < 3 or time.perf_counter() < until:
        started = time.perf_counter()
        work()
        synchronise(device)
        best, runs = min(best, time.perf_counter() - started), runs + 1
    return best


def synchronise(device: torch.device) -> None:
    """Wait until the device has finished its queued work."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _bandwidth(device: torch.device) -> float:
    size = _COPY_BYTES.get(device.type, 1 << 28)
    source = torch.zeros(size // 4, device=device)
    target = torch.empty_like(source)
    copied = 2 * size / fastest(lambda: target.copy_(source), device)
    matrix, vector = source.view(-1, 4096), torch.zeros(4096, device=device)
    return max(copied, size / fastest(lambda: matrix @ vector, device))


def _product_rate(device: torch.device, dtype: torch.dtype) -> float:
    size = _PRODUCT.get(device.type, 1024)
    a = torch.ones(size, size, dtype=dtype, device=device)
    return float(2 * size**3 / fastest(lambda: a @ a, device))


def _name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else str(device)


def _cache_bytes(device: torch.device) -> int:
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).L2_cache_size)
    found = [0]
    for path in _CPU_CACHE.glob("index*/size"):
        text = path.read_text().strip()
        if text.endswith(("K", "M")):
            found.append(int(text[:-1]) << (10 if text.endswith("K") else 20))
    return max(found)
