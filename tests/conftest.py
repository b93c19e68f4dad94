"""For all tests: property tests judge by what comes out, never by the clock.

A busy machine may stop a test for a second, anywhere; that says nothing of the code. Their examples
are the same in every run, so that a red run can be run again; new ones, twice as many, are looked
for with `--hypothesis-profile=explore`. `make quick` looks at half of them (`quick`).

`pytest -m gpu` looks only into the files that have such tests, and so does `make alone`, which
spares it the import of all others. Tests for a GPU need torch, Triton, numpy, msgspec, safetensors,
tokenizers, pytest and Hypothesis; what the other tests need may be missing.
"""

from __future__ import annotations

import asyncio
import gc
import os
import re
import signal
import sys
from collections.abc import Generator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

if "PYTEST_XDIST_WORKER" in os.environ:  # the cores are taken by other tests, and torch, which
    # the next conftest.py may import, looks once. Where a test has two threads, one that waits
    # for the other leaves it the core: while it span, that took two thirds of the test's time.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# A shell's background job ignores Ctrl-C, and so would every process that a test starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# What the tests of a part share asserts, too, and shall say what was found.
pytest.register_assert_rewrite(
    *(f"tests.{part}" for part in ("dialects", "engine", "fleet", "kernels", "server", "voices"))
)

_BUSY = [HealthCheck.too_slow]
settings.register_profile("explore", deadline=None, suppress_health_check=_BUSY)
_SAME = settings(deadline=None, suppress_health_check=_BUSY, derandomize=True, database=None)
settings.register_profile("house", _SAME, max_examples=50)
settings.register_profile("quick", _SAME, max_examples=25)
settings.load_profile("house")

_HANDLED = [getattr(signal, name) for name in ("SIGHUP", "SIGINT", "SIGTERM")]


@pytest.fixture(autouse=True)
def signals_as_before() -> Generator[None]:
    """A server in this process ignores signals at its end, and what ignores them hands that on to
    every process that a later test starts."""
    before = [signal.getsignal(number) for number in _HANDLED]
    yield
    for number, handler in zip(_HANDLED, before, strict=True):
        if signal.getsignal(number) is not handler:
            signal.signal(number, handler)


OF_PLUGINS = {
    "pytest_asyncio": ("asyncio_mode", "asyncio_default_fixture_loop_scope"),
    "pytest_timeout": ("timeout",),
}
"""Options in pyproject.toml, which pytest would refuse where the plugin is missing."""

FEW = {"gpu": re.compile(r"mark\.gpu"), "alone and not gpu": re.compile(r"mark\.alone")}
"""What `-m` may say that few files have, and how to find them without importing any."""

COMPUTING = tuple(f"tests/{part}/" for part in ("end_to_end", "engine", "kernels", "model"))
"""Where most of the time of all tests goes, and models compute."""


def pytest_addoption(parser: pytest.Parser) -> None:
    for plugin, options in OF_PLUGINS.items():
        if find_spec(plugin) is None:
            for option in options:
                parser.addini(option, f"of {plugin}, which is not installed")


def pytest_configure(config: pytest.Config) -> None:
    """Without `-m gpu` a server that a test starts finds no GPU, whatever the machine has.

    No test asks a public server: an HTTP client need not read a hundred certificates when it is
    made, which takes more time than most tests. It looks in a folder, at what it needs, where none
    is.
    """
    if config.getoption("-m") != "gpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    os.environ.pop("SSL_CERT_FILE", None)
    os.environ["SSL_CERT_DIR"] = str(Path(__file__).parent / "data")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With a `-m` of `FEW`, all files and folders without such tests; None: ask others."""
    mark = FEW.get(config.getoption("-m"))
    if mark is None:
        return None
    files = [collection_path] if collection_path.is_file() else collection_path.rglob("*.py")
    return None if any(_has(mark, file) for file in files) else True


def _has(mark: re.Pattern[str], file: Path) -> bool:
    """Whether it has the mark, or its folder's fixtures have it."""
    places = (file, file.with_name("conftest.py"))
    return any(place.exists() and mark.search(place.read_text("utf-8")) for place in places)


class _QuickAsyncio(ModuleType):
    """asyncio, where sleeping takes a tenth of the time."""

    def __getattr__(self, name: str) -> Any:
        return getattr(asyncio, name)

    @staticmethod
    async def sleep(seconds: float) -> None:
        await asyncio.sleep(seconds / 10)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is imported and collected stays: no garbage is looked for in it, neither now nor, half a
    second each time, in the middle of a test."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_finish() -> None:
    """uvicorn looks ten times a second whether it is to stop, and sleeps once more before it does.
    The tests start a thousand servers in their own process: these look a hundred times a second,
    and the page's files are read and compressed once for all of them.

    Before `torch.testing` compares two tensors, it imports all of `torch.distributed`, in a second,
    to see whether they are spread over several machines.
    """
    server, app, comparison = map(
        sys.modules.get,
        ("uvicorn.server", "realtime_tts.server.app", "torch.testing._comparison"),
    )
    if server is not None:
        server.__dict__["asyncio"] = _QuickAsyncio("asyncio")
    if app is not None:
        app.__dict__["_page_routes"] = cache(app.__dict__["_page_routes"])
    if comparison is not None:
        comparison.__dict__["_HAS_DTENSOR"] = False


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What computes goes first: one process is busy with that while others, whose tests wait for
    speech in real time, leave it a core. At the end, when there is no work left to take over, only
    short tests run.

    Slow tests run unmeasured: their loops go over the same lines again and again, and on a
    Python without cheap monitoring (before 3.12) each line costs."""
    items.sort(key=lambda item: not item.nodeid.startswith(COMPUTING))
    if config.pluginmanager.hasplugin("_cov"):
        for item in items:
            if item.get_closest_marker("slow"):
                item.add_marker("no_cover")
