"""What a scrape shows is what happened."""

import re
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as openmetrics_families,
)
from prometheus_client.parser import text_string_to_metric_families

from realtime_tts.engine.interface import EngineInfo, Execution
from realtime_tts.engine.link import EngineStatus
from realtime_tts.metrics import Metrics
from realtime_tts.sampling import Sampling


def info(model: str, *executions: Execution) -> EngineInfo:
    return EngineInfo(
        model, "base", (), (), None, Sampling(), slots=8, max_frames=100, executions=executions
    )


def scrape(metrics: Metrics) -> dict[str, float]:
    """Sample values by name, labels in braces."""
    found = {}
    for family in text_string_to_metric_families(metrics.render().text.decode()):
        for sample in family.samples:
            labels = ",".join(f"{key}={value}" for key, value in sample.labels.items())
            found[f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
    return found


def test_the_engine_loop_is_counted_by_step_and_guard() -> None:
    metrics = Metrics()
    metrics.step(0.03, 1, 2)
    metrics.step(0.05, 0, 3)
    metrics.guard("guard_silence")
    found = scrape(metrics)
    assert found["tts_engine_step_seconds_count"] == 2
    assert found["tts_engine_step_seconds_sum"] == 0.08
    assert found["tts_engine_frames_total"] == 6
    assert found["tts_engine_prefills_total"] == 1
    assert found["tts_guard_stops_total{reason=guard_silence}"] == 1


def test_what_alerts_count_is_shown_before_it_first_happens() -> None:
    """A counter that appears with a value has no increase: the first burst would fire no alert."""
    rules = (Path(__file__).parents[1] / "deploy/prometheus/alerts.yml").read_text("utf-8")
    found = scrape(Metrics())
    for name, reason in re.findall(r'(tts_\w+_total)\{reason="(\w+)"\}', rules):
        assert found[f"{name}{{reason={reason}}}"] == 0
    for name in set(re.findall(r"tts_\w+_total", rules)) - {"tts_front_restarts_total"}:
        assert [value for series, value in found.items() if series.split("{")[0] == name], name
    for one in ("budget", "silence", "repetition", "text"):
        assert found[f"tts_guard_stops_total{{reason=guard_{one}}}"] == 0


def test_the_engine_is_asked_at_each_scrape() -> None:
    metrics = Metrics()
    held = [1, 5]
    metrics.watch_engine(
        lambda: EngineStatus(True, 3, held[0], queued=2, capacity=8, last_step_age=0.0)
    )
    assert scrape(metrics)["tts_held_turns"] == 1
    del held[0]
    found = scrape(metrics)
    names = ["active", "held", "queued", "capacity"]
    assert [found[f"tts_{name}_turns"] for name in names] == [3, 5, 2, 8]


def test_two_servers_in_one_process_share_nothing() -> None:
    one, other = Metrics(), Metrics()
    one.interrupts.inc()
    assert scrape(one)["tts_interrupts_total"] == 1
    assert scrape(other)["tts_interrupts_total"] == 0


def test_every_metric_has_our_prefix_and_a_help_text() -> None:
    for family in text_string_to_metric_families(Metrics().render().text.decode()):
        assert family.name.startswith("tts_")
        assert family.documentation.endswith(".")


def test_what_each_engine_computes_with_is_shown() -> None:
    metrics = Metrics()
    gpus = [
        Execution(
            f"cuda:{n}", "bfloat16", "NVIDIA H200", "captured", "triton", "persistent", "persistent"
        )
        for n in range(2)
    ]
    metrics.describe_engine([info("1.7B", *gpus), info("b", Execution("cpu", "float32"))])
    shown = {
        frozenset(sample.labels.items()): sample.value
        for family in text_string_to_metric_families(metrics.render().text.decode())
        for sample in family.samples
        if sample.name == "tts_engine_info"
    }
    fast = {"dtype": "bfloat16", "programs": "captured", "kernels": "triton"}
    fast |= {"model": "1.7B", "gpu": "NVIDIA H200", "predictor": "persistent"}
    fast["talker"] = "persistent"
    plain = {"dtype": "float32", "programs": "eager", "kernels": "torch"}
    plain |= {"model": "b", "gpu": "", "predictor": "separate", "device": "cpu"}
    plain["talker"] = "separate"
    expected = [fast | {"device": "cuda:0"}, fast | {"device": "cuda:1"}, plain]
    assert shown == {frozenset(labels.items()): 1.0 for labels in expected}


def test_openmetrics_is_what_its_own_parser_takes_with_units_and_examples() -> None:
    metrics = Metrics()
    trace = {"trace_id": "4bf92f3577b34da6a3ce929d0e0e4736", "span_id": "00f067aa0ba902b7"}
    metrics.ttfa.observe(0.07, trace)
    metrics.describe_engine([info("demo", Execution("cpu", "float32"))])
    page = metrics.render("application/openmetrics-text; version=1.0.0, text/plain;q=0.5")
    assert page.content_type.startswith("application/openmetrics-text; version=1.0.0")
    found = {family.name: family for family in openmetrics_families(page.text.decode())}
    (tied,) = [one for one in found["tts_ttfa_seconds"].samples if one.exemplar]
    assert (tied.labels["le"], tied.exemplar.labels, tied.exemplar.value) == ("0.075", trace, 0.07)
    for name, family in found.items():
        assert family.unit == ("seconds" if name.endswith("_seconds") else "")
        assert "chars" in name or not re.search("_(ms|us|bytes|millis|minutes)(_|$)", name)
    assert found["tts_engine"].type == "info"


@pytest.mark.parametrize(
    "accept",
    ["", "text/plain;version=0.0.4", "application/openmetrics-text; version=x", ";,="],
)
def test_who_does_not_ask_for_openmetrics_gets_the_older_format(accept: str) -> None:
    page = Metrics().render(accept)
    assert page.content_type.startswith("text/plain") and b"# EOF" not in page.text


def test_the_document_lists_every_metric_and_no_other() -> None:
    metrics = Metrics()
    metrics.watch_engine(lambda: EngineStatus(True, 0, 0, 0, 0, 0.0))
    metrics.watch_fronts(lambda: 1)
    metrics.show_reloads()
    metrics.watch_certificate(lambda: 0.0)
    families = openmetrics_families(metrics.render("application/openmetrics-text").text.decode())
    ends = {"counter": "_total", "info": "_info"}
    shown = {family.name + ends.get(family.type, "") for family in families}
    document = (Path(__file__).parents[1] / "docs" / "metrics.md").read_text()
    tables = [line for line in document.splitlines() if line.startswith("| `tts_")]
    listed = {name for line in tables for name in re.findall(r"`(tts_\w+)", line)}
    assert listed == shown
