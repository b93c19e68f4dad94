"""A launch that is built several times, each for some numbers of rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from ctypes import Structure
from typing import NamedTuple

import torch

from realtime_tts.kernels.cuda_program import CudaProgram, compile_cuda

PROGRAMS = 128
"""Each has the same share of a product of the released sizes."""


class Build(NamedTuple):
    """How a kernel is built."""

    most: int
    """Rows it takes."""
    kernel: str
    """The function, and its file in `kernels/cuda`."""
    macros: Mapping[str, int]
    """Of cuda/sizes.cuh."""


class CudaBuilds:
    """All builds of a launch, ascending by rows, on one device.

    `settings` gives the macros of a model's sizes with those of a build. Raises CudaError if a
    kernel cannot be built or loaded.
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
        """Name the kernel for so many rows."""
        return self._builds[self._fit(rows)].kernel

    def constant(self, kernel: str, name: str) -> int:
        """Return the largest value of an int that all builds of a kernel say by CONSTANT."""
        pairs = zip(self._builds, self._programs, strict=True)
        return max(program.constant(name) for build, program in pairs if build.kernel == kernel)

    def launch(self, rows: int, arguments: Structure) -> None:
        """Launch what takes so many rows, on the device's current stream."""
        with torch.cuda.device(self._device):
            self._programs[self._fit(rows)].launch(arguments)

    def _fit(self, rows: int) -> int:
        return next(index for index, build in enumerate(self._builds) if rows <= build.most)
