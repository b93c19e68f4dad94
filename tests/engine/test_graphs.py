"""Sizes, and the ways to and from a device; captures need one, see `test_captured_gpu.py`."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from realtime_tts.engine.graphs import Buckets, Graphs, InputBuffer, OutputBuffer

CPU = torch.device("cpu")


def test_the_smallest_size_that_fits_is_chosen() -> None:
    buckets = Buckets.of_rows(100)
    assert buckets.sizes == (1, 2, 4, 8, 16, 32, 64, 96, 100)
    assert [buckets.fit(n) for n in (1, 3, 8, 65, 97, 100)] == [1, 4, 8, 96, 100, 100]
    with pytest.raises(AssertionError, match="beyond the largest"):
        buckets.fit(101)


def test_sizes_go_on_beyond_the_named_ones() -> None:
    assert Buckets.of_rows(1000).sizes[-4:] == (384, 512, 768, 1000)
    assert Buckets.of_rows(1).sizes == (1,)
    assert Buckets.of_rows(64).sizes[-2:] == (32, 64)


def test_without_captures_programs_are_simply_called() -> None:
    graphs, ran = Graphs(CPU, capture=False), []
    assert graphs.has("anything")
    graphs.capture("a", lambda: ran.append("captured"))
    graphs.run("a", lambda: ran.append("run"))
    assert ran == ["run"]
    with pytest.raises(AssertionError, match="no graphs"):
        Graphs(CPU, capture=True)


def test_numbers_arrive_and_what_was_sent_before_stays() -> None:
    buffer, target = InputBuffer(4, CPU), torch.zeros(6, dtype=torch.long)
    buffer.send([1, 2, 3], target)
    assert target.tolist() == [1, 2, 3, 0, 0, 0]
    for value in range(10):  # more than there is room for without starting over
        buffer.send([value] * 4, target)
        assert target.tolist()[:4] == [value] * 4
    buffer.reset()


def test_samples_land_side_by_side_however_many_they_are() -> None:
    buffer = OutputBuffer(2, 3, CPU)
    buffer.outputs(torch.tensor([4, 5], dtype=torch.int32))
    places = [
        buffer.samples(torch.tensor([[value, value], [-value, -value]], dtype=torch.int16))
        for value in range(5)
    ]
    buffer.wait()
    assert buffer.numbers(2).tolist() == [4, 5]
    for value, place in enumerate(places):
        assert buffer.block(2, [place]).tolist() == [[value] * 2, [-value] * 2]
    both = buffer.block(2, places[1:3])
    assert both.tolist() == [[1, 1, 2, 2], [-1, -1, -2, -2]] and both.dtype == np.int16
    buffer.reset()
    assert buffer.samples(torch.ones(1, 1, dtype=torch.int16)) == slice(0, 1)
    assert both[0, 0] == 1, "a copy"
