"""A whole pass of the code predictor in one kernel: interpreted phase by phase, compiled as one.

The interpreter runs one program after the other, so that none can wait for another; on a GPU all
phases are one launch, and what could go wrong between them shows there alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from realtime_tts.kernels import predictor_pass
from realtime_tts.kernels.predictor_pass import (
    PassLayer,
    PassModel,
    chunk_inputs,
    pass_fits,
    tile_columns,
)
from realtime_tts.model import fused, linear
from realtime_tts.model.code_predictor import CodePredictor
from realtime_tts.model.config import PredictorConfig, TransformerConfig
from realtime_tts.model.fused import FusedPredictor
from realtime_tts.model.layers import Rope
from realtime_tts.model.random_weights import RandomWeights

Random = Callable[..., Tensor]
Check = Callable[[Tensor, Tensor], None]

EPS = 1e-6
POSITIONS = 16
RELEASED = TransformerConfig(5, 1024, 16, 8, 128, 3072, 1e6, EPS, 64)
SMALL = TransformerConfig(2, 64, 4, 2, 16, 96, 1e4, EPS, 64)
GPU = pytest.mark.parametrize(
    "device", [pytest.param("cuda", marks=pytest.mark.gpu)], indirect=True
)


class Case:
    """Random weights, pages with earlier positions, and a head."""

    def __init__(
        self, random: Random, shape: TransformerConfig = SMALL, *, slots: int, vocab: int = 48,
        dtype: torch.dtype = torch.float32, programs: int | None = None,
    ) -> None:  # fmt: skip
        hidden, dim, width = shape.hidden, shape.head_dim, shape.heads * shape.head_dim
        fused = width + 2 * shape.kv_heads * dim

        def product(*size: int) -> Tensor:
            return (random(*size) / size[-1] ** 0.5).to(dtype)

        def norm(*size: int) -> Tensor:
            return (1 + random(*size) / 4).to(dtype)

        layers = [
            PassLayer(
                norm(hidden), product(fused, hidden), norm(shape.heads + shape.kv_heads, dim),
                product(hidden, width), norm(hidden), product(2 * shape.intermediate, hidden),
                product(hidden, shape.intermediate),
            )
            for _ in range(shape.layers)
        ]  # fmt: skip
        device = layers[0].qkv.device
        if programs is None:
            programs = multiprocessors(device) if device.type == "cuda" else 3
        rope = Rope(shape, POSITIONS, device)
        self.model = PassModel(layers, norm(hidden), rope.cos, rope.sin, EPS, programs)
        self.head = product(vocab, hidden)
        self.pages = random(shape.layers, slots, 2, shape.kv_heads, POSITIONS, dim, dtype=dtype)
        self.hidden, self.dtype, self.random = hidden, dtype, random

    def inputs(self, rows: int) -> Tensor:
        return self.random(rows, self.hidden, dtype=self.dtype)

    def run(
        self, kernel: Callable[..., Tensor], x: Tensor, position: int, count: int
    ) -> tuple[Tensor, Tensor]:
        """Logits, and the pages as the kernel left them."""
        pages = self.pages.clone()
        return kernel(x.clone(), self.model, self.head, pages, position, count), pages


def multiprocessors(device: torch.device) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count


def assert_near(found: Tensor, wanted: Tensor) -> None:
    """Differences are those of rounding: many roundings deep, in a narrow type."""
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    difference = (found.double() - wanted.double()).norm() / wanted.double().norm()
    bounds = {torch.float32: 1e-5, torch.float16: 5e-3, torch.bfloat16: 3e-2}
    assert difference < bounds[wanted.dtype], float(difference)


PASSES = [(1, 0, 2), (1, 5, 1), (2, 2, 1), (3, 0, 2), (3, 15, 1), (16, 2, 1), (16, 0, 2)]
"""Rows, first position and positions."""


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("rows", "position", "count"), PASSES)
def test_a_pass_equals_its_plain_twin(
    rows: int, position: int, count: int, dtype: torch.dtype, random: Random
) -> None:
    case = Case(random, slots=rows + 1, dtype=dtype)
    x = case.inputs(rows * count)
    found, pages = case.run(predictor_pass, x, position, count)
    wanted, wanted_pages = case.run(predictor_pass.plain, x, position, count)
    assert_near(found, wanted)
    assert_near(pages, wanted_pages)
    # Other positions, and the pages of nobody's row, are as they were.
    kept = [p for p in range(POSITIONS) if not position <= p < position + count]
    assert torch.equal(pages[:, :, :, :, kept], case.pages[:, :, :, :, kept])
    assert torch.equal(pages[:, rows:], case.pages[:, rows:])


@pytest.mark.parametrize(
    ("shape", "vocab", "programs"),
    [
        (TransformerConfig(1, 96, 3, 3, 32, 160, 1e4, EPS, 64), 40, 4),  # a group of one, odd sizes
        (TransformerConfig(1, 128, 8, 1, 16, 64, 1e4, EPS, 64), 8, 1),  # one program for everything
        (TransformerConfig(2, 32, 2, 2, 16, 16, 1e4, EPS, 64), 72, 20),  # most have nothing to do
    ],
)
@pytest.mark.parametrize(("rows", "position", "count"), [(1, 4, 1), (3, 0, 2)])
def test_any_shape_and_number_of_programs_will_do(
    shape: TransformerConfig, vocab: int, programs: int, rows: int, position: int, count: int,
    random: Random, close: Check,
) -> None:  # fmt: skip
    case = Case(random, shape, slots=rows, vocab=vocab, programs=programs)
    assert pass_fits(case.model, vocab)
    x = case.inputs(rows * count)
    found, pages = case.run(predictor_pass, x, position, count)
    wanted, wanted_pages = case.run(predictor_pass.plain, x, position, count)
    close(found, wanted)
    close(pages, wanted_pages)


@pytest.mark.filterwarnings("ignore:invalid value")  # numpy's, of the NaN that the row has
@pytest.mark.parametrize(("position", "count"), [(0, 2), (7, 1)])
def test_a_row_does_not_depend_on_its_neighbours(position: int, count: int, random: Random) -> None:
    """Bit for bit, as long as the same instructions multiply: two rows and sixteen."""
    case = Case(random, slots=16)
    x = case.inputs(16 * count)
    together, _ = case.run(predictor_pass, x, position, count)
    for rows in (2, 5):
        part = x.view(count, 16, -1)[:, :rows].reshape(rows * count, -1)
        alone, _ = case.run(predictor_pass, part, position, count)
        assert torch.equal(alone, together[:rows])
    disturbed = x.clone().view(count, 16, -1)
    disturbed[:, 3] = float("nan")
    found, _ = case.run(predictor_pass, disturbed.view(16 * count, -1), position, count)
    others = [row for row in range(16) if row != 3]
    assert found[3].isnan().all() and torch.equal(found[others], together[others])


def test_what_earlier_rows_left_behind_a_position_is_not_seen(random: Random) -> None:
    case = Case(random, slots=2)
    x = case.inputs(2)
    wanted, _ = case.run(predictor_pass, x, 6, 1)
    case.pages[:, :, :, :, 6:] = float("nan")
    found, _ = case.run(predictor_pass, x, 6, 1)
    assert torch.equal(found, wanted)


def test_tiles_share_the_columns_out() -> None:
    assert [tile_columns(n, 132) for n in (4096, 1024, 2048)] == [32, 8, 16]
    assert tile_columns(3072, 132, 2) == 8
    assert [chunk_inputs(k) for k in (1024, 3072, 96, 24)] == [1024, 1024, 32, None]
    assert chunk_inputs(3072, 128) == 128


def test_sizes_that_do_not_fit_are_told(random: Random) -> None:
    def fits(shape: TransformerConfig, vocab: int = 48, programs: int = 3) -> bool:
        return pass_fits(Case(random, shape, slots=1, vocab=vocab, programs=programs).model, vocab)

    assert fits(SMALL)
    assert not fits(SMALL, vocab=44)
    assert not fits(TransformerConfig(1, 64, 3, 1, 16, 96, 1e4, EPS, 64))  # three heads to a key
    assert not fits(TransformerConfig(1, 64, 4, 2, 24, 96, 1e4, EPS, 64))
    assert not fits(TransformerConfig(1, 512, 4, 2, 16, 1024, 1e4, EPS, 64), programs=1)


# The predictor ---------------------------------------------------------------------------------


def make_predictor(device: torch.device, monkeypatch: pytest.MonkeyPatch) -> CodePredictor:
    """A small one whose weights are not packed, as on a GPU."""
    monkeypatch.setattr(linear, "half_serves", lambda _: False)
    monkeypatch.setattr(linear, "packing_available", lambda: False)
    config = PredictorConfig(SMALL, vocab=48)
    weights = RandomWeights(device=device, dtype=torch.float32, stored=torch.float32)
    return CodePredictor(config, SMALL.hidden, 16, weights, device, torch.float32)


class Launches(list[int]):
    """The rows of every pass made in one launch from now on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._launch = predictor_pass.triton
        monkeypatch.setattr(predictor_pass, "_triton", self._noted)

    def _noted(self, x: Tensor, *rest: Any) -> Tensor:
        self.append(len(x))
        return self._launch(x, *rest)


