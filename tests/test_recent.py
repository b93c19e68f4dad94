"""What is remembered by a key that clients choose has an end."""

from __future__ import annotations

from realtime_tts.recent import Recent


def test_of_more_items_than_are_kept_the_one_set_longest_ago_is_dropped() -> None:
    kept: Recent[str, int] = Recent(3)
    for number, key in enumerate("abcadb"):
        kept[key] = number
    assert list(kept.items()) == [("a", 3), ("d", 4), ("b", 5)]
