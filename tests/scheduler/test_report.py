import pytest

from tts_scheduler.report import Trace, measure, percentile, percentiles, summarise

PACKET = 2048
SECONDS = PACKET / 24_000


def trace(*sent_at: float, asked_at: float = 0.0, **more: object) -> Trace:
    turn = Trace(asked_at, **more)  # type: ignore[arg-type]
    for at in sent_at:
        turn.packet(at, PACKET)
    return turn


def test_ttfa_is_first_text_to_first_packet() -> None:
    assert measure(trace(1.25, 1.3, asked_at=1.0)).ttfa == pytest.approx(0.25)


def test_a_turn_without_sound_has_no_ttfa() -> None:
    report = measure(trace())
    assert report.ttfa is None
    assert report.viable


def test_late_packets_are_underruns() -> None:
    report = measure(trace(1.0, 1.05, 1.0 + 2 * SECONDS + 0.02))
    assert (report.packets, report.underruns, report.viable) == (3, 1, False)
    assert report.late_seconds == pytest.approx(0.02)
    assert report.audio_seconds == pytest.approx(3 * SECONDS)


def test_a_client_buffer_forgives_as_much_as_it_holds() -> None:
    assert not measure(trace(1.0, 1.15)).viable
    assert measure(trace(1.0, 1.15, client_buffer=0.1)).viable


def test_a_listener_who_hears_the_last_turn_forgives_until_then() -> None:
    assert measure(trace(1.0, 1.5, listener_free_at=1.6)).viable


def test_underruns_that_text_explains_are_kept_promises() -> None:
    turn = trace(1.0, 2.0)
    assert not measure(turn).kept
    turn.starved = 1
    assert measure(turn).kept
    assert not measure(turn).viable


def test_percentiles_interpolate_between_neighbours() -> None:
    assert percentile([3.0, 1.0, 2.0], 0.5) == 2.0
    assert percentile([0.0, 10.0], 0.95) == pytest.approx(9.5)
    assert percentile([7.0], 0.99) == 7.0
    found = percentiles([float(i) for i in range(101)])
    assert found is not None
    assert (found.p50, found.p95, found.p99) == (50.0, 95.0, 99.0)
    assert percentiles([]) is None


@pytest.mark.parametrize(("values", "share"), [([], 0.5), ([1.0], 1.5)])
def test_percentile_says_what_it_needs(values: list[float], share: float) -> None:
    with pytest.raises(ValueError, match="share from 0 to 1"):
        percentile(values, share)


def test_a_summary_counts_packets_and_turns() -> None:
    good = measure(trace(1.0, 1.01, 1.02, asked_at=0.9, held_seconds=0.5))
    bad = measure(trace(1.0, 2.0, 3.0, asked_at=0.8))
    silent = measure(trace())
    summary = summarise([good, bad, silent], busy_seconds=0.1)
    assert summary.turns == 2
    assert summary.viability == pytest.approx(0.5)  # two of four packets after the first
    assert summary.viable_turns == 0.5
    assert summary.underruns == 2
    assert summary.ttfa is not None and summary.ttfa.p50 == pytest.approx(0.15)
    assert summary.held is not None and summary.held.p50 == pytest.approx(0.25)
    assert summary.rtf == pytest.approx(0.1 / (6 * SECONDS))


def test_a_summary_of_nothing_is_not_an_error() -> None:
    summary = summarise([])
    assert (summary.turns, summary.viability, summary.ttfa, summary.rtf) == (0, 1.0, None, None)
