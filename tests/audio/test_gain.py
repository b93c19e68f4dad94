"""Parts of a stream are louder or softer, to the sample, and never too loud."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime_tts.audio.gain import Gain
from realtime_tts.audio.stages import Chain, Stages
from tests.audio.sounds import RATE, loudness, pcm_of, samples_of, through, true_peak, voice
from tests.properties import examples


def spoken(chain: Chain, *parts: tuple[float, bytes]) -> bytes:
    made = []
    for factor, pcm in parts:
        chain.set_volume(factor)
        made += [chain.push(pcm[at : at + 3_840]) for at in range(0, len(pcm), 3_840)]
    return b"".join([*made, chain.finish()])


def plain() -> Chain:
    return Stages().chain("a voice", loudness=False)


def test_a_part_is_so_many_times_as_loud_and_its_neighbours_are_as_they_were() -> None:
    pcm = voice(3, -30)
    made = spoken(plain(), (1.0, pcm), (2.0, pcm), (1.0, pcm), (0.5, pcm))
    assert len(made) == 4 * len(pcm)
    parts = [made[at : at + len(pcm)] for at in range(0, len(made), len(pcm))]
    wanted = [loudness(pcm) + change for change in (0, 6.02, 0, -6.02)]
    assert [loudness(part) for part in parts] == [pytest.approx(each, abs=0.1) for each in wanted]
    assert parts[0] == pcm
    ramp = 2 * RATE // 200
    assert np.abs(samples_of(parts[2][ramp:]) - samples_of(pcm[ramp:])).max() < 1 / 30_000


def test_what_would_be_too_loud_is_limited() -> None:
    pcm = voice(4, -14)
    made = spoken(plain(), (1.0, pcm), (4.0, pcm))
    assert len(made) == 2 * len(pcm)
    assert true_peak(made[len(pcm) :]) <= -1.0
    assert made[: len(pcm)] == pcm, "sound before it is nobody's business"


def test_a_volume_of_nothing_is_silence() -> None:
    assert not any(spoken(plain(), (0.0, voice(1, -20))))


def test_a_stream_that_goes_on_begins_at_the_volume_where_it_stood() -> None:
    pcm = voice(1, -20)
    half = len(pcm) // 2
    whole = spoken(plain(), (0.5, pcm))
    assert whole == spoken(plain(), (0.5, pcm[:half])) + spoken(plain(), (0.5, pcm[half:]))
    turned = spoken(plain(), (1.0, pcm), (0.5, pcm))
    assert turned == pcm + spoken(plain(), (1.0, b""), (0.5, pcm)), "in a ramp, from its volume"


def test_no_click_where_the_volume_changes() -> None:
    tone = pcm_of(0.1 * np.sin(2 * np.pi * 100 * np.arange(RATE) / RATE))
    made = samples_of(spoken(plain(), (1.0, tone), (3.0, tone), (0.2, tone)))
    steepest = 0.3 * 2 * np.pi * 100 / RATE
    assert np.abs(np.diff(made)).max() < steepest + 0.3 / 100


def test_the_volume_is_beside_the_loudness_and_does_not_wear_off() -> None:
    stages, pcm = Stages(), voice(5, -35)
    spoken(stages.chain("a voice", loudness=True), (1.0, voice(10, -35)))  # it was heard before
    made = spoken(stages.chain("a voice", loudness=True), (1.0, pcm), (0.5, pcm), (1.0, pcm))
    parts = [loudness(made[at : at + len(pcm)]) for at in range(0, len(made), len(pcm))]
    assert parts == [pytest.approx(each, abs=1) for each in (-16, -22, -16)]


@examples(30)
@given(
    cuts=st.lists(st.integers(0, 12_000), max_size=12),
    changes=st.lists(
        st.tuples(st.integers(0, 12_000), st.sampled_from([0.0, 0.5, 1.0, 2.0, 4.0])), max_size=4
    ),
)
def test_pieces_give_what_the_whole_gives(
    cuts: list[int], changes: list[tuple[int, float]]
) -> None:
    pcm = voice(0.5, -20)
    pieces, whole = Gain(), Gain()
    for at, factor in sorted(changes):
        pieces.change(at, factor)
        whole.change(at, factor)
    places = [2 * at for at in sorted(cuts)]
    parts = [pcm[a:b] for a, b in zip([0, *places], [*places, len(pcm)], strict=True)]
    made = b"".join([*(pieces.push(part) for part in parts), pieces.finish()])
    assert made == through(whole, pcm, len(pcm)) and len(made) == len(pcm)
