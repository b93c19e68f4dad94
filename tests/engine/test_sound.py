from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime_tts.audio.pcm import quantised, to_s16le
from realtime_tts.engine.guards import GuardConfig, trailing_silence
from realtime_tts.engine.interface import SoundBlock, StepOutput
from realtime_tts.engine.sound import all_sound, pcm_rows

NOISE = np.random.default_rng(1).uniform(-1.2, 1.2, (5, 1_920)).astype(np.float32)


def test_a_block_gives_the_bytes_that_its_rows_give_alone() -> None:
    alone = [to_s16le(row) for row in NOISE]
    assert list(pcm_rows(SoundBlock("abcde", NOISE))) == alone
    assert list(pcm_rows(SoundBlock("abcde", quantised(NOISE)))) == alone


def test_quantising_clips_and_rounds_half_to_even_and_leaves_its_input() -> None:
    samples = np.array([0.0, 2.0, -2.0, 0.5 / 32_767, 1.5 / 32_767], dtype=np.float32)
    before = samples.copy()
    assert quantised(samples).tolist() == [0, 32_767, -32_767, 0, 2]
    assert (samples == before).all()


def test_rows_given_one_by_one_share_blocks_by_length() -> None:
    output = StepOutput(samples={"a": NOISE[0], "b": NOISE[1, :960], "c": NOISE[2]})
    output.blocks.append(SoundBlock(("d",), NOISE[3:4]))
    found: dict[str, Any] = {}
    for block in all_sound(output):
        found.update(zip(block.ids, block.samples, strict=True))
    assert {id: len(row) for id, row in found.items()} == {
        "a": 1920,
        "b": 960,
        "c": 1920,
        "d": 1920,
    }
    assert (found["c"] == NOISE[2]).all() and (found["d"] == NOISE[3]).all()


def test_a_block_without_an_id_for_each_row_is_a_mistake() -> None:
    with pytest.raises(AssertionError, match="5 rows of sound for 1"):
        all_sound(StepOutput(blocks=[SoundBlock(("a",), NOISE)]))


@given(st.lists(st.integers(-1, 299), min_size=1, max_size=6), st.booleans())
def test_silence_is_counted_from_each_row_s_last_audible_sample(
    last: list[int], as_pcm: bool
) -> None:
    """-1 for a row that is silent throughout; noise below the limit is silence."""
    samples = np.full((len(last), 300), 0.002, dtype=np.float32)
    for row, at in enumerate(last):
        if at >= 0:
            samples[row, at] = -0.1
    block = quantised(samples) if as_pcm else samples
    assert trailing_silence(block, GuardConfig()) == [299 - at for at in last]
