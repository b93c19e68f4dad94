"""Which token of the text a frame speaks: what some of the talker's heads look at.

Some heads look at the text that is being spoken, because they were trained to or found it useful.
The checkpoint's `alignment_heads` names them. While the talker moves on by the position that a
frame is made from, their queries are compared with the keys of the text: the token that they look
at most, in the sum of their softmaxes over the text, is the one that is spoken.

Token j of the text is at position `first + j` in both layouts: behind the prompt's prefix and a
reference's transcript, one position each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from realtime_tts.model.config import TransformerConfig

MOST_TEXT = 256
"""Tokens that are looked at: more than an utterance has that is spoken well."""

See = Callable[[int, Tensor], None]
"""Told the number of a layer and its rotated queries [B, heads, D], once the keys are stored."""


class TextView(NamedTuple):
    """The part of a row's text that is looked at: `length` tokens, the first of which is token
    `skipped` and at position `first`."""

    first: int
    length: int
    skipped: int = 0

    @classmethod
    def of(cls, first: int, known: int, last: int) -> TextView:
        """The view of `known` tokens from position `first` on, where token `last` was spoken last:
        all of them, or as many before as behind it."""
        skipped = max(0, min(last - MOST_TEXT // 2, known - MOST_TEXT))
        return cls(first + skipped, min(known - skipped, MOST_TEXT), skipped)


class AlignmentHeads:
    """The heads of a checkpoint, those together that read the same keys."""

    def __init__(self, heads: Iterable[tuple[int, int]], config: TransformerConfig) -> None:
        """`heads`: layer and query head of each."""
        group = config.heads // config.kv_heads
        self.scale = config.head_dim**-0.5
        self.by_layer: dict[int, dict[int, list[int]]] = {}
        """By layer and key head."""
        for layer, head in heads:
            self.by_layer.setdefault(layer, {}).setdefault(head // group, []).append(head)

    def __bool__(self) -> bool:
        return bool(self.by_layer)


class RowKeys(Protocol):
    """Keys by layer, slot and key head: `KVCache`."""

    def keys(self, layer: int, slot: int, head: int, first: int, count: int) -> Tensor:
        """Of `count` positions from `first` on: [count, D], a view."""


class RowSight:
    """What the heads look at in one step of plain modules, row by row."""

    def __init__(
        self,
        heads: AlignmentHeads,
        cache: RowKeys,
        slots: Sequence[int],
        views: Sequence[TextView],
    ) -> None:
        self._heads, self._cache = heads, cache
        self._rows = list(zip(slots, views, strict=True))
        self._weights: list[Tensor | None] = [None] * len(views)

    def see(self, layer: int, query: Tensor) -> None:
        """As `See`."""
        for key_head, heads in self._heads.by_layer.get(layer, {}).items():
            asked = query[:, heads] * self._heads.scale
            for row, (slot, view) in enumerate(self._rows):
                keys = self._cache.keys(layer, slot, key_head, view.first, view.length)
                if view.length:
                    given = (asked[row] @ keys.T).softmax(-1).sum(0)
                    before = self._weights[row]
                    self._weights[row] = given if before is None else before + given

    def tokens(self) -> list[int]:
        """The token that each row speaks; 0 where there was no text to look at."""
        return [
            0 if weights is None else view.skipped + int(weights.argmax())
            for weights, (_, view) in zip(self._weights, self._rows, strict=True)
        ]


class PagedSight:
    """The same for pages of keys, by tensors alone: it may be captured.

    slots, firsts and counts [B] are what `TextView` has; a row that pads has no text.
    """

    def __init__(
        self,
        heads: AlignmentHeads,
        layers: Sequence[Tensor],
        tables: Tensor,
        slots: Tensor,
        firsts: Tensor,
        counts: Tensor,
    ) -> None:
        self._heads, self._layers = heads, layers
        size = layers[0].shape[3]
        steps = torch.arange(MOST_TEXT, device=slots.device)
        self._hidden = steps >= counts.unsqueeze(1)
        places = (firsts.unsqueeze(1) + steps).masked_fill_(self._hidden, 0)
        self._pages = tables[slots].gather(1, places // size).long()
        self._offsets = places.remainder(size)
        self._weights = torch.zeros(
            (len(slots), MOST_TEXT), device=slots.device, dtype=torch.float32
        )

    def see(self, layer: int, query: Tensor) -> None:
        """As `See`."""
        for key_head, heads in self._heads.by_layer.get(layer, {}).items():
            keys = self._layers[layer][self._pages, 0, key_head, self._offsets]  # [B, T, D]
            asked = torch.stack([query[:, head] for head in heads], 1)
            scores = (asked @ keys.transpose(1, 2)).float() * self._heads.scale
            # A page may hold the NaN of a row that failed.
            low = torch.finfo(torch.float32).min
            scores = scores.masked_fill(self._hidden.unsqueeze(1), low)
            self._weights += scores.softmax(-1).sum(1)

    def tokens(self) -> Tensor:
        """Numbers [B] int32, counted from each row's `TextView.skipped`."""
        return self._weights.argmax(-1).int()
