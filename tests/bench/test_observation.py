import pytest

from realtime_tts.bench.observation import Observation
from tests.bench.turns import turn_result
from tts_scheduler.report import Trace

SECOND = 24_000
LOUD = (1_000).to_bytes(2, "little")


def observed(*packets: tuple[float, bytes], asked_at: float = 10.0) -> Observation:
    seen = Observation(text_chars=5, trace=Trace(asked_at=asked_at))
    for at, data in packets:
        seen.packet(data, at)
    return seen


def silence(seconds: float) -> bytes:
    return bytes(2 * round(seconds * SECOND))


def test_speech_in_time_has_no_gap() -> None:
    seen = observed((10.1, silence(1.0)), (11.0, silence(1.0)), (12.05, silence(0.5)))
    assert seen.report.ttfa == pytest.approx(0.1)
    assert seen.report.underruns == 0
    assert seen.worst_gap == 0.0
    assert seen.heard_until == pytest.approx(12.6)
    assert seen.speed == pytest.approx(2.05 / 2.5)


def test_a_packet_after_the_listener_ran_out_is_an_underrun_as_long_as_it_is_late() -> None:
    seen = observed((10.1, silence(1.0)), (11.3, silence(1.0)), (12.35, silence(1.0)))
    assert seen.report.underruns == 2
    assert seen.worst_gap == pytest.approx(0.2)
    assert seen.heard_until == pytest.approx(13.35)


def test_leading_silence_counts_for_the_audible_figure_only() -> None:
    seen = observed((10.1, silence(0.5) + LOUD * 100))
    assert seen.report.ttfa == pytest.approx(0.1)
    assert seen.audible_ttfa == pytest.approx(0.6)


def test_an_onset_in_a_late_packet_sounds_when_that_packet_comes() -> None:
    seen = observed((10.1, silence(0.1)), (11.0, silence(0.25) + LOUD * 100))
    assert seen.audible_ttfa == pytest.approx(1.25)


def test_silent_turns_and_turns_without_audio_have_no_audible_figure() -> None:
    assert observed((10.1, silence(1.0))).audible_ttfa is None
    nothing = observed()
    assert nothing.audible_ttfa is None
    assert nothing.report.ttfa is None
    assert nothing.speed is None
    assert nothing.worst_gap == 0.0
    assert nothing.heard_until == 10.0


def test_what_the_server_says_about_the_turn_is_in_its_report() -> None:
    seen = observed((10.1, silence(1.0)))
    seen.result = turn_result(samples=SECOND, held_ms=40.0)
    assert seen.report.held_seconds == 0.04


def test_only_a_whole_turn_with_audio_is_complete() -> None:
    seen = observed((10.1, silence(1.0)))
    assert seen.complete
    seen.error = "overloaded"
    assert not seen.complete
    seen.error = None
    seen.interrupt_seconds = 0.01
    assert not seen.complete
    assert not observed().complete
