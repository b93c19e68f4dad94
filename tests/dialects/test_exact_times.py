"""Other APIs' times, of a model that tells: 0.24 s for each character (see
tests/server/test_exact_word_times.py)."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime_tts.dialects import cartesia_messages, elevenlabs_messages, vllm_omni
from realtime_tts.dialects.timing import characters_of
from realtime_tts.dialects.vllm_omni_request import Config
from realtime_tts.engine.fake import FakeEngineConfig
from realtime_tts.protocol.ticks import ticks
from realtime_tts.text.speech_times import SpokenSpan
from tests.dialects.elevens import alignments, eleven
from tests.server.speaking import speaking

SECONDS = 0.24
TEXT = "Good morning, all. "


async def test_elevenlabs_characters_are_where_they_are_spoken() -> None:
    async with speaking(engine=FakeEngineConfig(aligned=True)) as server:
        async with eleven(server, "&sync_alignment=true", multi=False) as client:
            await client.send(text=TEXT)
            await client.send(text="")
            messages = await client.rest()
    told = alignments(messages)
    chars = [char for one in told for char in one["chars"]]
    starts = [start for one in told for start in one["charStartTimesMs"]]
    assert "".join(chars).strip() == TEXT.strip()
    spoken = [(at, start) for at, start in enumerate(starts) if not chars[at].isspace()]
    assert all(start == pytest.approx(at * SECONDS * 1000, abs=6) for at, start in spoken)


LAST = SpokenSpan("tide", 0.98, 24_013 / 24_000)
"""A word that ends with the last sample, at a time that every message has to round."""


def test_no_word_ends_behind_the_last_sample() -> None:
    socket = elevenlabs_messages.times(LAST, 0)["alignment"]
    over_http = elevenlabs_messages.seconds(characters_of(LAST))
    sentence = vllm_omni.Sentence(Config(word_timestamps=True))
    sentence.spoken(LAST)
    (omni,) = sentence._words
    ends = (
        (socket["charStartTimesMs"][-1] + socket["charDurationsMs"][-1]) / 1000,
        over_http["character_end_times_seconds"][-1],
        cartesia_messages.timestamps(LAST)["word_timestamps"]["end"][-1],
        omni["end_ms"] / 1000,
    )
    assert all(LAST.end - 1e-3 < end <= LAST.end for end in ends), ends


@given(samples=st.integers(0, 24_000 * 3600), per_second=st.sampled_from([1000, 10_000]))
def test_a_time_is_rounded_down_by_less_than_a_tick(samples: int, per_second: int) -> None:
    seconds, told = Fraction(samples, 24_000), ticks(samples / 24_000, per_second)
    assert seconds - Fraction(1, per_second) < Fraction(told, per_second) <= seconds


def test_a_sum_of_tenths_is_no_tick_too_early() -> None:
    assert ticks(sum([0.1] * 10), 10_000) == 10_000
