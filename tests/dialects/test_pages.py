"""Pages of lists, as ElevenLabs' and Cartesia's clients ask for them."""

from __future__ import annotations

import pytest

from realtime_tts.dialects.api import page_of

NAMES = [f"voice-{number:03}" for number in range(150)]


@pytest.mark.parametrize(
    ("limit", "count"), [("", 10), ("7", 7), ("0", 1), ("500", 100), ("-1", 10), ("ten", 10)]
)
def test_a_page_has_1_to_100_names_and_usually_10(limit: str, count: int) -> None:
    page, more = page_of(NAMES, {"limit": limit}, "limit", "after")
    assert page == NAMES[:count] and more


def test_a_page_may_end_before_a_name() -> None:
    query = {"limit": "2", "after": NAMES[0], "before": NAMES[5]}
    assert page_of(NAMES, query, "limit", "after", "before") == (NAMES[3:5], True)
    assert page_of(NAMES, query | {"before": NAMES[3]}, "limit", "after", "before")[1] is False
