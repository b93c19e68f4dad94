"""The mark is found behind telephones and codecs, is not found where there is none, and is soft."""

from __future__ import annotations

import io

import numpy as np
import pytest
import soxr
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from realtime_tts.audio import detection
from realtime_tts.audio.detection import THRESHOLD, detect
from realtime_tts.audio.encoders import Encoder
from realtime_tts.audio.formats import parse_format
from realtime_tts.audio.loudness import Loudness, VoiceLevels
from realtime_tts.audio.marking import BANDS, CELLS, HELD_SAMPLES, Marking
from realtime_tts.audio.stages import Chain, Stages
from tests.audio.sounds import RATE, loudness, samples_of, through, true_peak, voice
from tests.properties import examples

Samples = NDArray[np.float64]


@pytest.fixture(scope="module")
def marked() -> bytes:
    return through(Marking(), voice(12, -20))


def decoded(pcm: bytes, name: str) -> tuple[Samples, int]:
    """As a listener hears it who asked for this format."""
    av = pytest.importorskip("av")
    encoder = Encoder(parse_format(name))
    data = encoder.encode(pcm) + encoder.finish()
    raw = {"format": "mulaw", "options": {"sample_rate": "8000"}} if name[0] == "u" else {}
    with av.open(io.BytesIO(data), **raw) as file:
        rate = file.streams.audio[0].rate
        frames = [frame.to_ndarray()[0] for frame in file.decode(audio=0)]
    samples = np.concatenate(frames)
    return samples / (32_768 if samples.dtype == np.int16 else 1), rate


@pytest.mark.parametrize("name", ["ulaw_8000", "opus_24000_24", "mp3_24000_64", "mp3_44100_64"])
def test_the_mark_is_found_behind_a_codec(marked: bytes, name: str) -> None:
    assert detect(*decoded(marked, name)).score > THRESHOLD + 1


@pytest.mark.parametrize("name", ["ulaw_8000", "opus_24000_24", "mp3_24000_64"])
def test_speech_that_went_through_a_codec_has_no_mark(name: str) -> None:
    assert not detect(*decoded(voice(12, -20), name)).found


def test_the_mark_is_found_wherever_the_speech_was_cut_and_however_loud_it_is(
    marked: bytes,
) -> None:
    for cut in (1, 77, 4_321, 30_011):
        assert detect(0.1 * samples_of(marked)[cut:], RATE).found


def test_the_mark_of_a_turn_is_found_between_other_sound(marked: bytes) -> None:
    other = samples_of(voice(20, -20, seed=9, pitch=190))
    found = detect(np.concatenate([other, samples_of(marked), other]), RATE)
    assert found.found and found.begins < 32 and found.ends > 20


def test_speech_has_no_mark() -> None:
    """Speech under 200 other patterns is as good as 200 pieces of speech under ours: their scores
    stay below what a normal distribution has once in a million."""
    grid = detection._energies(soxr.resample(samples_of(voice(16, -20)), RATE, 8_000))
    rng = np.random.default_rng(4)
    scores = []
    with pytest.MonkeyPatch.context() as patch:
        for _ in range(200):
            pattern = rng.integers(0, 2, (CELLS, BANDS)) * 2.0 - 1.0
            patch.setattr(detection, "PATTERN", pattern)
            scores.append(detection._score(grid))
    assert 2 < np.median(scores) < 4 and max(scores) < 5.5 < THRESHOLD


def test_silence_noise_and_too_little_sound_have_no_mark() -> None:
    noise = np.random.default_rng(2).standard_normal(20 * RATE)
    for sound in (np.zeros(5 * RATE), noise, noise[:100], noise[:0]):
        assert not detect(sound, RATE).found


def test_the_mark_is_more_than_25_db_below_the_speech_and_nowhere_else() -> None:
    pcm = voice(12, -20)
    speech, change = samples_of(pcm), samples_of(through(Marking(), pcm)) - samples_of(pcm)
    assert 10 * np.log10((speech**2).sum() / (change**2).sum()) > 25
    power = np.abs(np.fft.rfft(change)) ** 2
    hertz = np.fft.rfftfreq(len(change), 1 / RATE)
    assert power[(hertz < 150) | (hertz > 3_500)].sum() < 0.02 * power.sum()
    assert through(Marking(), bytes(9_600)) == bytes(9_600), "silence stays silence"


def test_each_critical_band_changes_by_less_than_one_decibel(marked: bytes) -> None:
    """In any 20 ms: less than the smallest change of level that is heard (Zwicker and Fastl)."""

    def levels(pcm: bytes) -> Samples:
        windows = np.lib.stride_tricks.sliding_window_view(samples_of(pcm), 480)[::240]
        power = np.abs(np.fft.rfft(windows * np.hanning(480))) ** 2
        bands = power[:, 6:70].reshape(len(power), 16, 4).sum(axis=2)
        return 10 * np.log10(bands + 1e-4 * bands.max(axis=0))

    assert np.abs(levels(marked) - levels(voice(12, -20))).max() < 1


@examples(20)
@given(cuts=st.lists(st.integers(0, 12_000), max_size=12), seed=st.integers(0, 3))
def test_pieces_give_what_the_whole_gives(cuts: list[int], seed: int) -> None:
    pcm = voice(0.5, -20, seed)
    places = [2 * at for at in sorted(cuts)]
    pieces = [pcm[a:b] for a, b in zip([0, *places], [*places, len(pcm)], strict=True)]
    stage, whole = Marking(), Marking()
    made = b"".join([*(stage.push(piece) for piece in pieces), stage.finish()])
    assert made == whole.push(pcm) + whole.finish()


@pytest.mark.parametrize("piece", [2, 240, 3_840])
def test_every_sample_comes_out_and_ten_milliseconds_wait_at_most(piece: int) -> None:
    pcm, stage, given = voice(1, -20), Marking(), 0
    for at in range(0, len(pcm), piece):
        given += len(stage.push(pcm[at : at + piece]))
        assert 0 <= min(at + piece, len(pcm)) - given <= 2 * HELD_SAMPLES < 2 * RATE // 100
    assert given + len(stage.finish()) == len(pcm)


def test_loud_speech_is_marked_and_keeps_below_the_ceiling() -> None:
    """Loudness comes first, so that what it changes is not the mark."""
    chain = Chain(Loudness(VoiceLevels().of("a voice")), Marking())
    made = through(chain, voice(12, -30))
    assert detect(samples_of(made), RATE).found
    assert loudness(made) == pytest.approx(-16, abs=1) and true_peak(made) <= -1.0


def test_all_streams_of_a_server_that_marks_are_marked() -> None:
    stages, pcm = Stages(), voice(8, -20)
    stages.marks = True
    for loud in (False, True):
        made = through(stages.chain("a voice", loudness=loud), pcm)
        assert len(made) == len(pcm) and detect(samples_of(made), RATE).found
