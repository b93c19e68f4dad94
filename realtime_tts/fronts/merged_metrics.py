"""`/metrics` of a server with several fronts: the sum of the metrics of all its processes.

When a front ends, the counts that it last reported are kept: a counter that decreases would look
like a restart, and so like a burst, to programs that compute rates from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec
from prometheus_client import CollectorRegistry, Metric
from prometheus_client.registry import Collector
from prometheus_client.samples import Exemplar

from realtime_tts.metrics import Page, page_of_registry

_CREATED = "_created"
"""How the names of samples end that say when a counter began, in seconds since 1970."""

Labels = tuple[tuple[str, str], ...]


class Example(NamedTuple):
    """An exemplar: the ids of a turn that a sample counts, its value, and the time of it."""

    labels: Labels
    value: float
    at: float


class Family(msgspec.Struct, array_like=True):
    """A metric of one process, with all its samples: name, labels, value and exemplar."""

    name: str
    text: str
    kind: str
    unit: str
    samples: list[tuple[str, Labels, float, Example | None]]


def families_of(registry: CollectorRegistry) -> list[Family]:
    """Return the present values of all metrics in a registry."""
    return [
        Family(
            metric.name,
            metric.documentation,
            metric.type,
            metric.unit,
            [
                (one.name, _labels(one.labels), one.value, _example(one.exemplar))
                for one in metric.samples
            ],
        )
        for metric in registry.collect()
    ]


class MergedMetrics:
    """The metrics that fronts have reported, and the counts of fronts that have ended."""

    def __init__(self) -> None:
        self._reported: dict[int, list[Family]] = {}
        self._ended: list[Family] = []

    def reported(self, front: int, families: list[Family]) -> None:
        """Store a front's metrics. `front`: a serial number that no earlier front has had."""
        self._reported[front] = families

    def ended(self, front: int) -> None:
        """Keep the counts of a front that has ended, and drop its gauges."""
        left = [family for family in self._reported.pop(front, ()) if family.kind != "gauge"]
        self._ended = merged((self._ended, left))

    def of_fronts(self) -> list[list[Family]]:
        """Return the metrics of each front, and the sum of those that have ended."""
        return [self._ended, *self._reported.values()]


def page_of(processes: Iterable[list[Family]], accept: str = "") -> Page:
    """Return the answer to a scrape. `accept`: media types that the scraper accepts."""
    registry = CollectorRegistry()
    registry.register(_Families(merged(processes)))
    return page_of_registry(registry, accept)


def merged(processes: Iterable[list[Family]]) -> list[Family]:
    """Return the sum of all samples, in the order of their first appearance, with the latest
    exemplars."""
    found: dict[str, Family] = {}
    values: dict[str, dict[tuple[str, Labels], float]] = {}
    examples: dict[tuple[str, Labels], Example] = {}
    for families in processes:
        for family in families:
            found.setdefault(family.name, family)
            sums = values.setdefault(family.name, {})
            for name, labels, value, example in family.samples:
                key = name, labels
                if example and (key not in examples or examples[key].at <= example.at):
                    examples[key] = example
                if key not in sums:
                    sums[key] = value
                elif name.endswith(_CREATED):
                    sums[key] = min(sums[key], value)
                else:
                    sums[key] += value
    return [
        Family(
            name,
            one.text,
            one.kind,
            one.unit,
            [(*key, value, examples.get(key)) for key, value in values[name].items()],
        )
        for name, one in found.items()
    ]


def _labels(labels: Mapping[str, str]) -> Labels:
    return tuple(sorted(labels.items()))


def _example(exemplar: Exemplar | None) -> Example | None:
    if exemplar is None:
        return None
    at = float(exemplar.timestamp or 0)
    return Example(_labels(exemplar.labels), float(exemplar.value), at)


class _Families(Collector):
    def __init__(self, families: list[Family]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        for family in self._families:
            metric = Metric(family.name, family.text, family.kind, family.unit)
            for name, labels, value, example in family.samples:
                exemplar = None
                if example is not None:
                    exemplar = Exemplar(dict(example.labels), example.value, example.at)
                metric.add_sample(name, dict(labels), value, exemplar=exemplar)
            yield metric
