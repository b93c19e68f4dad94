"""Speech begins with its first sound: to the sample, never later, and nobody behind knows of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from realtime_tts.audio.pcm import quantised
from realtime_tts.engine.fake import FakeEngine, FakeEngineConfig
from realtime_tts.engine.interface import SoundBlock, UtteranceSpec
from realtime_tts.engine.link import Append, Audio, Ended, Event, Finish, Open
from realtime_tts.engine.loop import EngineLoop
from realtime_tts.engine.sound import LeadingSilence, onsets
from tests.properties import examples
from tts_scheduler import Scheduler, SchedulerConfig, StepPlan, StepResult

RATE, FRAME = 24_000, 1_920
ATTACK = 120
"""Samples before the first sound that are kept: 5 ms."""
SPEC = UtteranceSpec(voice="alto", trim_silence="on")


class Said:
    """What a fake engine says that is silent for so many samples, and what the scheduler hears."""

    def __init__(self, silence: int, *, step_seconds: float = 0.01, tokens: int = 4) -> None:
        self.now = 0.0
        self.events: list[Event] = []
        self.results: list[StepResult] = []
        self.step_seconds, self.tokens = step_seconds, tokens
        self.engine = FakeEngine(FakeEngineConfig(slots=4, step_seconds=0.0, silence=silence))
        self.scheduler = Scheduler(SchedulerConfig(slots=4))
        self.loop = EngineLoop(
            self.engine, self.scheduler, self.events.extend, clock=lambda: self.now
        )
        step, book = self.engine.step, self.scheduler.book

        def timed(plan: StepPlan) -> Any:
            self.now += self.step_seconds
            return step(plan)

        def noted(plan: StepPlan, result: StepResult, now: float) -> list[str]:
            self.results.append(result)
            waiting = book(plan, result, now)
            if any(isinstance(event, Ended) for event in self.events) or not result.frames:
                self.loop.stop()
            return waiting

        self.engine.step = timed  # type: ignore[method-assign]
        self.scheduler.book = noted  # type: ignore[method-assign]

    def run(self, **specs: UtteranceSpec) -> dict[str, np.ndarray[Any, Any]]:
        """The sound of each utterance."""
        for id, spec in specs.items():
            self.loop.submit(Open(id, spec), Append(id, [1] * self.tokens), Finish(id))
        self.loop.run()
        return {
            id: np.concatenate(
                [np.zeros(0, np.int16)]
                + [
                    np.frombuffer(event.pcm, np.int16)
                    for event in self.events
                    if isinstance(event, Audio) and event.id == id
                ]
            )
            for id in specs
        }


OFF = UtteranceSpec(voice="alto")


@pytest.mark.parametrize("silence", [1_000, 1_920, 2_400, 3_120, 10_000])
def test_a_silent_start_is_cut_off_to_the_sample(silence: int) -> None:
    whole = Said(silence).run(a=OFF)["a"]
    assert not whole[: silence + 1].any() and whole[silence + 1], "as the tone begins"
    heard = Said(silence).run(a=SPEC)["a"]
    np.testing.assert_array_equal(heard, whole[silence + 1 - ATTACK :])


@pytest.mark.parametrize("silence", [0, 1, ATTACK - 1])
def test_speech_that_begins_at_once_is_left_alone(silence: int) -> None:
    whole, said = Said(silence).run(a=OFF)["a"], Said(silence)
    np.testing.assert_array_equal(said.run(a=SPEC)["a"], whole)
    assert said.results[0].samples == {"a": FRAME}, "and not held back"


def test_the_scheduler_counts_what_is_heard_and_goes_on_at_once_before_it() -> None:
    said = Said(2_900)
    heard = said.run(a=SPEC)["a"]
    assert sum(result.samples.get("a", 0) for result in said.results) == len(heard)
    first = next(n for n, result in enumerate(said.results) if result.samples)
    assert first == 1, "the sound is in the second frame"
    assert all("a" in result.frames for result in said.results[: first + 1])
    decoded = sum((result.decoded or {}).get("a", 0) for result in said.results)
    assert decoded == len(heard) + 2_901 - ATTACK


@pytest.mark.parametrize(
    ("left", "seconds", "frames"),
    [(1_000, 0.001, 2), (1_000, 0.02, 3), (1_000, 0.06, 4), (900, 0.001, 3)],
)
def test_a_first_packet_is_as_long_as_the_next_one_needs(
    left: int, seconds: float, frames: int
) -> None:
    """Of the second frame 42 ms can be heard, which is enough for fast steps; or 38 ms, which never
    is."""
    sound = np.zeros(6 * FRAME, np.int16)
    sound[2 * FRAME - left + ATTACK :] = 5_000
    silence, made = LeadingSilence(RATE), 0
    silence.begin("a")
    given: list[SoundBlock] = []
    while not given:
        block = SoundBlock(("a",), sound[None, made * FRAME : (made + 1) * FRAME])
        given = silence.cut_from([block], (), seconds)
        made += 1
    assert made == frames
    np.testing.assert_array_equal(given[0].samples[0], sound[2 * FRAME - left : made * FRAME])


def test_who_wants_the_silence_keeps_it_beside_one_who_does_not() -> None:
    whole = Said(2_000).run(a=OFF)["a"]
    both = Said(2_000).run(a=SPEC, b=OFF, c=SPEC)
    np.testing.assert_array_equal(both["b"], whole)
    for id in ("a", "c"):
        np.testing.assert_array_equal(both[id], whole[2_001 - ATTACK :])


@pytest.mark.parametrize("silence", [30_000, 10**6])
def test_what_is_no_beginning_of_speech_stays(silence: int) -> None:
    """More than a second of silence, and speech that is nothing else."""
    whole = Said(silence).run(a=OFF)["a"]
    np.testing.assert_array_equal(Said(silence).run(a=SPEC)["a"], whole)


@pytest.mark.parametrize("silence", [23_000, 23_999, 24_000, 24_001, 26_400, 30_000])
@pytest.mark.parametrize("frames", [1, 2, 4, 20])
def test_what_is_cut_off_does_not_depend_on_the_codec_s_chunks(silence: int, frames: int) -> None:
    """Their size depends on what else the engine has to do."""
    sound = np.zeros(20 * FRAME, np.int16)
    sound[silence:] = 5_000
    cut, given = LeadingSilence(RATE), list[SoundBlock]()
    cut.begin("a")
    for part in np.split(sound, 20 // frames):
        given += cut.cut_from([SoundBlock(("a",), part[None])], (), 0.01)
    begins = silence - ATTACK if silence < RATE else 0
    np.testing.assert_array_equal(
        np.concatenate([block.samples[0] for block in given]), sound[begins:]
    )


def test_silence_that_ends_within_a_second_is_given_at_the_end() -> None:
    said = Said(10**6, tokens=2)
    np.testing.assert_array_equal(said.run(a=SPEC)["a"], np.zeros(6 * FRAME, np.int16))
    kinds = [type(event) for event in said.events]
    assert kinds.index(Audio) < kinds.index(Ended)


def test_a_row_that_is_interrupted_before_it_is_heard_leaves_nothing() -> None:
    silence = LeadingSilence(RATE)
    silence.begin("a")
    block = SoundBlock(("a",), np.zeros((1, FRAME), np.int16))
    assert silence.cut_from([block], (), 0.01) == []
    silence.end("a")
    silence.end("a")
    assert silence.cut_from([block], {"a"}, 0.01) == [block]


# What is heard ----------------------------------------------------------------------------------


def noise(seed: int, length: int, dbfs: float) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Of this level; its peaks are 12 dB above it at most."""
    sound = np.random.default_rng(seed).standard_normal(length).clip(-4, 4)
    return (sound * 10 ** (dbfs / 20)).astype(np.float32)


