"""`/metrics` of a server with several fronts: the sum of what all its processes count.

What a front has counted when it ends is kept, as far as anybody has been told of it: a counter that
went back would look like a burst to whoever computes rates from it.
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
"""Ends the name of a sample that says since when something counts, in seconds since 1970."""

Labels = tuple[tuple[str, str], ...]


class Example(NamedTuple):
    """A turn that a sample counts: its ids, what was measured of it, and when."""

    labels: Labels
    value: float
    at: float


class Family(msgspec.Struct, array_like=True):
    """A metric of one process, with all its samples: name, labels, value, and an example."""

    name: str
    text: str
    kind: str
    unit: str
    samples: list[tuple[str, Labels, float, Example | None]]


def families_of(registry: CollectorRegistry) -> list[Family]:
    """What a process counts now."""
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
    """What the fronts have told, and what those that have ended had counted."""

    def __init__(self) -> None:
        self._told: dict[int, list[Family]] = {}
        self._ended: list[Family] = []

    def told(self, front: int, families: list[Family]) -> None:
        """A front has told what it counts; the number is one that no other front had."""
        self._told[front] = families

    def ended(self, front: int) -> None:
        """A front has ended: what it counted stays, what it had open does not."""
        left = [family for family in self._told.pop(front, ()) if family.kind != "gauge"]
        self._ended = merged((self._ended, left))

    def of_fronts(self) -> list[list[Family]]:
        """All that is known, by process."""
        return [self._ended, *self._told.values()]


def page_of(processes: Iterable[list[Family]], accept: str = "") -> Page:
    """The answer to a scrape that accepts these media types."""
    return page_of_registry(_Collected(merged(processes)), accept)


def merged(processes: Iterable[list[Family]]) -> list[Family]:
    """The sums, in the order in which metrics and labels are first seen, and the last examples."""
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


class _Collected(CollectorRegistry):
    """What `generate_latest` asks."""

    def __init__(self, families: list[Family]) -> None:
        super().__init__()
        self.register(_Families(families))


class _Families(Collector):
    def __init__(self, families: list[Family]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        for family in self._families:
            metric = Metric(family.name, family.text, family.kind, family.unit)
            for name, labels, value, example in family.samples:
                told = None
                if example is not None:
                    told = Exemplar(dict(example.labels), example.value, example.at)
                metric.add_sample(name, dict(labels), value, exemplar=told)
            yield metric
