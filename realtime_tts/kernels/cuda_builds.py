"""A kernel that is built several times, each build for a range of numbers of rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from ctypes import Structure
from typing import NamedTuple

import torch

from realtime_tts.kernels.cuda_program import CudaProgram, compile_cuda

PROGRAMS = 128
"""Thread blocks of a launch: each computes an equal share of each product of released sizes."""


class Build(NamedTuple):
    """How a kernel is built."""

    most: int
    """The most rows that it takes."""
    kernel: str
    """The name of the function, and of its file in `kernels/cuda`."""
    macros: Mapping[str, int]
    """Macros of cuda/sizes.cuh."""


class CudaBuilds:
    """All builds of a kernel, ascending by rows, on one device.

    `settings` returns the macros of a model's sizes together with those of a build. Raises
    CudaError if a kernel cannot be built or loaded.
    """

    def __init__(
        self,
        builds: Sequence[Build],
        settings: Callable[[Mapping[str, int]], Mapping[str, int]],
        device: torch.device,
    ) -> None:
        self._device, self._builds = device, builds
        with torch.cuda.device(device):
            self._programs = [
                CudaProgram(
                    compile_cuda(f"{kernel}.cu", settings(macros), "sm_90"), kernel, PROGRAMS
                )
                for _, kernel, macros in builds
            ]

    def kernel(self, rows: int) -> str:
        """Return the name of the kernel for this number of rows."""
        return self._builds[self._fit(rows)].kernel

    def constant(self, kernel: str, name: str) -> int:
        """Return the largest value of an int that all builds of a kernel define with CONSTANT."""
        pairs = zip(self._builds, self._programs, strict=True)
        return max(program.constant(name) for build, program in pairs if build.kernel == kernel)

    def launch(self, rows: int, arguments: Structure) -> None:
        """Launch the build for this number of rows, on the device's current stream."""
        with torch.cuda.device(self._device):
            self._programs[self._fit(rows)].launch(arguments)

    def _fit(self, rows: int) -> int:
        return next(index for index, build in enumerate(self._builds) if rows <= build.most)
