"""The sum of what several processes count, against one process that counts all of it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from realtime_tts.fronts.merged_metrics import MergedMetrics, families_of, page_of
from realtime_tts.metrics import Metrics

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def samples(page: bytes) -> Samples:
    return {
        (one.name, tuple(sorted(one.labels.items()))): one.value
        for family in text_string_to_metric_families(page.decode())
        for one in family.samples
        if not one.name.endswith("_created")
    }


def count(metrics: Metrics, deed: str, amount: int) -> None:
    match deed:
        case "packet":
            metrics.packets.inc(amount)
        case "turn":
            metrics.turns.labels(("complete", "interrupted")[amount % 2]).inc()
        case "ttfa":
            metrics.ttfa.observe(amount / 1_000)
        case "step":
            metrics.step(amount / 1_000, amount % 3, amount % 50)
        case "session":
            metrics.sessions.inc()


DEED = st.tuples(
    st.integers(1, 3),
    st.sampled_from(["packet", "turn", "ttfa", "step", "session"]),
    st.integers(0, 500),
)


@given(st.lists(DEED, max_size=30))
def test_the_page_is_that_of_one_process_which_counts_everything(
    deeds: list[tuple[int, str, int]],
) -> None:
    fronts, one = {front: Metrics() for front in (1, 2, 3)}, Metrics()
    for front, deed, amount in deeds:
        count(fronts[front], deed, amount)
        count(one, deed, amount)
    merged = MergedMetrics()
    for front, metrics in fronts.items():
        merged.reported(front, families_of(metrics.registry))
    found, expected = samples(page_of(merged.of_fronts()).text), samples(one.render().text)
    assert found.keys() == expected.keys()
    for key, value in expected.items():
        assert abs(found[key] - value) < 1e-9, key


def test_what_a_front_counted_outlives_it_and_what_it_had_does_not() -> None:
    merged, metrics = MergedMetrics(), Metrics()
    for front in range(1, 4):
        metrics.packets.inc(10)
        metrics.sessions.set(5)
        merged.reported(front, families_of(metrics.registry))
        merged.ended(front)
    found = samples(page_of(merged.of_fronts()).text)
    assert found["tts_packets_total", ()] == 10 + 20 + 30
    assert ("tts_sessions", ()) not in found
    merged.ended(9)  # it never told anything
    assert samples(page_of(merged.of_fronts()).text) == found


def test_a_metric_counts_since_the_first_process_began() -> None:
    early, late = Metrics(), Metrics()
    page = page_of([families_of(late.registry), families_of(early.registry)]).text.decode()
    lines = [line for line in page.splitlines() if line.startswith("tts_packets_created")]
    assert len(lines) == 1
    own = [
        one for one in early.render().text.decode().splitlines() if one.startswith(lines[0][:19])
    ]
    assert lines == own


def test_of_the_examples_of_several_fronts_the_last_is_kept() -> None:
    fronts = Metrics(), Metrics(), Metrics()
    for number in (2, 0, 1):  # the front with the number 1 is the last
        fronts[number].ttfa.observe(0.07, {"trace_id": str(number)})
    merged = MergedMetrics()
    for number, metrics in enumerate(fronts):
        merged.reported(number, families_of(metrics.registry))
    page = page_of(merged.of_fronts(), "application/openmetrics-text").text.decode()
    (tied,) = [line for line in page.splitlines() if "trace_id" in line]
    assert tied.startswith('tts_ttfa_seconds_bucket{le="0.075"} 3.0 # {trace_id="1"} 0.07')
    assert "trace_id" not in page_of(merged.of_fronts()).text.decode()
    merged.ended(1)
    page = page_of(merged.of_fronts(), "application/openmetrics-text").text.decode()
    assert '# {trace_id="1"}' in page, "a front's end takes nothing back"
