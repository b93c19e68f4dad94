"""Recordings from strangers: what is good is taken, everything else is refused within bounds."""

from __future__ import annotations

import resource
import time

import numpy as np
import pytest

from realtime_tts.voices.audio import decode
from realtime_tts.voices.errors import VoiceRequestError
from tests.voices import recordings


@pytest.mark.parametrize("name", recordings.GOOD)
def test_every_format_rate_and_channel_count_becomes_mono(name: str) -> None:
    recording = decode(recordings.GOOD[name]())
    assert recording.samples.ndim == 1 and recording.samples.dtype == np.float32
    assert 1.4 < recording.seconds < 3.2
    assert 0.1 < np.abs(recording.samples).max() <= 1.0


def test_a_wav_keeps_its_samples_and_its_rate() -> None:
    samples = recordings.voice(rate=16_000)
    recording = decode(recordings.encoded(samples, 16_000, subtype="FLOAT"))
    assert recording.sample_rate == 16_000
    np.testing.assert_allclose(recording.samples, samples, atol=1e-7)


def test_channels_are_mixed() -> None:
    stereo = np.stack([recordings.voice(), np.zeros_like(recordings.voice())], axis=1)
    recording = decode(recordings.encoded(stereo, subtype="FLOAT"))
    np.testing.assert_allclose(recording.samples, recordings.voice() / 2, atol=1e-6)


@pytest.mark.parametrize("case", recordings.HOSTILE, ids=lambda case: case.name)
def test_hostile_recordings_are_refused_with_the_reason(case: recordings.Hostile) -> None:
    data = case.make()
    began = time.process_time()
    with pytest.raises(VoiceRequestError, match=case.says) as refused:
        decode(data)
    assert refused.value.status == case.status
    assert "object at" not in str(refused.value)
    assert time.process_time() - began < 2


def test_what_is_decoded_is_bounded_by_the_limit_and_not_by_the_file() -> None:
    flac = recordings.long_flac()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(VoiceRequestError):
        decode(flac)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 20_000, f"{grown} kB for a minute of 8 kHz"


def test_mutated_files_are_taken_or_refused_but_never_a_bug() -> None:
    taken = 0
    for name, make in recordings.GOOD.items():
        for mutant in recordings.mutations(make(), 20, seed=len(name)):
            try:
                decode(mutant)
                taken += 1
            except VoiceRequestError:
                continue
    assert taken > 0
