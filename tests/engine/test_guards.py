import numpy as np
import pytest

from realtime_tts.engine.guards import (
    BUDGET,
    REPETITION,
    SILENCE,
    TEXT,
    GuardConfig,
    Guards,
    Watch,
    trailing_silence,
)
from realtime_tts.engine.interface import Samples, StepOutput
from realtime_tts.engine.sound import all_sound

RATE = 24_000
FRAME = 1_920
SPEECH = np.full(FRAME, 0.1, dtype=np.float32)
QUIET = np.zeros(FRAME, dtype=np.float32)


def guards(tokens: int = 3, finished: bool = True, **config: object) -> Guards:
    made = Guards(GuardConfig(**config), RATE)  # type: ignore[arg-type]
    made.text_tokens = tokens
    made.text_finished = finished
    return made


def heard(guard: Guards, samples: Samples) -> str | None:
    return guard.silence(trailing_silence(samples[None], GuardConfig())[0], len(samples))


def test_the_budget_grows_with_the_text() -> None:
    guard = guards(tokens=2, budget_base=10, budget_per_token=5)
    reasons = [guard.frame(n) for n in range(21)]
    assert reasons == [None] * 20 + [BUDGET]


def test_the_budget_does_not_count_while_text_may_still_come() -> None:
    guard = guards(tokens=1, finished=False, budget_base=1, budget_per_token=1)
    assert [guard.frame(n) for n in range(50)] == [None] * 50


def test_one_code_over_and_over_is_repetition() -> None:
    guard = guards(tokens=100)
    reasons = [guard.frame(7) for _ in range(30)]
    assert reasons[22:24] == [None, REPETITION], "24 of the last 30 frames is a share of 0.8"


def test_a_pause_of_a_second_is_not_repetition() -> None:
    guard = guards(tokens=100)
    speech = [guard.frame(n) for n in range(40)]
    pause = [guard.frame(7) for _ in range(13)]
    assert speech + pause == [None] * 53


def test_silence_after_the_text_is_used_up_ends_the_turn() -> None:
    guard = guards(tokens=1, silence_seconds=0.24)
    for n in range(3):
        guard.frame(n)
    assert heard(guard, SPEECH) is None
    assert [heard(guard, QUIET) for _ in range(3)] == [None, None, SILENCE]


def test_silence_is_counted_from_the_last_audible_sample() -> None:
    guard = guards(tokens=0, silence_seconds=0.12)
    guard.frame(1)
    half = np.concatenate([SPEECH[: FRAME // 2], QUIET[: FRAME // 2]])
    assert heard(guard, half) is None
    assert heard(guard, QUIET) == SILENCE


@pytest.mark.parametrize(("tokens", "finished"), [(100, True), (1, False)])
def test_silence_while_text_is_still_fed_is_a_pause(tokens: int, finished: bool) -> None:
    guard = guards(tokens=tokens, finished=finished, silence_seconds=0.1)
    guard.frame(1)
    guard.frame(2)
    assert [heard(guard, QUIET) for _ in range(10)] == [None] * 10


def test_guards_can_be_switched_off() -> None:
    guard = guards(tokens=0, enabled=False, silence_seconds=0.01, budget_base=1)
    assert all(guard.frame(7) is None and heard(guard, QUIET) is None for _ in range(100))


@pytest.mark.parametrize("enabled", [True, False])
def test_what_is_silent_is_known_with_and_without_guards(enabled: bool) -> None:
    """The times of words end where speech falls silent."""
    watch = Watch(GuardConfig(enabled=enabled), RATE)
    watch.begin("a")
    for number, samples in enumerate([SPEECH, QUIET, QUIET], 1):
        output = StepOutput(frames={"a": number}, samples={"a": samples})
        assert watch.reasons(output, all_sound(output)) == {}
    assert watch.guards["a"].silent_samples == 2 * FRAME


def test_a_guard_goes_on_where_that_of_another_engine_was() -> None:
    """Whatever was counted there is counted on: frames, repetitions and silence."""
    said = [5] * 6
    guard = guards(repetition_run=8, repetition_window=8)
    guard.resume(said, silent_samples=RATE)
    assert guard.frame(5) is None and guard.frame(5) == REPETITION
    guard = guards(tokens=0, budget_base=8, budget_per_token=0)
    guard.resume(said, silent_samples=0)
    assert [guard.frame(n) for n in range(3)] == [None, None, BUDGET]
    guard = guards(tokens=3)
    guard.resume(said, silent_samples=RATE)
    quiet = [heard(guard, QUIET) for _ in range(13)]
    assert quiet == [None] * 12 + [SILENCE]


def test_words_that_are_spoken_again_end_the_turn() -> None:
    guard = guards(tokens=40)
    assert [guard.token(token) for token in range(30)] == [None] * 30
    again = [guard.token(token) for token in range(14)]
    assert again == [None] * 11 + [TEXT] * 3


def test_a_look_back_in_a_silence_or_at_one_word_is_no_repetition() -> None:
    guard = guards(tokens=40)
    for token in range(30):
        guard.token(token)
    assert [guard.token(2) for _ in range(50)] == [None] * 50
    assert [guard.token(token) for token in (30, 31, *[25] * 30, 32)] == [None] * 33


def test_a_turn_taken_up_knows_what_was_spoken() -> None:
    whole, moved = guards(tokens=40), guards(tokens=40)
    tokens = [*range(30), *range(20)]
    reasons = [whole.token(token) for token in tokens]
    moved.resume([1, 2, 3], 0, tokens[:36])
    assert [moved.token(token) for token in tokens[36:]] == reasons[36:]
    assert TEXT in reasons[36:]
