"""Programs of fixed shapes, captured as CUDA graphs and replayed; without CUDA simply called.

A program reads its inputs from fixed memory and leaves its outputs in fixed memory, so that a
replay finds both where the capture did. Sizes come in buckets, and a batch is padded to the next
one.
"""

from __future__ import annotations

import logging
import time
from bisect import bisect_left
from collections.abc import Callable, Hashable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from realtime_tts.engine.interface import Pcm
from realtime_tts.logs import event

log = logging.getLogger(__name__)

ROW_BUCKETS = (1, 2, 4, 8, 16, 32, 64, 96, 128, 192, 256, 384, 512)
_BEYOND = 256  # step of the buckets after those
_WARM_UP_RUNS = 2  # kernels are loaded and chosen, workspaces taken


class Buckets:
    """Batch sizes, ascending; the last one is the largest that is possible."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = tuple(sorted(sizes))

    @classmethod
    def of_rows(cls, most: int) -> Buckets:
        """Return the buckets for batches of 1 to `most` rows."""
        sizes = [*ROW_BUCKETS, *range(ROW_BUCKETS[-1] + _BEYOND, most, _BEYOND)]
        return cls([*(size for size in sizes if size < most), most])

    def fit(self, count: int) -> int:
        """Return the smallest size that holds `count`."""
        index = bisect_left(self.sizes, count)
        assert index < len(self.sizes), f"{count} is beyond the largest size {self.sizes[-1]}"
        return self.sizes[index]


class Graphs:
    """Programs by key. With `capture` they run as CUDA graphs, which share one memory pool, so only
    one of them runs at a time."""

    def __init__(self, device: torch.device, *, capture: bool) -> None:
        assert not capture or device.type == "cuda", f"{device} has no graphs"
        self._device, self._capture = device, capture
        self._pool = torch.cuda.graph_pool_handle() if capture else None
        self._graphs: dict[Hashable, torch.cuda.CUDAGraph] = {}
        self._stream: torch.cuda.Stream | None = None
        """The stream for warming up and capturing. There is one for all: cuBLAS keeps a workspace
        of 32 MiB for every stream, in which a program that runs beside these must not write."""
        self.enabled = capture
        """Set it to False to call programs instead of replaying them, to time their parts."""

    def capture(self, key: Hashable, program: Callable[[], None], late: bool = False) -> None:
        """Capture `program`, once; its inputs must touch no utterance meanwhile.

        Does nothing if captures are off. `late`: log it, because a turn is waiting.
        """
        if not self._capture or key in self._graphs:
            return
        started = time.perf_counter()
        if self._stream is None:
            self._stream = torch.cuda.Stream(self._device)  # type: ignore[no-untyped-call]
        stream = self._stream
        stream.wait_stream(torch.cuda.current_stream(self._device))
        with torch.cuda.stream(stream):
            for _ in range(_WARM_UP_RUNS):
                program()
        torch.cuda.current_stream(self._device).wait_stream(stream)
        torch.cuda.synchronize(self._device)
        graph = torch.cuda.CUDAGraph()
        # Other threads may use the device, for instance to ask for its memory.
        with torch.cuda.graph(
            graph, pool=self._pool, stream=stream, capture_error_mode="thread_local"
        ):
            program()
        self._graphs[key] = graph
        if late:
            seconds = round(time.perf_counter() - started, 3)
            event(log, logging.INFO, "engine.graph_captured", graph=str(key), seconds=seconds)

    def has(self, key: Hashable) -> bool:
        """Return whether `run` needs no capture first."""
        return not self._capture or key in self._graphs

    def run(self, key: Hashable, program: Callable[[], None]) -> None:
        """Replay the capture of `key`, or call the program."""
        graph = self._graphs.get(key) if self.enabled else None
        if graph is None:
            assert not self.enabled, f"{key} was not captured"
            program()
        else:
            graph.replay()


class InputBuffer:
    """Numbers on their way to the device. A step's numbers are kept until the next `reset`."""

    def __init__(self, size: int, device: torch.device) -> None:
        """`size` is the most numbers that one `send` takes."""
        self._cuda = device.type == "cuda"
        self._host = torch.zeros(2 * size, dtype=torch.long, pin_memory=self._cuda)
        self._numbers = self._host.numpy()
        self._device = torch.zeros(2 * size, dtype=torch.long, device=device)
        self._used = 0

    def reset(self) -> None:
        """Reuse the memory: the device has read everything, because its step is done."""
        self._used = 0

    def send(self, values: Sequence[int] | NDArray[np.int64], target: Tensor) -> None:
        """Copy `values`, int64, to the beginning of `target`."""
        span = self._written(values)
        target[: len(values)].copy_(self._host[span], non_blocking=True)

    def upload(self, values: Sequence[int]) -> Tensor:
        """Return `values` on the device, int64; they stay there until the next `reset`."""
        span = self._written(values)
        self._device[span].copy_(self._host[span], non_blocking=True)
        return self._device[span]

    def _written(self, values: Sequence[int] | NDArray[np.int64]) -> slice:
        """Write `values` where the device can read them; return where."""
        start, end = self._used, self._used + len(values)
        if end > len(self._numbers):  # seldom: an unusual number of codec runs
            if self._cuda:
                torch.cuda.synchronize()  # all streams: each has copies from here under way
            start, end = 0, len(values)
        self._numbers[start:end] = values
        self._used = end
        return slice(start, end)


