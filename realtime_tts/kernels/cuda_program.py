"""Kernels in CUDA C++, compiled when they are first needed by the NVRTC that comes with torch.

A kernel that many thread blocks run together, and in which they exchange data, needs more than
Triton can express: the number of each thread, words that arrive as a whole, copies that another
warp waits for. Only torch need be installed; no compiler has to be found.
"""

from __future__ import annotations

import ctypes
import hashlib
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TypeVar

import torch
from torch import Tensor

from realtime_tts.kernels.decoder import DecoderModel

log = logging.getLogger(__name__)

Program = TypeVar("Program")

SOURCES = Path(__file__).parent / "cuda"

_MOST_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES


class CudaError(RuntimeError):
    """NVRTC or the driver has failed; the message is theirs."""


class CudaProgram:
    """One kernel of a compiled source file, on the current device.

    The source defines how many threads a block has, and how much shared memory, in the constants
    `threads` and `shared_bytes`. Where thread blocks wait for each other there are always
    `programs` of them, which run at the same time, one on a multiprocessor.
    """

    def __init__(self, binary: bytes, kernel: str, programs: int | None = None) -> None:
        self._driver, self._programs = _driver(), programs
        torch.cuda.synchronize()  # makes the device's context this thread's, as the driver needs
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self._check(self._driver.cuModuleLoadData(ctypes.byref(module), binary))
        self._module = module
        name = kernel.encode()
        self._check(self._driver.cuModuleGetFunction(ctypes.byref(function), module, name))
        self._function = function
        self._threads, self._shared = self.constant("threads"), self.constant("shared_bytes")
        self._check(self._driver.cuFuncSetAttribute(function, _MOST_SHARED, self._shared))

    def constant(self, name: str) -> int:
        """Return an int that the source defines with CONSTANT."""
        place, size, value = ctypes.c_uint64(), ctypes.c_size_t(), ctypes.c_int()
        self._check(
            self._driver.cuModuleGetGlobal_v2(
                ctypes.byref(place), ctypes.byref(size), self._module, name.encode()
            )
        )
        self._check(self._driver.cuMemcpyDtoH_v2(ctypes.byref(value), place, ctypes.c_size_t(4)))
        return value.value

    def launch(self, arguments: ctypes.Structure, programs: int | None = None) -> None:
        """Launch on the current stream, which may be captured.

        Thread blocks that wait for others which were never started would wait for ever. Their
        launch is therefore a cooperative one: the driver starts all at once, or refuses. Other
        kernels start as there is room, with `programs` thread blocks.
        """
        pointers = (ctypes.c_void_p * 1)(ctypes.addressof(arguments))
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        given = (
            self._function,
            *(self._programs or programs, 1, 1),
            *(self._threads, 1, 1),
            self._shared,
            stream,
            pointers,
        )
        if self._programs is None:
            self._check(self._driver.cuLaunchKernel(*given, None))
        else:
            self._check(self._driver.cuLaunchCooperativeKernel(*given))

    def _check(self, status: int) -> None:
        if status:
            text = ctypes.c_char_p()
            self._driver.cuGetErrorString(status, ctypes.byref(text))
            raise CudaError((text.value or b"unknown").decode())


def pointer_fields(names: str) -> Iterator[tuple[str, type[ctypes.c_void_p]]]:
    """Yield the fields of a struct that are pointers; their names are separated by spaces."""
    return ((name, ctypes.c_void_p) for name in names.split())


def addresses(tensors: Sequence[Tensor], device: torch.device) -> Tensor:
    """Return the addresses [n] int64 of contiguous tensors of any shape and type, on `device`."""
    assert all(tensor.is_contiguous() for tensor in tensors)
    return torch.tensor([tensor.data_ptr() for tensor in tensors], device=device)


def decoder_settings(model: DecoderModel, programs: int, rows: int) -> dict[str, int]:
    """Return the macros of cuda/sizes.cuh that every kernel for a decoder needs, for at most `rows`
    rows. Those of the build are added to them."""
    hidden, heads, keys, _, wide = model.sizes
    return {
        "PROGRAMS": programs,
        "ROWS": rows,
        "LAYERS": len(model.layers),
        "HIDDEN": hidden,
        "HEADS": heads,
        "KEYS": keys,
        "WIDE": wide,
        **{"BATCH": 0, "SHARES": 1, "RESIDUAL_SHARES": 1},
    }


