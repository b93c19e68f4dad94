"""The paged cache against the slot cache: the same talker, the same outputs, pages or not."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from realtime_tts.kernels import attention
from realtime_tts.model import SpeechModel
from realtime_tts.model.paged_cache import PagedKVCache, PromptRows
from realtime_tts.model.random_weights import RandomWeights
from realtime_tts.model.talker import Talker

SIZE = 4
"""Positions of a page: few, so that every test crosses borders."""


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def talker(request: pytest.FixtureRequest, model: SpeechModel) -> Talker:
    """A small random one, on the device under test."""
    device = torch.device(request.param)
    weights = RandomWeights(device=device, dtype=torch.float32, stored=torch.bfloat16)
    return Talker(model.config.talker, weights, device, torch.float32)


class Counted(PagedKVCache):
    """A cache that knows how many positions each slot holds and which pages are free, as engine and
    scheduler do."""

    lengths: list[int]
    free: list[int]

    def begin(self, slots: Sequence[int], count: int) -> list[int]:
        """Room for `count` further positions in each slot; the position of the first."""
        starts = [self.lengths[slot] for slot in slots]
        for slot, start in zip(slots, starts, strict=True):
            self.reserve(slot, start + count)
        for slot, start in zip(slots, starts, strict=True):
            self.lengths[slot] = start + count
        return starts

    def reserve(self, slot: int, positions: int) -> None:
        """Pages for so many positions in all; asserts that there are enough."""
        held = self.capacity(slot) // SIZE
        missing = -(-positions // SIZE) - held
        self.upload([(slot, held, [self.free.pop() for _ in range(missing)])])

    def clear(self, slot: int) -> None:
        self.free += self.tables[slot, : self.capacity(slot) // SIZE].tolist()
        super().clear(slot)
        self.lengths[slot] = 0

    def copy_prefix(self, slots: Sequence[int], keys_values: Tensor) -> None:
        for slot in slots:
            self.reserve(slot, keys_values.shape[3])
        super().copy_prefix(slots, keys_values)
        for slot in slots:
            self.lengths[slot] = keys_values.shape[3]


def new_cache(talker: Talker, slots: int = 4, pages: int = 40, positions: int = 48) -> Counted:
    shape = talker.config.transformer
    cache = Counted(
        shape, slots, pages, talker.device, talker.dtype, page_size=SIZE, positions=positions
    )
    cache.lengths = [0] * slots
    cache.free = list(range(pages, 0, -1))
    return cache


def numbers(talker: Talker, *shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, talker.config.transformer.hidden, generator=generator).to(
        talker.device
    )


def close(found: Tensor, wanted: Tensor) -> None:
    torch.testing.assert_close(found, wanted, atol=1e-4, rtol=1e-4)


# The talker on pages: what an engine captures ---------------------------------------------------


@torch.inference_mode()
def step(
    talker: Talker, inputs: Tensor, slots: Tensor, positions: Tensor, cache: PagedKVCache
) -> Tensor:
    """inputs [B, H] -> outputs [B, H]; tensors only."""
    x, rope = inputs, talker._rope
    for index, layer in enumerate(talker.layers):
        qkv = layer.qkv(layer.input_norm(x)).view(1, len(x), -1, layer.config.head_dim)
        norm = layer.head_norm.weight
        attended = cache.attend_fused(index, qkv, slots, positions, norm, rope.cos, rope.sin)
        x = layer.output(x, attended)
    return talker.norm(x)


@torch.inference_mode()
def prompt(talker: Talker, inputs: Tensor, rows: PromptRows, cache: PagedKVCache) -> Tensor:
    """inputs [N, H] -> outputs [N, H]; tensors only."""
    x, rope = inputs, talker._rope
    for index, layer in enumerate(talker.layers):
        qkv = layer.qkv(layer.input_norm(x)).view(1, len(x), -1, layer.config.head_dim)
        norm = layer.head_norm.weight
        x = layer.output(x, cache.attend_prompt(index, qkv, rows, norm, rope.cos, rope.sin))
    return talker.norm(x)


def padded(rows: PromptRows, count: int, cache: PagedKVCache) -> PromptRows:
    """With `count` positions of padding, and a row that has none."""
    scratch, none = rows.slots.new_tensor([cache.slots]), rows.slots.new_zeros(count)
    return PromptRows(
        torch.cat((rows.slots, scratch)),
        torch.cat((rows.starts, none[:1])),
        torch.cat((rows.begins, rows.begins[-1:])),
        torch.cat((rows.owners, scratch.expand(count))),
        torch.cat((rows.places, none)),
        rows.most,
    )


def decode(
    talker: Talker, inputs: Tensor, slots: Sequence[int], cache: Counted, padding: int = 0
) -> Tensor:
    """One step as an engine makes it, with rows of padding behind the real ones."""
    positions = cache.begin(slots, 1) + [0] * padding
    rows = [*slots, *[cache.slots] * padding]
    inputs = torch.cat((inputs, inputs.new_ones(padding, inputs.shape[1])))
    who, where = torch.tensor([rows, positions], device=talker.device)
    return step(talker, inputs, who, where, cache)[: len(slots)]


def prefill(
    talker: Talker, prompts: Sequence[Tensor], slots: Sequence[int], cache: Counted
) -> list[Tensor]:
    """Prompts [n, H] behind what their slots hold: the outputs [n, H] of each."""
    starts = [cache.begin([slot], len(x))[0] for slot, x in zip(slots, prompts, strict=True)]
    lengths = [len(x) for x in prompts]
    rows = padded(PromptRows.of(slots, starts, lengths, talker.device), 3, cache)
    inputs = torch.cat((*prompts, prompts[0].new_full((3, prompts[0].shape[1]), 9.0)))
    outputs = prompt(talker, inputs, rows, cache)
    return list(outputs[: sum(lengths)].split(lengths))


# Proofs ----------------------------------------------------------------------------------------


def test_pages_and_slots_give_the_same_outputs_step_by_step(talker: Talker) -> None:
    """Prompts of different lengths at once, then steps of interleaved slots and padding rows."""
    paged, plain = new_cache(talker), talker.new_cache(4)
    slots, prompts = [2, 0, 3], [numbers(talker, n, seed=n) for n in (5, 1, 12)]
    for slot, inputs, found in zip(
        slots, prompts, prefill(talker, prompts, slots, paged), strict=True
    ):
        close(found[-1], talker.prefill(inputs, slot, plain))
    for turn, rows in enumerate([[2, 0, 3], [3, 2], [0], [0, 3], [2, 3, 0], [3, 0, 2]] * 3):
        inputs = numbers(talker, len(rows), seed=100 + turn)
        found = decode(talker, inputs, rows, paged, padding=turn % 3)
        close(found, talker.decode(inputs, rows, plain))
    assert [paged.lengths[slot] for slot in slots] == [plain.lengths[slot] for slot in slots]


def test_the_talker_fills_prompts_of_different_lengths_at_once(talker: Talker) -> None:
    """And padding behind them; then a step tells what is in the pages."""
    paged, plain = new_cache(talker), talker.new_cache(4)
    slots, prompts = [2, 0, 3], [numbers(talker, n, seed=n) for n in (5, 1, 12)]
    starts = paged.begin([2], 5) + paged.begin([0], 1) + paged.begin([3], 12)
    rows = padded(PromptRows.of(slots, starts, [5, 1, 12], talker.device), 3, paged)
    talker.fill_at(torch.cat((*prompts, numbers(talker, 3, seed=9))), rows, paged)
    for slot, prompt in zip(slots, prompts, strict=True):
        talker.prefill(prompt, slot, plain)
    step_inputs = numbers(talker, 3, seed=7)
    close(decode(talker, step_inputs, slots, paged), talker.decode(step_inputs, slots, plain))


def test_a_prompt_in_two_parts_equals_the_whole(talker: Talker) -> None:
    whole = numbers(talker, 11)
    cache = new_cache(talker)
    (wanted,) = prefill(talker, [whole], [0], cache)
    for cut in (1, 4, 7, 10):
        prefill(talker, [whole[:cut]], [1], cache)
        found, _ = prefill(talker, [whole[cut:], whole[:3]], [1, 2], cache)
        close(found, wanted[cut:])
        cache.clear(1)
        cache.clear(2)


@pytest.mark.parametrize("count", [1, 3, 4, 8, 9])
def test_a_copied_prefix_is_as_good_as_a_computed_one(talker: Talker, count: int) -> None:
    whole, other = numbers(talker, 13), numbers(talker, 6, seed=1)
    cache = new_cache(talker)
    (wanted,) = prefill(talker, [whole], [0], cache)
    prefix = cache.read(0, count)
    shape = talker.config.transformer
    assert prefix.shape == (shape.layers, 2, shape.kv_heads, count, shape.head_dim)
    cache.clear(0)
    prefill(talker, [other], [2], cache)  # in the pages the prefix came from
    cache.copy_prefix([3, 1], prefix)
    assert torch.equal(cache.read(1, count), prefix)
    assert cache.lengths[3] == count
    assert torch.equal(cache.read(3, count), prefix)
    (found,) = prefill(talker, [whole[count:]], [3], cache)
    close(found, wanted[count:])
    inputs = numbers(talker, 1, seed=5)
    plain = talker.new_cache(1)
    talker.prefill(whole, 0, plain)
    close(decode(talker, inputs, [3], cache), talker.decode(inputs, [0], plain))


def test_a_prefix_read_stays_as_it_was(talker: Talker) -> None:
    cache = new_cache(talker)
    prefill(talker, [numbers(talker, 8)], [0], cache)
    prefix = cache.read(0, 8)
    before = prefix.clone()
    cache.clear(0)
    prefill(talker, [numbers(talker, 8, seed=1)], [0], cache)
    assert torch.equal(prefix, before)


def test_pages_of_a_cleared_slot_serve_another_and_tell_nothing(talker: Talker) -> None:
    """Not even what a row of NaN left in them."""
    cache = new_cache(talker, pages=6)
    fresh = new_cache(talker, pages=6)
    prefill(talker, [torch.full_like(numbers(talker, 24), float("nan"))], [1], cache)
    assert not cache.free
    cache.clear(1)
    assert (len(cache.free), cache.lengths[1]) == (6, 0)
    x = numbers(talker, 6)
    close(prefill(talker, [x], [0], cache)[0], prefill(talker, [x], [0], fresh)[0])
    inputs = numbers(talker, 1, seed=2)
    close(decode(talker, inputs, [0], cache, padding=2), decode(talker, inputs, [0], fresh))


def test_padding_rows_leave_all_other_pages_alone(talker: Talker) -> None:
    cache = new_cache(talker)
    prefill(talker, [numbers(talker, 6)], [0], cache)
    before = cache.pages.clone()
    nowhere = torch.full((3,), cache.slots, device=talker.device)
    none = torch.zeros_like(nowhere)
    step(talker, numbers(talker, 3), nowhere, none, cache)
    assert torch.equal(cache.pages[:, 1:], before[:, 1:])
    rows = PromptRows(
        nowhere, none, torch.zeros_like(nowhere[:1]).expand(4).contiguous(), nowhere, none, 1
    )
    outputs = prompt(talker, numbers(talker, 3), rows, cache)
    assert torch.equal(cache.pages[:, 1:], before[:, 1:])
    assert outputs.isfinite().all()


def test_a_cleared_slot_points_at_the_scratch_page(talker: Talker) -> None:
    """A row that an engine forgot to take out of a batch must not write into another's pages."""
    cache = new_cache(talker)
    prefill(talker, [numbers(talker, 6)], [0], cache)
    assert cache.tables[0, :2].all()
    cache.clear(0)
    assert not cache.tables.any()


