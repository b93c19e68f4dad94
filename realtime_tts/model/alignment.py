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

from realtime_tts.kernels import MOST_TEXT, most_seen
from realtime_tts.model.config import TransformerConfig

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

    def __init__(
        self,
        heads: Iterable[tuple[int, int]],
        config: TransformerConfig,
        device: torch.device | None = None,
    ) -> None:
        """`heads`: layer and query head of each."""
        group = config.heads // config.kv_heads
        self.scale = config.head_dim**-0.5
        self.pairs = tuple(heads)
        places = [(layer, head // group) for layer, head in self.pairs]
        self.places = torch.tensor(places, dtype=torch.int32, device=device)
        """[K, 2], on the device: layer and key head of each."""
        self.by_layer: dict[int, dict[int, list[int]]] = {}
        """By layer and key head."""
        for layer, head in self.pairs:
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
        pages: Tensor,
        tables: Tensor,
        slots: Tensor,
        firsts: Tensor,
        counts: Tensor,
    ) -> None:
        """`pages` and `tables` as `PagedKVCache` has them."""
        self._heads, self._pages = heads, pages
        self._rows = tables, slots, firsts, counts
        shape = len(slots), len(heads.places), pages.shape[5]
        self._asked = torch.empty(shape, device=pages.device, dtype=pages.dtype)

    def see(self, layer: int, query: Tensor) -> None:
        """As `See`."""
        for number, (own_layer, head) in enumerate(self._heads.pairs):
            if own_layer == layer:
                self._asked[:, number] = query[:, head]

    def tokens(self) -> Tensor:
        """Numbers [B] int32, counted from each row's `TextView.skipped`. When all has been seen,
        and stored."""
        return most_seen(self._asked, self._pages, self._heads.places, *self._rows)