def hopper_obstacle(weight: Tensor, programs: int) -> str | None:
    """Return why kernels for bfloat16 on compute capability 9.0 cannot run on the device of this
    weight [any shape] with `programs` thread blocks at once; None if they can."""
    device = weight.device
    if device.type != "cuda":
        return f"{device.type} is no NVIDIA GPU"
    if weight.dtype != torch.bfloat16:
        return f"weights are {weight.dtype}, not torch.bfloat16"
    properties = torch.cuda.get_device_properties(device)
    if (properties.major, properties.minor) != (9, 0):
        return f"{properties.name} has not the compute capability 9.0 of an H100 or H200"
    if properties.multi_processor_count < programs:
        return f"{properties.name} has fewer than {programs} multiprocessors here"
    return None


def program_or_warning(
    make: Callable[[], Program], reason: str | None, on_gpu: bool, what: str
) -> Program | None:
    """Make a program unless there is a reason against it, and warn if a GPU goes without."""
    if reason is None:
        try:
            return make()
        except CudaError as error:
            reason = str(error)
    if on_gpu:
        log.warning("the %s runs as separate kernels, and slower: %s", what, reason)
    return None


def compile_cuda(source: str, settings: Mapping[str, int], architecture: str) -> bytes:
    """Return the machine code of a file in `kernels/cuda` with these macros, for e.g. "sm_90".

    It is cached in the user's cache folder and compiled again only when a source has changed.
    Raises CudaError if it does not compile.
    """
    options = [f"--gpu-architecture={architecture}", "--std=c++17", f"-I{SOURCES}"]
    options += [f"-D{name}={value}" for name, value in settings.items()]
    cached = _cache_path(source, options)
    if cached.is_file():
        return cached.read_bytes()
    binary = _compile((SOURCES / source).read_bytes(), source, options)
    _write_cache(cached, binary)
    return binary


def _cache_path(source: str, options: Sequence[str]) -> Path:
    """Return where this code is cached."""
    digest = hashlib.sha256(repr((source, options, torch.version.cuda)).encode())
    for file in sorted(SOURCES.iterdir()):
        digest.update(file.read_bytes())
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "realtime-tts" / "kernels" / f"{digest.hexdigest()[:32]}.cubin"


def _write_cache(path: Path, binary: bytes) -> None:
    """Write the file as a whole or not at all, since others may read at the same time."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(binary)
        Path(file.name).replace(path)
    except OSError:
        return  # a read-only home: the next start compiles again


def _compile(text: bytes, name: str, options: Sequence[str]) -> bytes:
    library, program = _nvrtc(), ctypes.c_void_p()
    given = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    _check_nvrtc(
        library.nvrtcCreateProgram(ctypes.byref(program), text, name.encode(), 0, None, None)
    )
    try:
        if library.nvrtcCompileProgram(program, len(options), given):
            raise CudaError(f"{name} does not compile:\n{_fetched(program, 'ProgramLog').decode()}")
        return _fetched(program, "CUBIN")
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def _fetched(program: ctypes.c_void_p, what: str) -> bytes:
    library, size = _nvrtc(), ctypes.c_size_t()
    _check_nvrtc(getattr(library, f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
    text = ctypes.create_string_buffer(size.value)
    _check_nvrtc(getattr(library, f"nvrtcGet{what}")(program, text))
    return text.raw


def _check_nvrtc(status: int) -> None:
    if status:
        library = _nvrtc()
        library.nvrtcGetErrorString.restype = ctypes.c_char_p
        raise CudaError(f"NVRTC: {library.nvrtcGetErrorString(status).decode()}")


@lru_cache(maxsize=1)
def _nvrtc() -> ctypes.CDLL:
    """Load torch's own library, which need not be where the system looks for libraries."""
    major = (torch.version.cuda or "13").partition(".")[0]
    name = f"libnvrtc.so.{major}"
    spec = find_spec("nvidia")
    folders = [Path(folder) for folder in (spec.submodule_search_locations or [])] if spec else []
    found = [path for folder in folders for path in sorted(folder.glob(f"*/lib/{name}"))]
    for place in (name, *map(str, found)):
        try:
            return ctypes.CDLL(place)
        except OSError:
            continue
    raise CudaError(f"{name} is not installed; it comes with torch for CUDA")


@lru_cache(maxsize=1)
def _driver() -> ctypes.CDLL:
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise CudaError(str(error)) from error
