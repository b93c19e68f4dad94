"""Models, inputs and checks of a position of the talker."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from realtime_tts.kernels.decoder import DecoderModel, plain_layers
from realtime_tts.model.config import TransformerConfig
from realtime_tts.model.layers import Rope
from tests.kernels.predictor_frames import BF16, EPS, Random, difference, make_model

RELEASED = TransformerConfig(3, 2048, 16, 8, 128, 6144, 1e6, EPS, 1024)
"""The released width, but not all 28 layers."""
SMALL = TransformerConfig(2, 512, 4, 2, 128, 512, 1e4, EPS, 512)

Launch = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], tuple[Tensor, dict[int, Tensor]]]


def make_talker(random: Random, shape: TransformerConfig) -> DecoderModel:
    model = make_model(random, shape, vocab=16, passes=1)
    rope = Rope(shape, shape.max_positions, model.norm.device)
    return DecoderModel(model.layers, model.norm, rope.cos, rope.sin, EPS)


class Slots:
    """Pages of as many slots as the talker takes rows, full of random positions."""

    def __init__(self, random: Random, model: DecoderModel) -> None:
        self.count, width = 8, len(model.cos) // 16
        shape = (len(model.layers), 1 + self.count * width, 2, model.sizes[2], 16, model.sizes[3])
        self.pages = random(*shape, dtype=BF16)
        tables = torch.randperm(self.count * width, generator=torch.Generator().manual_seed(1)) + 1
        tables = torch.cat(
            (tables.view(self.count, width), torch.zeros(1, width, dtype=torch.long))
        )
        self.tables = tables.int().to(self.pages.device)


def assert_step_right(
    random: Random,
    model: DecoderModel,
    slots: Slots,
    launch: Launch,
    positions: Sequence[int],
    watched: Sequence[int] = (),
) -> None:
    """One row at each of the positions, of slots in any order. Behind them the pages hold NaN. The
    queries of the layers that are `watched` come, too."""
    device, rows = model.norm.device, len(positions)
    x = random(rows, len(model.norm), dtype=BF16)
    owners = torch.randperm(slots.count, generator=torch.Generator().manual_seed(rows))[:rows]
    places = torch.tensor(positions)
    pages = slots.pages.clone()
    for owner, place in zip(owners.tolist(), positions, strict=True):
        later = slots.tables[owner].long()[place // 16 + 1 :]
        pages[:, later] = float("nan")
        pages[:, slots.tables[owner, place // 16], :, :, place % 16 :] = float("nan")
    owners, places = owners.to(device), places.to(device)
    wanted_pages = pages.clone()
    asked: list[Tensor] = []
    wanted = plain_layers(x, model, wanted_pages, slots.tables, owners, places, asked.append)
    found, queries = launch(x, pages, slots.tables, owners, places)
    assert difference(found, wanted) < 0.02
    assert list(queries) == list(watched)
    assert all(difference(queries[layer], asked[layer]) < 0.02 for layer in watched)
    # The new keys and values are right, up to roundings, and nobody else's were touched.
    assert torch.equal(pages.isnan(), wanted_pages.isnan())
    pages, wanted_pages = pages.nan_to_num(), wanted_pages.nan_to_num()
    changed = (pages != slots.pages).any(-1) & (pages != 0).any(-1)
    assert int(changed.sum()) <= rows * 2 * model.sizes[2] * len(model.layers)
    assert difference(pages[changed], wanted_pages[changed]) < 0.02
    assert torch.equal(pages[~changed], wanted_pages[~changed])