class OutputBuffer:
    """Results on their way to the host, in page-locked memory; readable once `wait` returns."""

    def __init__(self, outputs: int, samples: int, device: torch.device) -> None:
        """Make room for `outputs` int32 and, at first, `samples` int16."""
        self._cuda = device.type == "cuda"
        self._outputs = torch.zeros(outputs, dtype=torch.int32, pin_memory=self._cuda)
        self._samples = torch.zeros(samples, dtype=torch.int16, pin_memory=self._cuda)
        self._made = torch.cuda.Event() if self._cuda else None  # type: ignore[no-untyped-call]
        self._done = torch.cuda.Event() if self._cuda else None  # type: ignore[no-untyped-call]
        self._used = 0

    def outputs(self, source: Tensor) -> None:
        """Queue a copy of int32 numbers, of any shape."""
        self._outputs[: source.numel()].copy_(source.view(-1), non_blocking=True)
        if self._made is not None:
            self._made.record()

    def samples(self, source: Tensor) -> slice:
        """Queue a copy of int16 samples [n, size]; return where they will be, for `block`. Samples
        of later calls follow directly behind."""
        start, self._used = self._used, self._used + source.numel()
        if self._used > len(self._samples):
            self._grow()
        span = slice(start, self._used)
        self._samples[span].copy_(source.view(-1), non_blocking=True)
        return span

    def wait_for_outputs(self) -> None:
        """Wait until the numbers that `outputs` queued have arrived."""
        if self._made is not None:
            self._made.synchronize()

    def wait(self) -> None:
        """Wait until everything queued on this stream has arrived."""
        if self._done is not None:
            self._done.record()
            self._done.synchronize()

    def numbers(self, count: int) -> NDArray[np.int32]:
        """Return a view of the first `count` outputs, which the next step overwrites."""
        found: NDArray[np.int32] = self._outputs[:count].numpy()
        return found

    def block(self, rows: int, spans: Sequence[slice]) -> Pcm:
        """Return the samples of `rows` rows, each joined over several spans: a copy [rows, n]."""
        samples = self._samples.numpy()
        return np.concatenate([samples[span].reshape(rows, -1) for span in spans], axis=1)

    def reset(self) -> None:
        """Reuse the memory: all results have been read."""
        self._used = 0

    def _grow(self) -> None:
        self.wait()  # copies under way end where they were begun
        larger = torch.zeros(2 * self._used, dtype=torch.int16, pin_memory=self._cuda)
        larger[: len(self._samples)] = self._samples
        self._samples = larger
