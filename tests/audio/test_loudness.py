"""Every voice and turn is equally loud, by the meters of others."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime_tts.audio.encoders import Encoder
from realtime_tts.audio.formats import parse_format
from realtime_tts.audio.limiter import HELD_SAMPLES, Limiter
from realtime_tts.audio.loudness import Loudness, VoiceLevels
from realtime_tts.audio.packets import packets_in
from realtime_tts.audio.stages import Chain, Stages
from tests.audio.sounds import RATE, loudness, pcm_of, samples_of, through, true_peak, voice
from tests.properties import examples

SOFT_AND_LOUD = (-42.0, -32.0, -24.0, -18.0, -12.0)


def unheard() -> Loudness:
    return Loudness(VoiceLevels().of("a voice"))


@pytest.mark.parametrize("lufs", SOFT_AND_LOUD)
def test_the_first_turn_of_a_voice_is_at_16_lufs(lufs: float) -> None:
    assert loudness(through(unheard(), voice(10, lufs))) == pytest.approx(-16, abs=1)


@pytest.mark.parametrize("lufs", SOFT_AND_LOUD)
def test_a_voice_that_was_heard_is_at_16_lufs_from_its_first_syllables(lufs: float) -> None:
    levels = VoiceLevels()
    through(Loudness(levels.of("a voice")), voice(5, lufs))
    made = through(Loudness(levels.of("a voice")), voice(3, lufs, seed=2))
    assert loudness(made) == pytest.approx(-16, abs=1)
    assert loudness(made[: 2 * RATE]) == pytest.approx(-16, abs=2), "its first second"


@pytest.mark.parametrize("pulses_s", [1.0, 9.0])
def test_what_the_limiter_takes_of_high_peaks_is_made_up_for(pulses_s: float) -> None:
    """And no more than that: if only the first second has them, the rest is not too loud."""
    turns = [voice(3.5, -18, seed, pulses_s=pulses_s) for seed in (1, 2, 3)]
    assert all(true_peak(pcm) - loudness(pcm) == pytest.approx(18, abs=1) for pcm in turns)
    for first in turns:
        levels = VoiceLevels()
        made = [through(Loudness(levels.of("a voice")), pcm) for pcm in [first, *turns[:2]]]
        assert [loudness(pcm) for pcm in made] == [pytest.approx(-16, abs=1)] * 3
        assert max(map(true_peak, made)) <= -1.0


def test_a_voice_without_high_peaks_gets_the_gain_that_it_lacks() -> None:
    levels = VoiceLevels()
    through(Loudness(levels.of("a voice")), voice(30, -24))
    turn = voice(5, -24, seed=2)
    made = through(Loudness(levels.of("a voice")), turn)
    assert loudness(made) - loudness(turn) == pytest.approx(8, abs=0.4)


def test_clicks_alone_are_not_made_louder_without_end() -> None:
    """The limiter keeps them where they are; with more gain, the noise between them would grow."""
    sound = 0.001 * np.random.default_rng(1).standard_normal(10 * RATE)
    sound[::2_400] = 0.9
    clicks = pcm_of(sound)
    noises = [
        samples_of(pcm).reshape(-1, 2_400)[50:, 1_800:].std()
        for pcm in (clicks, through(unheard(), clicks))
    ]
    gain = 20 * np.log10(noises[1] / noises[0])
    assert gain < -16 - loudness(clicks) + 4


def test_voices_are_equally_loud_whatever_they_were() -> None:
    levels = VoiceLevels()
    made = {}
    for turn in range(3):
        for lufs in SOFT_AND_LOUD:
            made[lufs, turn] = through(Loudness(levels.of(lufs)), voice(5, lufs, seed=turn))
    later = [loudness(pcm) for (_, turn), pcm in made.items() if turn]
    assert max(later) - min(later) < 1.5 and np.mean(later) == pytest.approx(-16, abs=0.5)


@pytest.mark.parametrize("lufs", SOFT_AND_LOUD)
def test_no_true_peak_is_above_minus_1_db(lufs: float) -> None:
    assert true_peak(through(unheard(), voice(6, lufs))) <= -1.0


def test_peaks_between_samples_count() -> None:
    """A quarter of the sample rate, sampled between its peaks: those are 3 dB above all samples."""
    tone = np.sin(2 * np.pi * (np.arange(RATE) / 4 + 1 / 8)).astype(np.float32)
    limiter = Limiter(0.5)
    made = np.concatenate([limiter.push(tone), limiter.finish()])
    assert np.abs(made).max() == pytest.approx(0.5 / np.sqrt(2), rel=0.01)


def test_sound_below_the_ceiling_goes_through_the_limiter_as_it_is() -> None:
    sound = samples_of(voice(2, -30)).astype(np.float32)
    limiter = Limiter(0.9)
    assert np.array_equal(np.concatenate([limiter.push(sound), limiter.finish()]), sound)


def test_the_gain_never_jumps() -> None:
    """A tone that is 20 dB too soft: within 10 ms it grows by no more than 0.6 dB."""
    tone = 0.02 * np.sin(2 * np.pi * 200 * np.arange(3 * RATE) / RATE)
    made = samples_of(through(unheard(), (tone * 32_767).astype("<i2").tobytes()))
    sizes = np.sqrt((made.reshape(-1, 240) ** 2).mean(axis=1))
    changes = np.abs(np.diff(20 * np.log10(sizes)))
    assert 0.3 < changes.max() < 0.75
    assert changes[150:].max() < 0.05, "and is slow in the end"


@examples(20)
@given(cuts=st.lists(st.integers(0, 12_000), max_size=12), seed=st.integers(0, 3))
def test_pieces_give_what_the_whole_gives(cuts: list[int], seed: int) -> None:
    pcm = voice(0.5, -12 if seed % 2 else -30, seed)
    places = [2 * at for at in sorted(cuts)]
    pieces = [pcm[a:b] for a, b in zip([0, *places], [*places, len(pcm)], strict=True)]
    stage, whole = unheard(), unheard()
    made = b"".join([*(stage.push(piece) for piece in pieces), stage.finish()])
    assert made == whole.push(pcm) + whole.finish()


@pytest.mark.parametrize("piece", [2, 48, 3_840])
def test_every_sample_comes_out_and_two_milliseconds_wait_at_most(piece: int) -> None:
    pcm, stage, given = voice(1, -14), unheard(), 0
    for at in range(0, len(pcm), piece):
        given += len(stage.push(pcm[at : at + piece]))
        assert 0 <= min(at + piece, len(pcm)) - given <= 2 * HELD_SAMPLES < 2 * 48
    assert given + len(stage.finish()) == len(pcm)


def test_nothing_is_learned_of_silence() -> None:
    levels = VoiceLevels()
    silence = bytes(2 * RATE)
    assert through(Loudness(levels.of("a voice")), silence) == silence
    assert levels.of("a voice").sum() == 0


def test_turns_of_a_voice_that_was_heard_for_long_begin_alike() -> None:
    levels = VoiceLevels()
    through(Loudness(levels.of("a voice")), voice(70, -25))
    one, other = (through(Loudness(levels.of("a voice")), voice(1, -25)) for _ in range(2))
    assert one == other


def test_what_is_kept_of_voices_is_bounded() -> None:
    levels = VoiceLevels()
    levels.of("early")[100] = 1
    levels.of("early, and lately")[100] = 1
    for number in range(999):
        levels.of(number)
        levels.of("early, and lately")
    assert levels.of("early, and lately").sum() == 1
    assert levels.of("early").sum() == 0


def test_what_is_not_asked_for_costs_nothing() -> None:
    pcm = voice(0.5, -20)
    chain = Stages().chain("a voice", loudness=False)
    assert chain.push(pcm) is pcm and chain.finish() == b""


@pytest.mark.parametrize("name", ["pcm", "ulaw_8000", "wav_44100", "flac", "mp3"])
def test_packets_count_every_sample_that_went_through_stages(name: str) -> None:
    asked, pcm = parse_format(name), voice(2, -30)
    if asked.needs_codec:
        pytest.importorskip("av")
    packets = packets_in(asked, Chain(unheard()))
    made = [one for at in range(0, len(pcm), 3_840) for one in packets.push(pcm[at:][:3_840])]
    made += packets.finish()
    assert sum(samples for _, samples in made) == len(pcm) // 2
    encoder = Encoder(asked)
    expected = encoder.encode(through(unheard(), pcm)) + encoder.finish()
    assert b"".join(data for data, _ in made) == expected
