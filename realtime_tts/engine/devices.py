"""Which device an engine gets by default: found without torch, which the front never has.

`look_up` asks the machine, `choose` decides. A device that was named is not looked up: the engine
reports it if it cannot be used (`torch_setup.py`).
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from realtime_tts.cores import usable_cores
from realtime_tts.engine import cuda_probe

LEAST_CAPABILITY = (8, 0)
"""Compute capability of the oldest GPUs that are supported: Ampere (A100 is 8.0, A10 8.6).

Checkpoints are stored in bfloat16, for which older GPUs have no tensor cores, and Triton, in which
the kernels are written, supports none of them."""

_DRIVER = Path("/proc/driver/nvidia/version")
_CPU_BUILD = (
    "there is an NVIDIA GPU, but torch is built for CPUs: install a build for CUDA to use it"
)
_PROBE_SECONDS = 20.0
_BUILT_FOR = re.compile(r"^(cuda|hip)\b[^=\n]*=\s*'([^']*)'", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Gpu:
    """An NVIDIA GPU. `capability`: major and minor."""

    name: str
    capability: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Machine:
    """The devices of a machine.

    `torch`: what the installed build is for, "cuda", "rocm" or "cpu". `gpus`: NVIDIA's, in torch's
    order; empty where torch cannot use any. `problem`: a sentence that says why there may be more.
    """

    torch: str = "cpu"
    gpus: tuple[Gpu, ...] = ()
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """The devices to use. `devices`: torch's names, the best one first; never empty.

    `reasons`: a sentence for each device that is there and cannot be used.
    """

    devices: tuple[str, ...]
    reasons: tuple[str, ...] = ()


def choose(machine: Machine) -> Choice:
    """Return every GPU that the engine can use, or else the CPU."""
    if machine.torch == "rocm":
        return Choice(("cpu",), ("AMD GPUs are not supported: the engine runs on the CPU",))
    if machine.problem is not None:
        return Choice(("cpu",), (machine.problem,))
    numbered = [(f"cuda:{index}", gpu) for index, gpu in enumerate(machine.gpus)]
    usable = tuple(name for name, gpu in numbered if gpu.capability >= LEAST_CAPABILITY)
    reasons = [too_old(gpu.name, gpu.capability) for name, gpu in numbered if name not in usable]
    return Choice(usable or ("cpu",), tuple(reasons))


def too_old(name: str, capability: tuple[int, int]) -> str:
    """Return the sentence that says why a GPU is too old."""
    found, least = (".".join(map(str, each)) for each in (capability, LEAST_CAPABILITY))
    return (
        f"{name} has compute capability {found}; the engine needs {least} or later, for bfloat16 "
        "and for Triton"
    )


def look_up() -> Machine:
    """Look at this machine. Takes no time where torch is built for CPUs, else about 0.1 s."""
    built_for, version = torch_build()
    if built_for != "cuda":
        unused = built_for == "cpu" and _DRIVER.exists()
        return Machine(built_for, problem=_CPU_BUILD if unused else None)
    command = [sys.executable, "-I", "-S", str(Path(cuda_probe.__file__))]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_PROBE_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Machine(built_for, problem=f"the GPUs cannot be listed: {error}")
    if done.returncode != 0:
        last = [f"status {done.returncode}", *done.stderr.strip().splitlines()][-1]
        return Machine(built_for, problem=f"the GPUs cannot be listed: {last}")
    return machine_of(done.stdout, version)


def machine_of(probed: str, version: str) -> Machine:
    """Parse the output of the probe, for a torch that is built for this `version` of CUDA."""
    found = json.loads(probed)
    supported = found["cuda"] // 1000
    # A driver runs what is built for any minor version of the CUDA that it supports.
    if found["gpus"] and supported < int(version.partition(".")[0]):
        problem = f"the NVIDIA driver supports CUDA {supported}, and torch is built for {version}"
        return Machine("cuda", problem=f"{problem}: install a newer driver to use the GPU")
    gpus = (Gpu(one["name"], tuple(one["capability"])) for one in found["gpus"])
    return Machine("cuda", tuple(gpus))


def usual_threads(engines: int = 1) -> int:
    """Return the number of threads that each of so many engines has on a CPU: they share all cores
    but one, which the sockets need, and none has more than 8.

    Where two threads of a matrix product share a core with anything else, each waits for the other,
    and a step takes ten times as long.
    """
    return min(max((usable_cores() - 1) // engines, 1), 8)


def torch_build() -> tuple[str, str]:
    """Return what the installed torch is built for, and the version of that (CUDA or HIP), without
    importing torch; "cpu" if there is none."""
    spec = find_spec("torch")
    if spec is None or spec.origin is None:
        return "cpu", ""
    try:
        text = Path(spec.origin).with_name("version.py").read_text(encoding="utf-8")
    except OSError:
        return "cpu", ""
    return build_of(text)


def build_of(version_file: str) -> tuple[str, str]:
    """Parse the text of torch/version.py for `torch_build`."""
    found = {match.group(1): match.group(2) for match in _BUILT_FOR.finditer(version_file)}
    if "hip" in found:
        return "rocm", found["hip"]
    return ("cuda", found["cuda"]) if "cuda" in found else ("cpu", "")