def greedy_codes(
    predictor: CodePredictor, hidden: Tensor, embedding: Tensor, programs: int
) -> tuple[Tensor, Tensor]:
    """Codes and all logits."""
    seen: list[Tensor] = []

    def greedy(logits: Tensor, codebook: int) -> Tensor:
        seen.append(logits)
        return logits.argmax(-1)

    rows, device = len(hidden), hidden.device
    fused = FusedPredictor(predictor, rows + 1, device, programs=programs)
    first = torch.zeros(rows, dtype=torch.long, device=device)
    codes, _ = fused.codes(hidden, first, embedding, greedy)
    return codes, torch.stack(seen)


def shorten(predictor: CodePredictor) -> None:
    """To three passes: interpreted, all fifteen of separate kernels take half a minute."""
    predictor.heads = predictor.heads[:3]
    collect = predictor.collect
    predictor.collect = lambda first, embedding, others: collect(  # type: ignore[method-assign, assignment]
        first, embedding, [*others, *[first] * (15 - len(others))]
    )


@pytest.mark.parametrize("rows", [1, 3])
def test_greedy_codes_are_those_of_separate_kernels(
    rows: int, random: Random, monkeypatch: pytest.MonkeyPatch, close: Check
) -> None:
    hidden, embedding = random(rows, SMALL.hidden), random(rows, SMALL.hidden)
    predictor = make_predictor(hidden.device, monkeypatch)
    if hidden.device.type == "cpu":
        shorten(predictor)
    launches = Launches(monkeypatch)
    wanted, wanted_logits = greedy_codes(predictor, hidden, embedding, programs=0)
    assert launches == []
    found, logits = greedy_codes(predictor, hidden, embedding, programs=3)
    assert launches == [2 * rows] + [rows] * (len(predictor.heads) - 1)
    close(logits, wanted_logits)
    assert torch.equal(found, wanted)


