"""Models, inputs and checks of a whole frame of the code predictor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from realtime_tts.kernels import FrameDraws, FrameModel, LayerWeights, sample
from realtime_tts.kernels.cuda_predictor_frame import FrameTables
from realtime_tts.kernels.predictor_frame import plain_pass
from realtime_tts.model.config import TransformerConfig
from realtime_tts.model.layers import Rope

EPS = 1e-6
BF16 = torch.bfloat16
RELEASED = TransformerConfig(5, 1024, 16, 8, 128, 3072, 1e6, EPS, 64)
SMALL = TransformerConfig(2, 256, 2, 1, 128, 512, 1e4, EPS, 64)
TINY = TransformerConfig(1, 512, 4, 2, 128, 512, 1e4, EPS, 64)
Random = Callable[..., Tensor]


def normal() -> Random:
    generator = torch.Generator().manual_seed(0)

    def make(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
        return torch.randn(shape, generator=generator).to(dtype)

    return make


def make_model(random: Random, shape: TransformerConfig, vocab: int, passes: int) -> FrameModel:
    hidden, dim, width = shape.hidden, shape.head_dim, shape.heads * shape.head_dim

    def product(*size: int) -> Tensor:
        return (random(*size) / size[-1] ** 0.5).to(BF16)

    def norm(*size: int) -> Tensor:
        return (1 + random(*size) / 4).to(BF16)

    layers = [
        LayerWeights(
            norm(hidden),
            product(width + 2 * shape.kv_heads * dim, hidden),
            norm(shape.heads + shape.kv_heads, dim),
            product(hidden, width),
            norm(hidden),
            product(2 * shape.intermediate, hidden),
            product(hidden, shape.intermediate),
        )
        for _ in range(shape.layers)
    ]
    heads = [3 * product(vocab, hidden) for _ in range(passes)]
    inputs = [random(vocab, hidden, dtype=BF16) for _ in range(passes - 1)]
    rope = Rope(shape, 16, heads[0].device)
    return FrameModel(layers, norm(hidden), rope.cos, rope.sin, EPS, heads, inputs)


def make_draws(rows: int, passes: int, device: torch.device) -> FrameDraws:
    """The second row is greedy, the third has no limit."""
    top_k = torch.full((rows,), 50, dtype=torch.int32)
    top_k[2:3] = 0
    temperature, greedy = torch.full((rows,), 0.9), torch.zeros(rows, dtype=torch.bool)
    greedy[1:2], temperature[1:2] = True, 1.0
    uniform = torch.rand(rows, passes + 1, generator=torch.Generator().manual_seed(rows))
    given = (temperature, top_k, greedy, uniform)
    temperature, top_k, greedy, uniform = (tensor.to(device) for tensor in given)
    return FrameDraws(temperature, top_k, greedy, uniform[:, 1:])


class Made(NamedTuple):
    """What a launch left, and its inputs."""

    codes: Tensor
    failed: Tensor
    logits: Tensor
    pages: Tensor
    x: Tensor
    before: Tensor
    """The pages before it."""
    draws: FrameDraws


Launch = Callable[[Tensor, Tensor, FrameDraws, Tensor], tuple[Tensor, Tensor]]


def make_frame(random: Random, model: FrameModel, launch: Launch, rows: int) -> Made:
    """Pages and outputs hold nonsense before."""
    shape = (len(model.layers), rows + 1, 2, model.sizes[2], 16, model.sizes[3])
    before = random(*shape, dtype=BF16)
    before[:, :rows] = float("nan")
    pages, x = before.clone(), random(2 * rows, len(model.norm), dtype=BF16)
    draws = make_draws(rows, len(model.heads), x.device)
    logits = x.new_full((len(model.heads), rows, len(model.heads[0])), float("nan"))
    codes, failed = launch(x.clone(), pages, draws, logits)
    return Made(codes, failed, logits, pages, x, before, draws)


def assert_right(model: FrameModel, made: Made) -> None:
    """Logits are those of the reference that is given the same codes, up to roundings of bfloat16
    many layers deep; and the codes are those that are drawn from these logits."""
    wanted, pages = forced(model, made)
    for found, right in zip(made.logits, wanted, strict=True):
        assert difference(found, right) < 0.025
    rows, last = made.codes.shape[0], made.codes.shape[1] + 1
    assert difference(made.pages[:, :rows, ..., :last, :], pages[:, :rows, ..., :last, :]) < 0.02
    # Nobody else's page, and no later position, was written.
    assert torch.equal(made.pages[:, rows:], made.before[:, rows:])
    assert made.pages[:, :rows, ..., last:, :].isnan().all()
    assert torch.equal(made.codes, drawn(made))
    assert not made.failed.any()


def begin_rounds_at(tables: FrameTables, number: int, programs: int) -> None:
    """As if so many rounds had been there, and the last word of all came in the last of them."""
    numbers = tables._words.view(torch.int32)
    numbers.fill_(number)
    numbers[0] = number * programs  # where programs count together
    tables._rounds.fill_(number)


def assert_same_alone(made: Made, launch: Launch, count: int) -> None:
    """The last rows of a frame come out bit by bit as they do without the others."""
    rows = len(made.codes)
    own = slice(rows - count, rows)
    x = torch.cat((made.x[:rows][own], made.x[rows:][own]))
    draws = FrameDraws(*(each[own] for each in made.draws))
    logits = torch.full_like(made.logits[:, own], float("nan"))
    codes, failed = launch(x, made.before.clone(), draws, logits)
    assert torch.equal(codes, made.codes[own]) and torch.equal(logits, made.logits[:, own])
    assert torch.equal(failed, made.failed[own])


def forced(model: FrameModel, made: Made) -> tuple[Tensor, Tensor]:
    """Logits and pages of the reference implementation when it is told the codes."""
    rows, pages, x, logits = len(made.codes), made.before.clone(), made.x, list[Tensor]()
    pages[:, :rows] = 0  # the reference multiplies what it does not see by zero
    for index, head in enumerate(model.heads):
        if index:
            x = model.inputs[index - 1][made.codes[:, index - 1]]
        last = plain_pass(x, model, pages, index + 1 if index else 0, 1 if index else 2)
        logits.append(F.linear(last[-rows:], head))
    return torch.stack(logits), pages


def drawn(made: Made) -> Tensor:
    temperature, top_k, greedy, uniform = made.draws
    passes = range(len(made.logits))
    columns = [
        sample(made.logits[i], temperature, top_k, greedy, uniform[:, i].contiguous())
        for i in passes
    ]
    return torch.stack(columns, 1)


def difference(found: Tensor, wanted: Tensor) -> float:
    return float((found.double() - wanted.double()).norm() / wanted.double().norm())


def captured(work: Callable[[], Tensor]) -> tuple[Any, Tensor]:
    """A graph of the work, and where its replays leave the result."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        work()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = work()
    return graph, result
