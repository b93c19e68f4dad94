"""Which token of the text a frame speaks, read from the attention of some of the talker's heads.

Some heads attend to the text that is being spoken, because they were trained to or learned it by
themselves. The checkpoint's `alignment_heads` names them. While the talker computes the position
that a frame is made from, the queries of these heads are compared with the keys of the text: the
token with the largest sum of their softmaxes over the text is the one that is spoken.

Token j of the text is at position `first + j` in both layouts: after the prompt's prefix and a
reference's transcript, one position each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from realtime_tts.kernels import MOST_TEXT, most_seen
from realtime_tts.model.config import TransformerConfig

QueryObserver = Callable[[int, Tensor], None]
"""Called with a layer's number and its rotated queries [B, heads, D], once keys are stored."""


class TextView(NamedTuple):
    """The part of a row's text that the heads are read on: `length` tokens, the first of which is
    token number `skipped`, at position `first`."""

    first: int
    length: int
    skipped: int = 0

    @classmethod
    def of(cls, first: int, known: int, last: int) -> TextView:
        """Return the view of `known` tokens from position `first` on, if token `last` was spoken
        last: all of them, or an equal number before and after `last`."""
        if known <= MOST_TEXT:
            return cls(first, known)
        skipped = max(0, min(last - MOST_TEXT // 2, known - MOST_TEXT))
        return cls(first + skipped, MOST_TEXT, skipped)


class AlignmentHeads:
    """The alignment heads of a checkpoint, grouped by the keys that they read."""

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
        """Layer and key head of each head: int32 [K, 2], on the device."""
        self.by_layer: dict[int, dict[int, list[int]]] = {}
        """Query heads by layer and key head."""
        for layer, head in self.pairs:
            self.by_layer.setdefault(layer, {}).setdefault(head // group, []).append(head)

    def __bool__(self) -> bool:
        return bool(self.by_layer)


class RowKeys(Protocol):
    """A cache that gives keys by layer, slot and key head, like `KVCache`."""

    def keys(self, layer: int, slot: int, head: int, first: int, count: int) -> Tensor:
        """Return the keys of `count` positions from `first` on: [count, D], a view."""


class RowAlignment:
    """Reads the alignment heads in one step of plain modules, row by row."""

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

    def observe(self, layer: int, query: Tensor) -> None:
        """Add the heads' attention in this layer; a `QueryObserver`."""
        for key_head, heads in self._heads.by_layer.get(layer, {}).items():
            asked = query[:, heads] * self._heads.scale
            for row, (slot, view) in enumerate(self._rows):
                keys = self._cache.keys(layer, slot, key_head, view.first, view.length)
                if view.length:
                    given = (asked[row] @ keys.T).softmax(-1).sum(0)
                    before = self._weights[row]
                    self._weights[row] = given if before is None else before + given

    def tokens(self) -> list[int]:
        """Return the token that each row speaks; 0 where there was no text."""
        return [
            0 if weights is None else view.skipped + int(weights.argmax())
            for weights, (_, view) in zip(self._weights, self._rows, strict=True)
        ]


class PagedAlignment:
    """Reads the alignment heads on pages of keys, with tensors alone, so it can be captured.

    slots, firsts and counts [B] are those of each row's `TextView`; a padding row has no text.
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
        """`pages` [layers, pages, 2, kv_heads, page_size, D] and `tables`: of a `PagedKVCache`."""
        self._heads, self._pages = heads, pages
        self._rows = tables, slots, firsts, counts
        shape = len(slots), len(heads.places), pages.shape[5]
        self._asked = torch.empty(shape, device=pages.device, dtype=pages.dtype)

    def observe(self, layer: int, query: Tensor) -> None:
        """Keep the heads' queries of this layer; a `QueryObserver`."""
        for number, (own_layer, head) in enumerate(self._heads.pairs):
            if own_layer == layer:
                self._asked[:, number] = query[:, head]

    def tokens(self) -> Tensor:
        """Return the token that each row speaks, int32 [B], counted from its `TextView.skipped`.
        Call it when all layers have been observed and their keys stored."""
        return most_seen(self._asked, self._pages, self._heads.places, *self._rows)