@examples(50)
@given(
    st.integers(0, 5_000),
    st.floats(-30, -3),
    st.floats(0, 30),
    st.integers(0, 99),
    st.sampled_from(["float", "pcm"]),
)
def test_speech_is_never_cut_however_softly_it_begins(
    silence: int, dbfs: float, rise_ms: float, seed: int, kind: str
) -> None:
    """What is dropped before it stays below -45 dBFS, which nobody hears."""
    floor = noise(seed, silence + 4_000, -70.0)
    speech = noise(seed + 1, 4_000, dbfs)
    rise = min(round(rise_ms * RATE / 1000), 3_000)
    speech[:rise] *= np.linspace(0, 1, rise, dtype=np.float32)
    floor[silence:] += speech
    sound = quantised(floor) if kind == "pcm" else floor
    (onset,) = onsets(sound[None], RATE)
    assert onset >= 0
    dropped = floor[: max(0, onset - ATTACK)]
    assert np.abs(dropped).max(initial=0.0) < 10 ** (-45 / 20)
    clear = np.flatnonzero(np.abs(floor) > 10 ** (-45 / 20))
    assert onset - ATTACK <= clear[0]
    assert clear[0] - onset <= 0.02 * RATE, "nor is much of the silence left"


def first_audible(row: Any, scale: float) -> int:
    """The definition, sample by sample."""
    peak, level = (scale * 10 ** (dbfs / 20) for dbfs in (-50, -55))
    sound, size = row.astype(np.float64), RATE // 200
    for at, sample in enumerate(np.abs(sound)):
        window = sound[at - at % size : at - at % size + size]
        loud = len(window) == size and np.mean(window**2) > level**2
        if sample > peak or (sample > level and loud):
            return at
    return -1


EDGES = [0, 1, 57, 58, 59, 103, 104, 32_767]
"""Of 16 bits, around both levels (58.27 and 103.62), and the largest."""


@examples(200)
@given(
    rows=st.lists(st.lists(st.sampled_from(EDGES), min_size=1, max_size=6), min_size=1, max_size=3),
    length=st.sampled_from([0, 1, 119, 120, 121, 240, 500]),
    silence=st.integers(0, 260),
    sign=st.sampled_from([-1, 1]),
)
@example(rows=[[59, 104]], length=120, silence=0, sign=1)  # the softer one is first
def test_the_onset_is_the_first_audible_sample_in_either_form(
    rows: list[list[int]], length: int, silence: int, sign: int
) -> None:
    pcm = np.stack([np.resize(np.array(row, np.int16), length) for row in rows]) * np.int16(sign)
    pcm[:, :silence] = 0
    assert onsets(pcm, RATE) == [first_audible(row, 32_767.0) for row in pcm]
    sound = (pcm / 32_767.0).astype(np.float32)
    assert onsets(sound, RATE) == [first_audible(row, 1.0) for row in sound]


def test_rows_of_a_block_are_looked_at_each_for_itself() -> None:
    sound = np.zeros((4, FRAME), np.float32)
    sound[1, 700:] = 0.1
    sound[2, 0] = -1.0
    sound[3, -1] = 0.01
    assert onsets(sound, RATE) == [-1, 700, 0, FRAME - 1]
    assert onsets(quantised(sound), RATE) == onsets(sound, RATE)
    for length in (0, 50):
        assert onsets(np.zeros((2, length), np.int16), RATE) == [-1, -1]
