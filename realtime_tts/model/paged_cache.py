"""The talker's keys and values in pages, for captured graphs.

    cache = PagedKVCache(config, slots=64, pages=4096, device=device, dtype=dtype)
    cache.upload([(slot, 0, (17, 4))])            # before a step; or its program calls `write`
    cache.attend_prompt(layer, ...)               # device only: may be captured, and replayed
    cache.attend_fused(layer, ...)

A page holds a fixed number of positions; a slot's block table lists its pages in the order of its
positions. Which page belongs to which slot is decided elsewhere. Page 0 is the scratch page:
padding rows write to it, and tables contain it wherever a slot has no page.

Host and device meet only in `upload` and `clear`, and in `added`, whose numbers a captured program
takes to `write`. Device methods take tensors, read nothing on the host and find pages and tables at
fixed addresses. Rows that pad a captured batch are in the scratch slot, number `slots`, at position
0: what they write goes to a page that is never read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

import torch
from torch import Tensor

from realtime_tts.kernels import decode_attention, prompt_attention, rope_and_store, store_prefix
from realtime_tts.model.alignment import QueryObserver
from realtime_tts.model.config import TransformerConfig


@dataclass(frozen=True, slots=True)
class PromptRows:
    """Where N positions of B prompts go. The prompts are computed one after the other: row b has
    the positions from begins[b] to begins[b + 1], because prompts have very different lengths and
    should not be padded to the longest.

    Positions from begins[B] on are padding: their owner is the scratch slot, their place 0. All
    tensors are int64.
    """

    slots: Tensor
    """The slot of each row [B]."""
    starts: Tensor
    """The position in its slot of each row's first position [B]."""
    begins: Tensor
    """Where each row begins among the N positions, ascending [B + 1]."""
    owners: Tensor
    """The slot of each position [N]."""
    places: Tensor
    """The position of each in that slot [N]."""
    most: int
    """The most positions of a row."""

    @property
    def last(self) -> Tensor:
        """The index of each row's last position [B], if it has any."""
        return (self.begins[1:] - 1).clamp(min=0)

    @classmethod
    def of(
        cls,
        slots: Sequence[int],
        starts: Sequence[int],
        lengths: Sequence[int],
        device: torch.device,
    ) -> PromptRows:
        """Build the rows from Python integers, without padding."""

        def tensor(numbers: Sequence[int]) -> Tensor:
            return torch.tensor(numbers, dtype=torch.long, device=device)

        rows = list(zip(slots, starts, lengths, strict=True))
        owners = [slot for slot, _, length in rows for _ in range(length)]
        places = [start + step for _, start, length in rows for step in range(length)]
        begins = tensor([0, *accumulate(lengths)])
        return cls(
            tensor(slots), tensor(starts), begins, tensor(owners), tensor(places), max(lengths)
        )


PAGE_SIZE = 16
"""Positions per page: 1.3 s of speech, so a turn wastes 0.6 s of it on average."""

SCRATCH_PAGE = 0

TableEntries = tuple[int, int, Sequence[int]]
"""A slot, an index in its block table, and the pages from there on."""


def position_bytes(config: TransformerConfig, dtype: torch.dtype) -> int:
    """Return the bytes of one position's keys and values, all layers together."""
    return 2 * config.layers * config.kv_heads * config.head_dim * dtype.itemsize


class NewPages(NamedTuple):
    """Pages that were added to block tables: where in the tables' memory, and their numbers."""

    where: list[int]
    pages: list[int]


NO_PAGES = NewPages([], [])


