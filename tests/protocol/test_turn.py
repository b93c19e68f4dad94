from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime_tts.protocol.effects import EndText, FeedText, FlushText
from realtime_tts.protocol.settings import SessionSettings
from realtime_tts.protocol.turn import MOVES, Event, State, TurnRecord


def turn() -> TurnRecord:
    return TurnRecord("a", SessionSettings(), 0.0)


def test_the_table_has_a_row_for_every_state() -> None:
    assert MOVES.keys() == set(State)


def test_every_state_but_done_can_reach_done() -> None:
    for state in State:
        reached = {state}
        for _ in State:
            reached |= {target for known in reached for target in MOVES[known].values()}
        assert State.DONE in reached, state


def test_nothing_leaves_done() -> None:
    assert not MOVES[State.DONE]


@pytest.mark.parametrize("state", State)
def test_input_is_taken_exactly_where_the_client_has_not_ended_it(state: State) -> None:
    one = turn()
    one.state = state
    assert one.input_open == (state in {State.QUEUED, State.ON_AIR, State.LATE})


def test_the_server_finishes_each_turn_once() -> None:
    for state, moves in MOVES.items():
        if Event.FINISH in moves:
            assert Event.FINISH not in MOVES[moves[Event.FINISH]], state


def test_on_the_air_input_is_carried_out_at_once() -> None:
    on_air = turn()
    assert on_air.release() == []
    assert on_air.feed("a") == [FeedText("a", "a")]
    assert on_air.feed("") == []
    assert on_air.flush() == [FlushText("a")]
    assert on_air.end() == [EndText("a")]
    assert not on_air.input_open


def test_a_queued_turn_keeps_its_input_and_gives_it_out_in_order() -> None:
    queued = turn()
    assert queued.flush() == [], "nothing to flush yet"
    for effects in (queued.feed("a"), queued.feed("b"), queued.flush(), queued.flush()):
        assert effects == []
    queued.feed("c")
    assert queued.kept_text == "abc"
    assert queued.end() == []
    assert queued.release() == [
        FeedText("a", "ab"),
        FlushText("a"),
        FeedText("a", "c"),
        EndText("a"),
    ]
    assert queued.state is State.ON_AIR_ENDED
    assert queued.kept_text == ""


def test_flushes_alone_take_no_memory() -> None:
    queued = turn()
    queued.feed("a")
    for _ in range(1_000):
        queued.flush()
    assert len(queued._kept) == 2
    assert queued.release() == [FeedText("a", "a"), FlushText("a")]


@given(st.lists(st.text(max_size=5) | st.none(), max_size=20), st.integers(0, 20))
def test_text_is_the_same_however_long_the_turn_waited(
    inputs: list[str | None], wait_for: int
) -> None:
    """None is a flush; the turn goes on the air after `wait_for` inputs."""
    waiting, effects = turn(), []
    for number, item in enumerate([*inputs, None]):
        if number == wait_for or (number == len(inputs) and waiting.queued):
            effects += waiting.release()
        effects += waiting.flush() if item is None else waiting.feed(item)
    text = "".join(effect.text for effect in effects if isinstance(effect, FeedText))
    assert text == "".join(item for item in inputs if item is not None)
    assert waiting.chars == len(text)
    assert all(effect.text for effect in effects if isinstance(effect, FeedText))
