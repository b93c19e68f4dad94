"""A whole pass of the code predictor: all layers, the last norm and a codebook's head.

As separate kernels a pass of one row is fifty launches, each of which takes longer than reading its
weights. The Triton twin is one launch whose programs stay and go through the phases together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from realtime_tts.kernels.attention import decode_attention
from realtime_tts.kernels.dispatch import Kernel
from realtime_tts.kernels.elementwise import add_rms_norm, rms_norm, swiglu
from realtime_tts.kernels.storing import rope_and_store

MOST_PASS_ROWS = 32
"""Rows of a pass: one or two positions of each utterance."""

_MOST_TILE_BYTES = 112 * 1024
_TILES = (32, 16, 8)
_CHUNKS = (1024, 512, 256, 128, 64, 32, 16)


class PassLayer(NamedTuple):
    """A layer's weights, all of one type and contiguous, in the order they are used.

    h is the hidden width, N = (heads + 2 * kv_heads) * D.
    """

    input_norm: Tensor
    """[h]"""
    qkv: Tensor
    """[N, h]: queries, keys, values."""
    head_norm: Tensor
    """[heads + kv_heads, D]"""
    attention_output: Tensor
    """[h, heads * D]"""
    output_norm: Tensor
    """[h]"""
    gate_up: Tensor
    """[2 * I, h]: gate, then up."""
    down: Tensor
    """[h, I]"""


@dataclass(frozen=True, slots=True)
class PassModel:
    """What all passes share: weights, rotation tables cos, sin [positions, D] and the grid.

    `programs` is the number of programs of the launch. All of them must be able to run at the same
    time, so it is at most the GPU's number of multiprocessors.
    """

    layers: Sequence[PassLayer]
    norm: Tensor
    """[h]: after the last layer."""
    cos: Tensor
    sin: Tensor
    eps: float
    programs: int
    table: Tensor = field(init=False)
    """[layers, 7] int64: where the weights lie, for the kernel's loop over layers."""
    barrier: Tensor = field(init=False)
    """[4, 32] int32: the counters of the programs' barriers, each in a cache line of its own, and
    where they stood before the pass. One pass at a time may use them."""

    def __post_init__(self) -> None:
        weights = [weight for layer in self.layers for weight in layer]
        assert self.programs > 0 and all(
            weight.is_contiguous() and weight.dtype == self.norm.dtype for weight in weights
        )
        addresses = torch.tensor([[weight.data_ptr() for weight in layer] for layer in self.layers])
        object.__setattr__(self, "table", addresses.to(self.norm.device))
        counters = torch.zeros(4, 32, dtype=torch.int32, device=self.norm.device)
        object.__setattr__(self, "barrier", counters)

    @property
    def head_dim(self) -> int:
        return self.cos.shape[1]

    @property
    def heads(self) -> int:
        """Query heads."""
        return self.layers[0].attention_output.shape[1] // self.head_dim

    @property
    def kv_heads(self) -> int:
        return len(self.layers[0].head_norm) - self.heads


@Kernel
def predictor_pass(
    x: Tensor, model: PassModel, head: Tensor, pages: Tensor, position: int, count: int
) -> Tensor:
    """Logits [B, vocab] of the last of `count` positions, 1 or 2, that begin at `position`.

    x [count * B, h] are the inputs, the rows of the first position first; they are used up: their
    place may hold anything afterwards. head [vocab, h]. Keys and values of the rows go into pages
    [layers, slots, 2, kv_heads, positions, D], of which row b of each position has page b; those of
    earlier positions must be there. Two positions are the first two: `position` is 0.

    Every result is rounded to x's type where separate kernels would round it.
    """
    rows, dim = len(x) // count, model.head_dim
    slots = torch.arange(rows, device=x.device)
    tables = slots.int().unsqueeze(1)
    places = torch.arange(position, position + count, device=x.device).repeat_interleave(rows)
    slots = slots.repeat(count)
    for layer, store in zip(model.layers, pages, strict=True):
        normed = rms_norm.plain(x, layer.input_norm, model.eps)
        qkv = F.linear(normed, layer.qkv).view(len(x), -1, dim)
        query = rope_and_store.plain(
            qkv, layer.head_norm, model.cos, model.sin, store, tables, slots, places, model.eps
        )
        attended = decode_attention.plain(query, store, tables, slots, places, 1)
        attended = F.linear(attended, layer.attention_output)
        x, normed = add_rms_norm.plain(attended, x, layer.output_norm, model.eps)
        x = x + F.linear(swiglu.plain(F.linear(normed, layer.gate_up)), layer.down)
    return F.linear(rms_norm.plain(x[-rows:], model.norm, model.eps), head)


def tile_columns(columns: int, programs: int, sides: int = 1) -> int:
    """How many columns of a product's result a program takes at a time: 8, 16 or 32.

    Whoever has most of them decides how long a phase takes; of equal choices the widest tile has
    the fewest reductions. `sides` is 2 where gate and up go together.
    """
    choices = [width for width in _TILES if columns % width == 0 and width * sides <= _TILES[0]]
    return min(choices, key=lambda width: -(-columns // width // programs) * width)


def chunk_inputs(inputs: int, longest: int = _CHUNKS[0]) -> int | None:
    """The length of the pieces in which a product's inputs are summed; None if there is none."""
    fitting = [size for size in _CHUNKS if inputs % size == 0 and size <= longest]
    return fitting[0] if fitting else None


def pass_fits(model: PassModel, vocab: int) -> bool:
    """Whether the Triton twin can run this model: by its sizes, and because a program's share of
    each phase's weights fits into registers."""
    layer, dim = model.layers[0], model.head_dim
    hidden, width = layer.attention_output.shape
    intermediate = layer.down.shape[1]
    group, odd = divmod(model.heads, model.kv_heads)
    if odd or not _power_of_two(group) or not _power_of_two(dim) or dim < _TILES[-1]:
        return False
    products = (
        (len(layer.qkv), hidden, 1),
        (hidden, width, 1),
        (intermediate, hidden, 2),
        (hidden, intermediate, 1),
        (vocab, hidden, 1),
    )
    return all(_product_fits(model, *product) for product in products)


def _product_fits(model: PassModel, columns: int, inputs: int, sides: int) -> bool:
    if columns % _TILES[-1] or chunk_inputs(inputs) is None:
        return False
    tile = tile_columns(columns, model.programs, sides)
    share = -(-columns // tile // model.programs) * tile * sides
    return share * inputs * model.norm.element_size() <= _MOST_TILE_BYTES


def _power_of_two(number: int) -> bool:
    return number > 0 and number & (number - 1) == 0
