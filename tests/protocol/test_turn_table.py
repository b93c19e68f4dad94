from __future__ import annotations

from realtime_tts.protocol.settings import SessionSettings
from realtime_tts.protocol.turn import REMEMBERED, Event, State, TurnTable

SETTINGS = SessionSettings()


def finish_one(table: TurnTable, turn_id: str | None = None) -> str:
    turn = table.begin(turn_id, SETTINGS, 0.0)
    table.queue.append(turn)
    assert table.open_next() is turn
    turn.release()
    table.finish(turn, Event.FINISH)
    return turn.id


def test_only_one_turn_is_on_the_air_and_the_others_follow_in_order() -> None:
    table = TurnTable()
    turns = [table.begin(name, SETTINGS, 0.0) for name in "abc"]
    table.queue.extend(turns)
    for turn in turns:
        assert table.open_next() is turn
        assert table.open_next() is None
        turn.release()
        table.finish(turn, Event.FINISH)
    assert table.open_next() is None
    assert table.last_heard is turns[-1]


def test_a_turn_made_here_never_takes_a_name_in_use() -> None:
    table = TurnTable()
    table.begin("t1", SETTINGS, 0.0)
    table.begin("t3", SETTINGS, 0.0)
    assert [table.begin(None, SETTINGS, 0.0).id for _ in range(3)] == ["t2", "t4", "t5"]


def test_finished_turns_are_known_for_a_while_and_then_forgotten() -> None:
    table = TurnTable()
    first = finish_one(table, "first")
    late = table.get(first)
    assert late is not None and late.state is State.LATE
    for _ in range(REMEMBERED - 1):
        finish_one(table)
    assert table.get(first) is late
    finish_one(table)
    assert table.get(first) is None
    assert late.state is State.DONE and late not in table.inputs


def test_a_queued_turn_that_is_over_leaves_the_queue() -> None:
    table = TurnTable()
    turns = [table.begin(name, SETTINGS, 0.0) for name in "abc"]
    table.queue.extend(turns)
    table.finish(turns[1], Event.STOP)
    assert [turn.id for turn in table.queue] == ["a", "c"]
    assert table.last_heard is None, "it was never heard"


def test_the_newest_turn_with_open_input_is_the_one_that_began_last() -> None:
    table = TurnTable()
    older, newer = (table.begin(name, SETTINGS, 0.0) for name in "ab")
    assert table.newest_input() is newer
    newer.end()
    assert table.newest_input() is older
    older.end()
    assert table.newest_input() is None
