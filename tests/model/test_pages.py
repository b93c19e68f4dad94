"""Pages belong to one slot each, or to nobody, and a reservation succeeds wholly or not at all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime_tts.errors import OutOfPages
from realtime_tts.model.pages import SCRATCH_PAGE, PageTables

SLOTS = 4

steps = st.lists(
    st.one_of(
        st.tuples(st.just("reserve"), st.integers(0, SLOTS - 1), st.integers(0, 60)),
        st.tuples(st.just("clear"), st.integers(0, SLOTS - 1), st.just(0)),
        st.tuples(st.just("upload"), st.just(0), st.just(0)),
    ),
    max_size=40,
)


@given(steps=steps, pages=st.integers(1, 12), size=st.sampled_from([1, 4, 16]))
def test_pages_are_never_shared_lost_or_given_in_part(
    steps: list[tuple[str, int, int]], pages: int, size: int
) -> None:
    tables = PageTables(SLOTS, pages, size, max_pages=8)
    device: dict[tuple[int, int], int] = {}
    for kind, slot, positions in steps:
        before = [tables.table(each) for each in range(SLOTS)]
        if kind == "reserve":
            wanted = max(-(-positions // size), len(before[slot]))
            try:
                tables.reserve(slot, positions)
                assert len(tables.table(slot)) == wanted <= 8
                assert tables.capacity(slot) >= positions
                assert tables.table(slot)[: len(before[slot])] == before[slot]
            except OutOfPages:
                assert wanted > 8 or wanted - len(before[slot]) > tables.free
                assert tables.table(slot) == before[slot]
        elif kind == "clear":
            tables.clear(slot)
            assert tables.table(slot) == ()
        else:
            device.update(((slot, column), page) for slot, column, page in tables.take_changes())
            assert not tables.changed and not tables.take_changes()
        now = [tables.table(each) for each in range(SLOTS)]
        owned = [page for table in now for page in table]
        assert all(now[each] == before[each] for each in range(SLOTS) if each != slot)
        assert len(set(owned)) == len(owned) == pages - tables.free
        assert all(SCRATCH_PAGE < page <= pages for page in owned)
    for slot, column, page in tables.take_changes():
        device[slot, column] = page
    for slot in range(SLOTS):
        row = [device.get((slot, column), SCRATCH_PAGE) for column in range(8)]
        table = tables.table(slot)
        assert row == [*table, *[SCRATCH_PAGE] * (8 - len(table))]


def test_all_pages_can_be_had_and_had_again() -> None:
    tables = PageTables(2, pages=5, page_size=4, max_pages=5)
    tables.reserve(0, 20)
    assert (tables.free, sorted(tables.table(0))) == (0, [1, 2, 3, 4, 5])
    tables.clear(0)
    tables.clear(0)
    assert tables.free == 5
    tables.reserve(1, 20)
    assert sorted(tables.table(1)) == [1, 2, 3, 4, 5]


def test_a_refusal_says_what_is_missing() -> None:
    tables = PageTables(2, pages=5, page_size=4, max_pages=4)
    tables.reserve(0, 13)
    with pytest.raises(OutOfPages, match="8 positions need 2 further pages of 4, and 1 of 5 are"):
        tables.reserve(1, 8)
    with pytest.raises(OutOfPages, match="17 positions .* at most 16"):
        tables.reserve(0, 17)


def test_changes_are_told_once_and_as_they_are_at_last() -> None:
    tables = PageTables(1, pages=3, page_size=4, max_pages=3)
    tables.reserve(0, 8)
    tables.clear(0)
    tables.reserve(0, 3)
    page = tables.table(0)[0]
    assert sorted(tables.take_changes()) == [(0, 0, page), (0, 1, SCRATCH_PAGE)]
    assert tables.take_changes() == []