def test_larger_batches_make_separate_launches(
    random: Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fused, "MOST_PASS_ROWS", 4)
    hidden = random(3, SMALL.hidden)
    predictor = make_predictor(hidden.device, monkeypatch)
    shorten(predictor)
    launches = Launches(monkeypatch)
    greedy_codes(predictor, hidden, hidden, programs=3)
    assert launches == []
    greedy_codes(predictor, hidden[:2], hidden[:2], programs=3)
    assert launches == [4, 2, 2]


def test_a_cpu_makes_no_whole_passes_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    predictor = make_predictor(torch.device("cpu"), monkeypatch)
    assert FusedPredictor(predictor, 2, torch.device("cpu"))._whole is None


def test_packed_weights_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    predictor = make_predictor(torch.device("cpu"), monkeypatch)
    predictor.layers[1].mlp.down.weight = None
    assert FusedPredictor(predictor, 2, torch.device("cpu"), programs=3)._whole is None


# One launch ------------------------------------------------------------------------------------


@GPU
@pytest.mark.parametrize(
    ("rows", "position", "count", "dtype"),
    [
        *((*each, torch.bfloat16) for each in PASSES),
        # Weights twice as wide no longer fit into registers: right, but slow to compile.
        (1, 5, 1, torch.float32),
    ],
)
def test_one_launch_equals_the_plain_twin_at_full_size(
    rows: int, position: int, count: int, dtype: torch.dtype, random: Random
) -> None:
    case = Case(random, RELEASED, slots=rows, vocab=2048, dtype=dtype)
    x = case.inputs(rows * count)
    for _ in range(3):
        found, pages = case.run(predictor_pass, x, position, count)
        wanted, wanted_pages = case.run(predictor_pass.plain, x, position, count)
        assert_near(found, wanted)
        assert_near(pages, wanted_pages)


@GPU
@pytest.mark.parametrize("programs", [1, 7, None])
def test_fewer_programs_than_multiprocessors_do_not_hang(
    programs: int | None, random: Random, close: Check
) -> None:
    case = Case(random, slots=3, programs=programs)
    x = case.inputs(6)
    for _ in range(5):
        found, _ = case.run(predictor_pass, x, 0, 2)
        close(found, case.run(predictor_pass.plain, x, 0, 2)[0])


@GPU
@pytest.mark.parametrize(("rows", "position", "count"), [(1, 9, 1), (1, 0, 2), (16, 9, 1)])
def test_a_captured_pass_sees_new_inputs_every_time(
    rows: int, position: int, count: int, random: Random
) -> None:
    """A stale cache line or a barrier passed too early would show values of another replay."""
    case = Case(random, RELEASED, slots=rows, vocab=2048, dtype=torch.bfloat16)
    given, pages = case.inputs(rows * count), case.pages.clone()

    def program() -> Tensor:
        return predictor_pass(given.clone(), case.model, case.head, pages, position, count)

    graph, logits = captured(program)
    for _ in range(200):
        given.copy_(case.inputs(rows * count))
        graph.replay()
        wanted, _ = case.run(predictor_pass.plain, given, position, count)
        assert_near(logits, wanted)


@GPU
def test_counters_may_wrap_around(random: Random, close: Check) -> None:
    case = Case(random, slots=1)
    case.model.barrier.fill_((1 << 31) - 100)
    x = case.inputs(1)
    for _ in range(50):
        found, _ = case.run(predictor_pass, x, 3, 1)
        close(found, case.run(predictor_pass.plain, x, 3, 1)[0])
    assert (case.model.barrier[:, 0] < 0).any()


def captured(program: Callable[[], Tensor]) -> tuple[Any, Tensor]:
    """A graph of the program, and where its replays leave the result."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        program()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = program()
    return graph, result
