"""Compiles every Triton kernel as the launchers ask for it, for GPUs that need not be there."""

from __future__ import annotations

import sys
from typing import Any

import torch
from triton.backends.compiler import GPUTarget
from triton.runtime import driver, jit

from realtime_tts import kernels
from realtime_tts.kernels.first_codes import SETTINGS, CodeRules, SlotDraws
from realtime_tts.kernels.kept_frames import CodeTables, DrawnCodes, SlotFrames

BF16 = torch.bfloat16


class NoDriver:
    """As much of a driver as the compiler asks for. Each architecture is a device of its own."""

    def __init__(self, architecture: int) -> None:
        self._architecture = architecture

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", self._architecture, 32)

    def get_current_device(self) -> int:
        return self._architecture

    def get_current_stream(self, device: int) -> int:
        return 0


def compile_instead_of_launching() -> None:
    run = jit.JITFunction.run

    def compiled(self: Any, *args: Any, **kwargs: Any) -> Any:
        built = run(self, *args, **kwargs | {"warmup": True})
        assert built.asm["cubin"]
        assert built.metadata.target == driver.active.get_current_target()
        sys.stdout.write(f"{built.metadata.target.arch} {self.__name__}\n")
        return built

    jit.JITFunction.run = compiled


def elementwise() -> None:
    x = torch.zeros(2, 2048, dtype=BF16)
    kernels.rms_norm.triton(x, x[0], 1e-6)
    kernels.add_rms_norm.triton(x[None], x, x[0], 1e-6)
    kernels.add_rms_norm.triton(x.expand(4, 2, 2048).float(), x, x[0], 1e-6)
    kernels.swiglu.triton(x)


def products(rows: int, dtype: torch.dtype) -> None:
    """Of a layer of the larger released checkpoint."""
    for outputs, inputs in ((4096, 2048), (2048, 2048), (2048, 6144)):
        x = torch.zeros(rows, inputs, dtype=dtype)
        kernels.split_k_product.triton(x, torch.zeros(outputs, inputs, dtype=dtype))
    x = torch.zeros(rows, 2048, dtype=dtype)
    kernels.swiglu_product.triton(x, torch.zeros(2 * 6144, 2048, dtype=dtype))


def attention(rows: int, length: int) -> None:
    """With the heads of the released checkpoints."""
    heads, kv_heads, dim = 16, 8, 128
    pages = torch.zeros(2, 2, kv_heads, 16, dim, dtype=BF16)
    tables, zeros = torch.zeros(rows + 1, 4, dtype=torch.int32), torch.zeros(rows).long()
    where = (pages, tables, zeros)
    turns = torch.zeros(32, dim)
    qkv = torch.zeros(1, rows, heads + 2 * kv_heads, dim, dtype=BF16)
    norm = torch.zeros(heads + kv_heads, dim, dtype=BF16)
    query = kernels.rope_and_store.triton(qkv, norm, turns, turns, *where, zeros, 1e-6)
    kernels.decode_attention.triton(query, *where, zeros, 1)
    kept = torch.zeros(3, 2, kv_heads, length, dim, dtype=BF16)
    kernels.store_prefix.triton(kept, zeros, zeros, pages.expand(3, *pages.shape), tables, zeros)
    query = torch.zeros(rows * length, heads, dim, dtype=BF16)
    begins = torch.zeros(rows + 1).long()
    kernels.prompt_attention.triton(query, *where, zeros, begins, length)


def sampling(vocab: int) -> None:
    ones = torch.ones(2)
    logits = torch.zeros(2, vocab)
    kernels.sample.triton(logits, ones, ones.int(), ones.bool(), torch.zeros(2, 16)[:, 3])


def frames() -> None:
    """Of the released checkpoints."""
    slots, zeros = torch.zeros(2).long(), torch.zeros(3).long()
    state = SlotDraws(torch.zeros(3, SETTINGS).long(), torch.zeros(3, 3072).bool(), zeros)
    rules = CodeRules(2048, 2150, 2, 16)
    first, failed, _ = kernels.first_codes.triton(
        torch.zeros(2, 3072, dtype=BF16), slots, state, rules
    )
    drawn = DrawnCodes(first, torch.zeros(2, 15).long(), failed)
    table = torch.zeros(15 * 2048, 2048, dtype=BF16)
    kept = SlotFrames(table[:3], torch.zeros(3, 32, 16).long(), zeros, zeros, zeros.int())
    outputs = torch.zeros(2, 17, dtype=torch.int32)
    kernels.keep_frame.triton(slots, drawn, CodeTables(table, table, 2150), kept, outputs)


def main(*architectures: int) -> None:
    """Compute capabilities, without the dot. Prints which and the kernel."""
    compile_instead_of_launching()
    for architecture in architectures:
        driver.set_active(NoDriver(architecture))
        elementwise()
        for rows in (9, 17, 64):
            products(rows, BF16)
        products(64, torch.float16)
        attention(rows=1, length=16)  # split
        attention(rows=64, length=256)
        sampling(2048)
        sampling(3072)
        frames()
