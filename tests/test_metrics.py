"""What a scrape shows is what happened."""

from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

from realtime_tts.engine.interface import Execution
from realtime_tts.metrics import Metrics


@dataclass
class Plan:
    prefills: tuple[str, ...]
    decodes: tuple[str, ...]


@dataclass
class Status:
    active: int = 3
    held: int = 1
    queued: int = 2
    capacity: int = 8


@dataclass
class Described:
    model: str
    executions: list[Execution]


def scrape(metrics: Metrics) -> dict[str, float]:
    """Sample values by name, labels in braces."""
    found = {}
    for family in text_string_to_metric_families(metrics.render().decode()):
        for sample in family.samples:
            labels = ",".join(f"{key}={value}" for key, value in sample.labels.items())
            found[f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
    return found


def test_the_engine_loop_is_counted_by_step_and_guard() -> None:
    metrics = Metrics()
    metrics.step(0.03, Plan(("a",), ("b", "c")))
    metrics.step(0.05, Plan((), ("a", "b", "c")))
    metrics.guard("guard_silence")
    found = scrape(metrics)
    assert found["tts_engine_step_seconds_count"] == 2
    assert found["tts_engine_step_seconds_sum"] == 0.08
    assert found["tts_engine_frames_total"] == 6
    assert found["tts_engine_prefills_total"] == 1
    assert found["tts_guard_stops_total{reason=guard_silence}"] == 1


def test_the_engine_is_asked_at_each_scrape() -> None:
    metrics = Metrics()
    status = Status()
    metrics.watch_engine(lambda: status)
    assert scrape(metrics)["tts_held_turns"] == 1
    status.held = 5
    found = scrape(metrics)
    names = ["active", "held", "queued", "capacity"]
    assert [found[f"tts_{name}_turns"] for name in names] == [3, 5, 2, 8]


def test_two_servers_in_one_process_share_nothing() -> None:
    one, other = Metrics(), Metrics()
    one.interrupts.inc()
    assert scrape(one)["tts_interrupts_total"] == 1
    assert scrape(other)["tts_interrupts_total"] == 0


def test_every_metric_has_our_prefix_and_a_help_text() -> None:
    for family in text_string_to_metric_families(Metrics().render().decode()):
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
    metrics.describe_engine(
        [Described("1.7B", gpus), Described("b", [Execution("cpu", "float32")])]
    )
    shown = {
        frozenset(sample.labels.items()): sample.value
        for family in text_string_to_metric_families(metrics.render().decode())
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
