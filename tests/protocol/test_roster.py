from __future__ import annotations

from realtime_tts.protocol.settings import SessionSettings
from realtime_tts.protocol.turn import REMEMBERED, Event, Roster, State

SETTINGS = SessionSettings()


def finish_one(roster: Roster, turn_id: str | None = None) -> str:
    turn = roster.begin(turn_id, SETTINGS, 0.0)
    roster.queue.append(turn)
    assert roster.open_next() is turn
    turn.release()
    roster.finish(turn, Event.FINISH)
    return turn.id


def test_only_one_turn_is_on_the_air_and_the_others_follow_in_order() -> None:
    roster = Roster()
    turns = [roster.begin(name, SETTINGS, 0.0) for name in "abc"]
    roster.queue.extend(turns)
    for turn in turns:
        assert roster.open_next() is turn
        assert roster.open_next() is None
        turn.release()
        roster.finish(turn, Event.FINISH)
    assert roster.open_next() is None
    assert roster.last_heard is turns[-1]


def test_a_turn_made_here_never_takes_a_name_in_use() -> None:
    roster = Roster()
    roster.begin("t1", SETTINGS, 0.0)
    roster.begin("t3", SETTINGS, 0.0)
    assert [roster.begin(None, SETTINGS, 0.0).id for _ in range(3)] == ["t2", "t4", "t5"]


def test_finished_turns_are_known_for_a_while_and_then_forgotten() -> None:
    roster = Roster()
    first = finish_one(roster, "first")
    late = roster.get(first)
    assert late is not None and late.state is State.LATE
    for _ in range(REMEMBERED - 1):
        finish_one(roster)
    assert roster.get(first) is late
    finish_one(roster)
    assert roster.get(first) is None
    assert late.state is State.DONE and late not in roster.inputs


def test_a_queued_turn_that_is_over_leaves_the_queue() -> None:
    roster = Roster()
    turns = [roster.begin(name, SETTINGS, 0.0) for name in "abc"]
    roster.queue.extend(turns)
    roster.finish(turns[1], Event.STOP)
    assert [turn.id for turn in roster.queue] == ["a", "c"]
    assert roster.last_heard is None, "it was never heard"


def test_the_newest_turn_with_open_input_is_the_one_that_began_last() -> None:
    roster = Roster()
    older, newer = (roster.begin(name, SETTINGS, 0.0) for name in "ab")
    assert roster.newest_input() is newer
    newer.end()
    assert roster.newest_input() is older
    older.end()
    assert roster.newest_input() is None
