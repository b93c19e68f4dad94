"""The CUDA kernels' sources as libraries for the CPU (cuda_on_cpu/device.cuh).

Libraries are kept from run to run, in a folder that is named after all that they are made of.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from realtime_tts.kernels.cuda_program import SOURCES

HERE = Path(__file__).parent / "cuda_on_cpu"

Build = Callable[[str, Mapping[str, int]], Any]


OPTIONS = ("-O1", "-std=c++17", "-shared", "-fPIC", "-w", f"-I{HERE}", f"-I{SOURCES}")


def builder(parent: Path) -> Build:
    """Returns a function that gives a kernel's library, by its name and its macros. Libraries lie
    in a folder of `parent`, and those of other sources are removed from there."""
    if shutil.which("g++") is None or platform.machine() != "x86_64":
        pytest.skip("needs g++ on x86-64: it switches stacks by hand")
    folder = parent / _made_of()
    folder.mkdir(exist_ok=True)
    for other in parent.iterdir():
        if other != folder:
            shutil.rmtree(other, ignore_errors=True)
    loaded: dict[str, Any] = {}

    def build(kernel: str, settings: Mapping[str, int]) -> Any:
        macros = [f"-D{name}={value}" for name, value in settings.items()]
        key = _short(" ".join((kernel, *macros)).encode())
        if key not in loaded:
            target = folder / f"{key}.so"
            if not target.exists():
                _compile(kernel, macros, target)
            loaded[key] = ctypes.CDLL(str(target))
        return loaded[key]

    return build


def _compile(kernel: str, macros: Sequence[str], target: Path) -> None:
    """Another process may do the same: a library is there as a whole or not at all."""
    part = target.with_suffix(f".{os.getpid()}")
    command = ["g++", *OPTIONS, *macros, str(HERE / f"{kernel}.cpp"), "-o", str(part)]
    subprocess.run(command, check=True, timeout=120)
    part.replace(target)


def _made_of() -> str:
    """The compiler, its options and every source."""
    version = subprocess.run(["g++", "--version"], check=True, capture_output=True, timeout=60)
    sources = sorted(path for folder in (HERE, SOURCES) for path in folder.iterdir())
    contents = [path.name.encode() + path.read_bytes() for path in sources if path.is_file()]
    return _short(b"".join((version.stdout, *(each.encode() for each in OPTIONS), *contents)))


def _short(of: bytes) -> str:
    return hashlib.sha256(of).hexdigest()[:20]
