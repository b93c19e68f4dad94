"""The CUDA kernels' sources as libraries for the CPU (cuda_on_cpu/device.cuh)."""

from __future__ import annotations

import ctypes
import platform
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from realtime_tts.kernels.cuda_program import SOURCES

HERE = Path(__file__).parent / "cuda_on_cpu"

Build = Callable[[str, Mapping[str, int]], Any]


def builder(folder: Path) -> Build:
    """Returns a function that gives a kernel's library, by its name and its macros."""
    if shutil.which("g++") is None or platform.machine() != "x86_64":
        pytest.skip("needs g++ on x86-64: it switches stacks by hand")
    kept: dict[str, Any] = {}

    def build(kernel: str, settings: Mapping[str, int]) -> Any:
        macros = [f"-D{name}={value}" for name, value in settings.items()]
        key = " ".join((kernel, *macros))
        if key not in kept:
            target = folder / f"kernel{len(kept)}.so"
            options = ["-O2", "-std=c++17", "-shared", "-fPIC", "-w", f"-I{HERE}", f"-I{SOURCES}"]
            command = ["g++", *options, *macros, str(HERE / f"{kernel}.cpp"), "-o", str(target)]
            subprocess.run(command, check=True, timeout=120)
            kept[key] = ctypes.CDLL(str(target))
        return kept[key]

    return build
