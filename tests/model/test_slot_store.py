"""The dense store of captured steps: what the talker computes with it, and what it can hold."""

from __future__ import annotations

import pytest
import torch

from realtime_tts.model import SpeechModel
from realtime_tts.model.paged_cache import PAGE_SIZE as PAGE
from realtime_tts.model.prompt_rows import PromptRows
from realtime_tts.model.slot_store import DenseSlotStore, new_store

SLOTS = 3


@pytest.fixture
def store(model: SpeechModel) -> DenseSlotStore:
    shape = model.config.talker.transformer
    return DenseSlotStore(shape, SLOTS, 64, 8 * PAGE, torch.device("cpu"), torch.float32)


def test_a_prompt_in_pieces_and_steps_is_the_plain_talkers(
    model: SpeechModel, store: DenseSlotStore
) -> None:
    """Twelve positions filled at once, then five on top of them before padding, then two decode
    steps in a padded batch: the outputs of the plain talker's prefill and steps."""
    talker, hidden = model.talker, model.config.talker.transformer.hidden
    inputs = torch.randn(20, hidden, generator=torch.Generator().manual_seed(0))
    cache = talker.new_cache(1)
    talker.prefill(inputs[:17], 0, cache)
    wanted = [talker.decode(inputs[at : at + 1], [0], cache) for at in (17, 18)]

    talker.fill_at(inputs[:12], PromptRows.of([1], [0], [12], talker.device), store)
    slots = torch.tensor([1, SLOTS])
    more = torch.cat((inputs[12:17], torch.zeros(3, hidden)))
    owners, places = torch.tensor([1] * 5 + [SLOTS] * 3), torch.tensor([*range(12, 17), 0, 0, 0])
    begins = torch.tensor([0, 5, 5])
    rows = PromptRows(slots, torch.tensor([12, 0]), begins, owners, places, 5)
    talker.fill_at(more, rows, store)
    for at, output in zip((17, 18), wanted, strict=True):
        both = torch.stack((inputs[at], torch.zeros(hidden)))
        found = talker.decode_at(both, slots, torch.tensor([at, 0]), store)
        torch.testing.assert_close(found[:1], output, atol=1e-4, rtol=1e-4)


def test_a_prefix_read_from_one_slot_serves_another(
    model: SpeechModel, store: DenseSlotStore
) -> None:
    talker, hidden = model.talker, model.config.talker.transformer.hidden
    inputs = torch.randn(9, hidden, generator=torch.Generator().manual_seed(1))
    talker.fill_at(inputs, PromptRows.of([0], [0], [9], talker.device), store)
    store.copy_prefix([2], store.read(0, 9))
    query, where = torch.ones(2, hidden), torch.tensor([0, 2])
    one, other = talker.decode_at(query, where, torch.tensor([9, 9]), store)
    assert torch.equal(one, other)
    store.clear(0)
    assert not store.read(0, 9).any() and store.read(2, 9).any()


def test_on_a_cpu_one_slot_may_take_all_there_is(model: SpeechModel) -> None:
    shape = model.config.talker.transformer
    store = new_store(shape, SLOTS, 40, torch.device("cpu"), torch.float32)
    assert [store.capacity(slot) for slot in range(SLOTS)] == [40] * SLOTS
    assert store.positions == 40