class PagedKVCache:
    """Keys and values of `slots` slots in `pages` pages and a scratch page.

    `positions`: the most that one slot may hold; without it, what the talker can take or all pages
    hold, whichever is less. It sets the width of the tables, and on devices without Triton the work
    of every step. `prefix_positions`: positions of all kept prefixes together.
    """

    def __init__(
        self,
        config: TransformerConfig,
        slots: int,
        pages: int,
        device: torch.device,
        dtype: torch.dtype,
        *,
        page_size: int = PAGE_SIZE,
        positions: int | None = None,
        prefix_positions: int = 0,
    ) -> None:
        positions = min(positions or config.max_positions, pages * page_size)
        self.config, self.device, self.slots = config, device, slots
        self.positions, self._page_size = pages * page_size, page_size
        self._held = [0] * slots
        """Number of pages in each slot's table."""
        self.pages = torch.zeros(
            (config.layers, pages + 1, 2, config.kv_heads, page_size, config.head_dim),
            device=device,
            dtype=dtype,
        )
        self.prefixes = self.pages.new_zeros(
            (config.layers, 2, config.kv_heads, prefix_positions, config.head_dim)
        )
        """Keys and values that many slots begin with [layers, 2, kv_heads, positions, D]; who owns
        the cache knows what is where."""
        self.layers: list[Tensor] = list(self.pages.unbind(0))
        """Each layer's `pages` as kernels take it: [pages + 1, 2, kv_heads, page_size, D]."""
        self.tables = torch.zeros(
            (slots + 1, -(-positions // page_size)), device=device, dtype=torch.int32
        )
        self.to_device: Callable[[Sequence[int]], Tensor] = self._pinned
        """Copies numbers to the device, as int64. Whoever runs steps may set a cheaper way."""

    # Host ------------------------------------------------------------------------------------

    @property
    def scratch_entry(self) -> int:
        """Where an entry of a block table goes that is only padding; its page is SCRATCH_PAGE."""
        return self.slots * self.tables.shape[1]

    def capacity(self, slot: int) -> int:
        """Return how many positions the slot's pages hold."""
        return self._held[slot] * self._page_size

    @torch.inference_mode()
    def upload(self, entries: Sequence[TableEntries]) -> None:
        """Add pages to block tables, each time at the table's end, with one small copy to the
        device.

        Call it on the stream that runs the steps, outside of a capture.
        """
        if entries:
            where, pages = self.added(entries)
            self.write(self.to_device(where + pages))

    def added(self, entries: Sequence[TableEntries]) -> NewPages:
        """Count pages as added to block tables; `write` adds them."""
        where: list[int] = []
        given: list[int] = []
        width = self.tables.shape[1]
        for slot, first, pages in entries:
            assert first == self._held[slot], f"slot {slot} has {self._held[slot]} pages"
            self._held[slot] += len(pages)
            where += range(slot * width + first, slot * width + first + len(pages))
            given += pages
        return NewPages(where, given)

    @torch.inference_mode()
    def clear(self, slot: int) -> None:
        """Take all pages from a slot. Idempotent."""
        if self._held[slot]:
            self._held[slot] = 0
            self.tables[slot] = SCRATCH_PAGE

    @torch.inference_mode()
    def copy_prefix(self, slots: Sequence[int], keys_values: Tensor) -> None:
        """Fill slots with the first positions of another one, as `read` returned them.

        keys_values [layers, 2, kv_heads, n, D], on any device; the slots have pages for them.
        """
        count = keys_values.shape[3]
        assert all(count <= self.capacity(slot) for slot in slots), "too few pages for a prefix"
        keys_values = keys_values.to(self.device, non_blocking=True)
        rows = len(slots)
        self.copy_prefixes(keys_values, self.to_device([*slots, *[0] * rows, *[count] * rows]))

    @torch.inference_mode()
    def read(self, slot: int, count: int) -> Tensor:
        """Return a copy of a slot's first positions [layers, 2, kv_heads, count, D]."""
        assert count <= self.capacity(slot), f"slot {slot} has no {count} positions"
        table = self.tables[slot, : -(-count // self._page_size)].long()
        found = self.pages[:, table].permute(0, 2, 3, 1, 4, 5).flatten(3, 4)
        return found[:, :, :, :count].contiguous()

    def _pinned(self, numbers: Sequence[int]) -> Tensor:
        """Copy numbers from pinned memory, so that the copy to a GPU does not wait for its work."""
        held = torch.tensor(numbers, dtype=torch.long, pin_memory=self.device.type == "cuda")
        return held.to(self.device, non_blocking=True)

    # Device ----------------------------------------------------------------------------------

    def write(self, entries: Tensor) -> None:
        """Write entries of block tables: int64 [2 * n], where they go and then the pages."""
        where, given = entries.tensor_split(2)
        # A view of the numbers' low halves, which saves a kernel that would convert them.
        self.tables.view(-1).index_copy_(0, where, given.view(torch.int32)[::2])

    def copy_prefixes(self, keys_values: Tensor, rows: Tensor) -> None:
        """Fill the beginnings of slots: `rows` int64 [3 * B] are B slots, the position in
        `keys_values` [layers, 2, kv_heads, n, D] where each one's prefix begins, and its length."""
        slots, firsts, counts = rows.tensor_split(3)
        store_prefix(keys_values, firsts, counts, self.pages, self.tables, slots)

    def attend_fused(
        self,
        layer: int,
        parts: Tensor,
        slots: Tensor,
        positions: Tensor,
        norm: Tensor,
        cos: Tensor,
        sin: Tensor,
        on_queries: QueryObserver | None = None,
    ) -> Tensor:
        """Store one position for each row, whose query attends to its slot's positions up to there.

        parts [S, B, heads + 2 * kv_heads, D] is the fused product in parts: sum, norm, rotation
        and storing happen here, see `kernels.rope_and_store` for norm, cos and sin. slots,
        positions [B]; padding rows are in the scratch slot at position 0. `on_queries` is called
        with the rotated queries. -> [B, heads * D].
        """
        pages, tables = self.layers[layer], self.tables
        query = rope_and_store(
            parts, norm, cos, sin, pages, tables, slots, positions, self.config.norm_eps
        )
        if on_queries is not None:
            on_queries(layer, query)
        return decode_attention(query, pages, tables, slots, positions, 1)

    def attend_prompt(
        self, layer: int, parts: Tensor, rows: PromptRows, norm: Tensor, cos: Tensor, sin: Tensor
    ) -> Tensor:
        """Store prompts, and attend causally to them and to what their slots hold already.

        parts [S, N, heads + 2 * kv_heads, D] is the fused product in parts; `norm`, `cos` and `sin`
        as in `attend_fused`. -> [N, heads * D], zeros where padding is.
        """
        pages, tables = self.layers[layer], self.tables
        query = rope_and_store(
            parts, norm, cos, sin, pages, tables, rows.owners, rows.places, self.config.norm_eps
        )
        return prompt_attention(
            query, pages, tables, rows.slots, rows.starts, rows.begins, rows.most
        )
