"""For tests of the engine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unhurried import unhurried


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """torch computes on one thread, so that engines are the same bit for bit, and as fast beside
    other tests."""
    import torch  # which most tests here do without

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def all_rows() -> Iterator[None]:
    """Engines that start in this process leave no row out of a step."""
    with unhurried():
        yield
