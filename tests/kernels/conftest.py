"""The same tests for both ways to run a kernel: interpreted on the CPU, compiled on a GPU.

Triton decides when it is imported, so a process does one or the other: `-m gpu` compiles, all
else interprets. The interpreter's switch is on for these tests only; elsewhere in the process
the kernels' reference implementations run on the CPU.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from itertools import cycle, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from realtime_tts import kernels
from tests.kernels.cuda_building import Build, builder
from tests.one_thread import one_thread as one_thread

_SWITCH = "TRITON_INTERPRET"
_compiled = False


def pytest_configure(config: pytest.Config) -> None:
    global _compiled
    _compiled = config.getoption("-m") == "gpu"
    if not _compiled:
        before = os.environ.get(_SWITCH)
        os.environ[_SWITCH] = "1"
        try:
            _mend_interpreter()  # imports Triton, which decorates its own functions,
            for kernel in list(vars(kernels).values()):  # and these are ours
                if isinstance(kernel, kernels.Kernel):
                    assert callable(kernel.triton)
        except ModuleNotFoundError:
            pass  # each test says so
        finally:
            if before is None:
                del os.environ[_SWITCH]


def crossed(cases: Sequence[Any], dtypes: Sequence[torch.dtype]) -> list[tuple[Any, ...]]:
    """Every case in every type where each pair is compiled by itself. The interpreter computes all
    types in one way: there every case comes in one type, and every type in some case."""
    pairs = list(product(cases, dtypes)) if _compiled else list(zip(cases, cycle(dtypes)))
    return [(*(case if isinstance(case, tuple) else (case,)), dtype) for case, dtype in pairs]


def _mend_interpreter() -> None:
    """Three things Triton 3.6's interpreter does wrong, and three that it does again and again.

    It makes the bounds of a loop by int() of arrays [1], which numpy 2.4 refuses; it keeps bfloat16
    as uint16, which a matrix product then takes for integers; and it cuts float32 off where a GPU
    rounds it to bfloat16. It looks through all of Triton's language for what it has to replace at
    every call of a function in a kernel, although the launch has replaced it; it makes a table of
    all numpy types to look one up; and it checks, counts and names the shape of every value.
    """
    import triton.language as tl
    from triton.runtime import interpreter

    patch, builder = interpreter._patch_lang_tensor, interpreter.InterpreterBuilder
    dot = builder.create_dot

    def mended_patch(tensor: Any, scope: Any) -> None:
        patch(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))

    def widened(handle: Any) -> Any:
        if handle.dtype.scalar != tl.bfloat16:
            return handle
        bits = handle.data.astype(np.uint32) << 16
        return interpreter.TensorHandle(bits.view(np.float32), tl.float32)

    def mended_product(self: Any, a: Any, b: Any, *rest: Any) -> Any:
        return dot(self, widened(a), widened(b), *rest)

    convert = interpreter._convert_float

    def rounded(data: Any, source: Any, target: Any, mode: Any) -> Any:
        if (source, target) != (tl.float32, tl.bfloat16):
            return convert(data, source, target, mode)
        bits = data.view(np.uint32)
        return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)

    replace_language, find_dtype = interpreter._patch_lang, interpreter._get_np_dtype
    by_name: dict[str, np.dtype[Any]] = {}

    def replaced_once(function: Any) -> Any:
        seen = function.__globals__.values()
        languages = [module for module in seen if module is tl or module is tl.core]
        if any(tl.core.is_builtin(language.load) for language in languages):
            return replace_language(function)
        return interpreter._LangPatchScope()

    def remembered_dtype(of: Any) -> np.dtype[Any]:
        scalar = of.element_ty if of.is_block() else of
        if scalar.name not in by_name:
            by_name[scalar.name] = find_dtype(scalar)
        return by_name[scalar.name]

    block, known = tl.core.block_type, dict[tuple[Any, ...], dict[str, Any]]()
    make_block = block.__init__

    def remembered_block(self: Any, element: Any, shape: Any) -> None:
        key = (element.name, *(getattr(size, "value", size) for size in shape))
        if key not in known:
            make_block(self, element, shape)
            known[key] = dict(vars(self))
        vars(self).update(known[key])

    block.__init__ = remembered_block
    interpreter._patch_lang_tensor = mended_patch
    interpreter._patch_lang = replaced_once
    interpreter._get_np_dtype = remembered_dtype
    interpreter._convert_float = rounded
    builder.create_dot = mended_product


@pytest.fixture(scope="session")
def compiling(pytestconfig: pytest.Config) -> dict[str, str]:
    """The environment of a program that compiles kernels. What did not change since the last run
    is not compiled again: Triton's cache goes by what a kernel says and whom it calls."""
    environment = {name: value for name, value in os.environ.items() if name != _SWITCH}
    folder = _kept(pytestconfig, "triton")
    return environment | ({"TRITON_CACHE_DIR": str(folder)} if folder else {})


@pytest.fixture(scope="session")
def build(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Builds the kernels in CUDA C++ for the CPU; what did not change is not built again."""
    return builder(_kept(pytestconfig, "cuda_on_cpu") or tmp_path_factory.mktemp("cuda"))


def _kept(config: pytest.Config, name: str) -> Path | None:
    """A folder that stays from run to run; none with -p no:cacheprovider."""
    cache = getattr(config, "cache", None)
    return Path(cache.mkdir(name)) if cache else None


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> torch.device:
    """Where a kernel runs: on the CPU it is interpreted."""
    pytest.importorskip("triton", reason="Triton has no build for this platform")
    if request.param == "cpu":
        assert not _compiled, "the interpreter needs a process of its own: run without -m gpu"
        monkeypatch.setenv(_SWITCH, "1")
    else:
        assert _compiled, "kernels are interpreted in this process: select with -m gpu alone"
    return torch.device(request.param)


@pytest.fixture
def random(device: torch.device) -> Callable[..., Tensor]:
    """Normal numbers of a shape, the same in every run and on every device."""
    generator = torch.Generator().manual_seed(0)

    def make(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
        return torch.randn(shape, generator=generator).to(device, dtype)

    return make


@pytest.fixture
def close(device: torch.device) -> Callable[[Tensor, Tensor], None]:
    """Asserts that two results differ by rounding only: of float32 sums, or of the last bits of
    a narrower type."""
    tolerances = {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}

    def check(found: Tensor, wanted: Tensor) -> None:
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
        bound = tolerances[wanted.dtype]
        torch.testing.assert_close(found, wanted, atol=bound, rtol=bound)

    return check


class Layer:
    """One layer's pages and the tables of some slots, filled with random positions."""

    def __init__(
        self,
        random: Callable[..., Tensor],
        capacities: list[int],
        *,
        kv_heads: int = 2,
        dim: int = 16,
        page_size: int = 4,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        counts = [-(-positions // page_size) for positions in capacities]
        pages = 1 + sum(counts)
        self.pages = random(pages, 2, kv_heads, page_size, dim, dtype=dtype)
        self.scratch = len(capacities)
        """The slot of padding rows."""
        tables = torch.zeros(len(counts) + 1, max(counts), dtype=torch.int32)
        free = torch.randperm(pages - 1, generator=torch.Generator().manual_seed(1)) + 1
        for slot, taken in enumerate(free.split(counts)):
            tables[slot, : len(taken)] = taken
        self.tables = tables.to(self.pages.device)

    def ints(self, *values: int) -> Tensor:
        return torch.tensor(values, device=self.pages.device)


@pytest.fixture
def make_layer(random: Callable[..., Tensor]) -> Callable[..., Layer]:
    return lambda capacities, **rest: Layer(random, capacities, **rest)
