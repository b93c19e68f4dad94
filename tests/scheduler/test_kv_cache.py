"""Pages belong to one slot each, or to nobody, and none is lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tts_scheduler import DoesNotFit, KVCacheManager, KVCacheSize, Reservation

SLOTS = 4


def size(pages: int, page_size: int = 4) -> KVCacheSize:
    return KVCacheSize(pages, page_size, pages * page_size, max_frames=1)


steps = st.lists(
    st.one_of(
        st.tuples(st.just("reserve"), st.integers(0, SLOTS - 1), st.integers(1, 30)),
        st.tuples(st.just("release"), st.integers(0, SLOTS - 1), st.just(0)),
    ),
    max_size=40,
)


@given(steps=steps, pages=st.integers(2, 12), page_size=st.sampled_from([1, 4, 16]))
def test_pages_are_never_shared_and_never_lost(
    steps: list[tuple[str, int, int]], pages: int, page_size: int
) -> None:
    kv = KVCacheManager(SLOTS, size(pages, page_size))
    for kind, slot, positions in steps:
        before = [list(kv.table(each)) for each in range(SLOTS)]
        missing = kv.missing(slot, positions)
        assert missing == max(0, -(-positions // page_size) - len(before[slot]))
        if kind == "release":
            kv.release(slot)
            assert not kv.table(slot)
        elif missing <= len(kv.free):
            chosen = tuple(kv.free[len(kv.free) - missing :])
            kv.reserve([Reservation("a", slot, len(before[slot]), chosen)])
            assert kv.capacity(slot) >= positions
            assert list(kv.table(slot)) == before[slot] + list(chosen)
        owned = [page for each in range(SLOTS) for page in kv.table(each)]
        assert sorted([*owned, *kv.free]) == list(range(1, pages + 1))
        assert all(kv.table(each) == before[each] for each in range(SLOTS) if each != slot)


def test_pages_that_were_freed_since_they_were_chosen_stay_free() -> None:
    kv = KVCacheManager(2, size(6))
    kv.reserve([Reservation("a", 0, 0, (1, 2, 3))])
    chosen = Reservation("b", 1, 0, tuple(kv.free[-2:]))
    kv.release(0)
    kv.reserve([chosen])
    assert list(kv.table(1)) == [*chosen.pages]
    assert sorted(kv.free) == sorted({1, 2, 3, 4, 5, 6} - set(chosen.pages))


def test_a_turn_that_could_never_fit_is_told_what_there_is() -> None:
    memory = KVCacheSize(pages=10, page_size=16, row_positions=160, max_frames=100)
    memory.check(60)
    assert memory.fits(60) and not memory.fits(61)
    with pytest.raises(DoesNotFit, match="61 positions; with 100 frames .* 160 .* less text"):
        memory.check(61)


@pytest.mark.parametrize(
    "numbers", [(0, 16, 16, 4), (2, 16, 33, 4), (2, 16, 32, 32), (2, 0, 1, 1), (2, 16, 32, 0)]
)
def test_a_memory_that_holds_no_turn_is_refused(numbers: tuple[int, int, int, int]) -> None:
    with pytest.raises(ValueError, match="KV cache|row_positions"):
        KVCacheSize(*numbers)
