"""When text is given on, and when an utterance is closed: the rules by themselves."""

from __future__ import annotations

import pytest

from tts_scheduler import FeedPace, Pacing, Reaction
from tts_scheduler.pacing import END_WAIT, STALL, Unit


def fed(rate: float, count: int, pace: FeedPace | None = None) -> FeedPace:
    pace = pace or FeedPace()
    for _ in range(count):
        pace.came(1.0, 1 / rate)
    return pace


@pytest.mark.parametrize(("rate", "flows"), [(60, True), (15, True), (12, False), (3, False)])
def test_two_intervals_tell_a_fast_feed_from_a_slow_one(rate: float, flows: bool) -> None:
    assert fed(rate, 1).flows is None
    assert fed(rate, 2).flows is flows


def test_a_stall_says_nothing_of_the_pace() -> None:
    pace = fed(60, 5)
    pace.came(1.0, STALL + 0.1)
    assert pace.flows is True


def test_a_pace_near_the_limit_does_not_go_to_and_fro() -> None:
    pace = fed(15, 20)
    assert fed(13, 200, pace).flows is True, "it is still as fast as speech"
    assert fed(11, 200, pace).flows is False
    assert fed(14.5, 200, pace).flows is False
    assert fed(17, 200, pace).flows is True


def test_words_of_an_unknown_feed_are_given_on_where_several_came_at_once() -> None:
    assert Pacing().unit(words=1) is Unit.CLAUSE
    assert Pacing().unit(words=2) is Unit.WORD
    assert Pacing(feed=fed(5, 3)).unit(words=2) is Unit.CLAUSE
    assert Pacing(feed=fed(30, 3)).unit(words=1) is Unit.WORD


@pytest.mark.parametrize(
    ("mode", "unit"), [("token", Unit.WORD), ("clause", Unit.CLAUSE), ("sentence", Unit.SENTENCE)]
)
def test_a_mode_names_the_unit(mode: str, unit: Unit) -> None:
    assert Pacing(mode, fed(60, 9)).unit(words=9) is unit  # type: ignore[arg-type]


def test_words_are_given_on_when_a_clause_began_is_long_or_stalls_with_nothing_to_hear() -> None:
    pacing = Pacing("clause")
    pacing.came(1.0, now=10.0)
    assert pacing.units(3, 5.0, False, dry_at=10.5, now=10.4) == (Unit.CLAUSE,)
    assert pacing.units(3, 5.0, True, dry_at=10.5, now=10.4) == (Unit.WORD,)
    assert pacing.units(30, 21.0, False, dry_at=10.5, now=10.4) == (Unit.CLAUSE, Unit.WORD)
    assert pacing.units(3, 5.0, False, dry_at=10.5, now=10.0 + STALL) == (Unit.WORD,)
    assert pacing.units(3, 5.0, False, dry_at=20.0, now=10.0 + STALL) == (Unit.CLAUSE,)
    assert pacing.end_at() == 10.0 + END_WAIT


def test_an_utterance_is_closed_as_much_sooner_as_the_engine_is_slow() -> None:
    slow = Reaction()
    before = Pacing(reaction=slow).closes_at(dry_at=5.0)
    slow.note(0.3)
    assert Pacing(reaction=slow).closes_at(dry_at=5.0) <= 5.0 - 0.3 < before
    for _ in range(50):
        slow.note(0.01)
    assert Pacing(reaction=slow).closes_at(dry_at=5.0) > before, "and that is forgotten"


def test_a_row_is_closed_sooner_once_its_text_has_paused() -> None:
    """While text flows each word that comes before then saves a cut."""
    pacing = Pacing(reaction=Reaction(0.02))
    latest = pytest.approx(-0.05)
    pacing.came(1.0, now=5.0)
    assert pacing.closes_at(dry_at=5.2) - 5.2 == latest
    assert pacing.closes_at(dry_at=5.4) == pytest.approx(5.3)
    assert pacing.closes_at(dry_at=6.0) - 6.0 == pytest.approx(-0.15)
