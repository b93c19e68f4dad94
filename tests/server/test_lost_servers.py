"""Whole servers behind a proxy that are killed while the Python client listens."""

from __future__ import annotations

from tests.server.killing_servers import Found, disturbed


def assert_nothing_was_lost(found: Found) -> None:
    assert (found.lost, found.different, found.wrong_words, found.warnings) == (0, 0, 0, 0), found
    assert found.resumes > 0 and len(found.gaps) == found.resumes, "nobody was disturbed"


async def test_replies_outlive_servers_that_are_killed() -> None:
    assert_nothing_was_lost(await disturbed("fake", 2, 3, seed=1))


async def test_replies_outlive_connections_that_end() -> None:
    assert_nothing_was_lost(await disturbed("fake", 6, 3, seed=2, cut=True))