def test_tables_and_pages_keep_their_addresses(talker: Talker) -> None:
    cache = new_cache(talker)
    places = cache.tables.data_ptr(), [layer.data_ptr() for layer in cache.layers]
    for turn in range(3):
        prefill(talker, [numbers(talker, 9)], [turn], cache)
        cache.clear(turn)
    cache.copy_prefix([0], torch.zeros_like(cache.pages[:, 0]))
    assert places == (cache.tables.data_ptr(), [layer.data_ptr() for layer in cache.layers])


def test_nothing_is_read_on_the_host(model: SpeechModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fake tensors have shapes and no values: whatever asks for a value fails here."""
    monkeypatch.setattr(attention, "held_pages", lambda tables, *rest: tables)  # as on a GPU
    with FakeTensorMode():
        device = torch.device("cpu")
        shape = model.config.talker.transformer
        cache = PagedKVCache(shape, 4, 40, device, torch.float32, page_size=SIZE, positions=48)
        heads, keys, dim = shape.heads, shape.kv_heads, shape.head_dim
        rows = torch.zeros(3, dtype=torch.long)
        turns, norm = torch.zeros(48, dim), torch.zeros(heads + keys, dim)
        qkv = torch.zeros(1, 3, heads + 2 * keys, dim)
        found = cache.attend_fused(0, qkv, rows, rows, norm, turns, turns)
        assert found.shape == (3, heads * dim)
        where = PromptRows(rows, rows, torch.zeros(4).long(), rows, rows, 7)
        found = cache.attend_prompt(0, qkv, where, norm, turns, turns)
        assert found.shape == (3, heads * dim)


@pytest.mark.gpu
def test_a_captured_step_is_the_step(model: SpeechModel) -> None:
    """Captured with padding rows alone; replayed with any slots, positions and tables."""
    device = torch.device("cuda")
    weights = RandomWeights(device=device, dtype=torch.bfloat16, stored=torch.bfloat16)
    talker = Talker(model.config.talker, weights, device, torch.bfloat16)
    captured, eager = new_cache(talker), new_cache(talker)
    inputs = numbers(talker, 4).bfloat16()
    slots = torch.full((4,), captured.slots, device=device)
    positions = torch.zeros_like(slots)
    step(talker, inputs, slots, positions, captured)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        outputs = step(talker, inputs, slots, positions, captured)
    for turn, rows in enumerate([[1, 3, 0, 2], [2, 0], [0, 1, 2], [3]] * 6):
        fresh = numbers(talker, len(rows), seed=turn).bfloat16()
        wanted = decode(talker, fresh, rows, eager, padding=4 - len(rows))
        starts = captured.begin(rows, 1)
        padding = 4 - len(rows)
        slots.copy_(torch.tensor([*rows, *[captured.slots] * padding]))
        positions.copy_(torch.tensor([*starts, *[0] * padding]))
        inputs[: len(rows)] = fresh
        graph.replay()
        torch.testing.assert_close(outputs[: len(rows)], wanted, atol=0.02, rtol=0.02)
