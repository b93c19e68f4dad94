"""Compiles what a call of the released codec launches, for an H200, on a machine without a GPU.

Runs in a process of its own, because Triton's interpreter cannot be on. The decoder runs on the
meta device with every launch recorded instead of made. Prints a line for each kernel: its name,
registers of a thread, and bytes of its stack, where registers are spilled to.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch
import triton
from torch import Tensor
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.runtime.jit import JITFunction

from realtime_tts.kernels.codec_output import pcm
from realtime_tts.kernels.dispatch import Kernel
from realtime_tts.model.codec_gemm import GemmCodecDecoder
from realtime_tts.model.config import TextIds
from realtime_tts.model.random_weights import RandomWeights, released_config

_ARCHITECTURE = 90
_TYPES = {
    torch.bfloat16: "*bf16",
    torch.float32: "*fp32",
    torch.int64: "*i64",
    torch.int16: "*i16",
}
_launches: list[tuple[JITFunction[Any], dict[str, Any], dict[str, Any]]] = []


def record(kernel: JITFunction[Any], grid: Any) -> Callable[..., None]:
    def launch(*args: Any, **named: Any) -> None:
        values = dict(zip(kernel.arg_names, args, strict=False))
        values |= {name: value for name, value in named.items() if name in kernel.arg_names}
        options = {name: value for name, value in named.items() if name not in kernel.arg_names}
        _launches.append((kernel, values, options))

    return launch


def described(
    kernel: JITFunction[Any], values: dict[str, Any]
) -> tuple[dict[str, str], dict[tuple[int], Any], dict[tuple[int], Any]]:
    """Types, constants and divisible arguments, as a launch would specialise them."""
    types: dict[str, str] = {}
    constants: dict[tuple[int], Any] = {}
    attributes: dict[tuple[int], Any] = {}
    for index, parameter in enumerate(kernel.params):
        value = values[parameter.name]
        if parameter.is_constexpr or (isinstance(value, int) and value == 1):
            kind, constants[(index,)] = "constexpr", value
        elif isinstance(value, Tensor):
            kind = _TYPES[value.dtype]
        else:
            kind = "fp32" if isinstance(value, float) else "i32"
        if isinstance(value, Tensor) or (kind == "i32" and value % 16 == 0):
            attributes[(index,)] = [["tt.divisibility", 16]]
        types[parameter.name] = kind
    return types, constants, attributes


def registers(cubin: bytes) -> tuple[int, int]:
    """Registers of a thread, and bytes of its stack."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        command = [knobs.nvidia.cuobjdump.path, "--dump-resource-usage", file.name]
        told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    used = re.search(r"REG:(\d+) STACK:(\d+) ", told)
    assert used, told
    return int(used[1]), int(used[2])


def spare_the_tracer() -> None:
    """torch imports its tracer, in two seconds, to say that operations on the meta device are not
    to be traced. Here nothing is."""
    tracer: Any = ModuleType("torch._dynamo")
    tracer.disable = lambda function, *_, **__: function
    sys.modules[tracer.__name__] = torch._dynamo = tracer


def main(rows: int, frames: int) -> None:
    spare_the_tracer()
    JITFunction.__getitem__ = record
    Kernel.__call__ = lambda self, *args, **named: self.triton(*args, **named)  # type: ignore[method-assign]
    meta = torch.device("meta")
    weights = RandomWeights(device=meta, dtype=torch.float32, stored=torch.float32)
    config = released_config("1.7B", TextIds(*range(6))).codec
    decoder = GemmCodecDecoder(config, weights, meta)
    codes = torch.empty(rows, frames, 16, dtype=torch.long, device=meta)
    slots = torch.empty(rows, dtype=torch.long, device=meta)
    pcm(decoder.decode(codes, slots, decoder.new_slot_state(rows)))
    done: set[str] = set()
    for kernel, values, options in _launches:
        description = described(kernel, values)
        key = repr((kernel.__name__, description, options))
        if key not in done:
            done.add(key)
            target = GPUTarget("cuda", _ARCHITECTURE, 32)
            made = triton.compile(ASTSource(kernel, *description), target, options)
            print(kernel.__name__, *registers(made.asm["cubin"]))  # noqa: T201
