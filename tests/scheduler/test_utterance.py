from itertools import product

import pytest

from tts_scheduler import Layout, Phase, Playback
from tts_scheduler.utterance import MOVES, Utterance


def utterance(phase: Phase = Phase.QUEUED) -> Utterance:
    return Utterance(
        id="a",
        order=1,
        prompt_tokens=10,
        layout=Layout.AUTO,
        opened_at=0.0,
        lead_cap=3.0,
        listener_free_at=None,
        playback=Playback(),
        phase=phase,
    )


@pytest.mark.parametrize(("before", "after"), list(product(Phase, Phase)))
def test_only_the_moves_of_the_table_are_legal(before: Phase, after: Phase) -> None:
    row = utterance(before)
    if after in MOVES[before]:
        row.move(after)
        assert row.phase is after
    else:
        with pytest.raises(AssertionError, match="no way from"):
            row.move(after)


def test_every_phase_can_end_and_only_once() -> None:
    assert all(Phase.ENDED in MOVES[phase] for phase in Phase if phase is not Phase.ENDED)
    assert MOVES[Phase.ENDED] == frozenset()


def test_frame_k_needs_token_k_or_the_end_of_the_text() -> None:
    row = utterance(Phase.SPEAKING)
    row.text_tokens, row.frames = 3, 2
    assert row.can_go_on
    row.frames = 3
    assert not row.can_go_on
    row.finished = True
    assert row.can_go_on


def test_the_clock_of_being_held_runs_from_the_last_frame_to_the_next_text() -> None:
    row = utterance(Phase.SPEAKING)
    row.text_tokens, row.frames = 1, 1
    row.note_text(5.0)
    assert row.stats(5.5).held_seconds == pytest.approx(0.5)
    assert row.stats().held_seconds == 0.0
    row.text_tokens = 2
    row.note_text(6.0)
    assert row.stats(9.0).held_seconds == pytest.approx(1.0)
    assert row.resumed_at == 6.0


def test_waiting_for_the_first_text_is_not_being_held() -> None:
    row = utterance(Phase.WAITING)
    row.note_text(5.0)
    assert row.stats(9.0).held_seconds == 0.0
