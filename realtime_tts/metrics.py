"""The page of `/metrics`: OpenMetrics for clients that accept it, else Prometheus' older text
format.

One registry per `Metrics`, so that two servers in one process do not share counts. Names and units
follow OpenMetrics (docs/metrics.md lists them all); labels are few, and nothing comes from users:
no key, no text, no voice name. Exemplars, which only OpenMetrics has, tie values to traces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, Summary
from prometheus_client.exposition import choose_encoder

from realtime_tts.engine.interface import EngineInfo
from realtime_tts.engine.link import EngineStatus
from realtime_tts.protocol.messages import TurnReason

SLO_TTFA_SECONDS = 0.3
"""Seconds to the first sound of a turn that meets the objective; no sound of it is late."""

_TTFA_BUCKETS = (0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 0.8, 1.2, 2, 4, 8)
_STEP_BUCKETS = (0.002, 0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.056, 0.08, 0.12, 0.2, 0.4, 1)
_LAG_BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2)
_UNDERRUN_BUCKETS = (0.005, 0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2)


_EXECUTION = ("device", "gpu", "dtype", "programs", "kernels", "predictor", "talker")


def row_bucket(rows: int) -> int:
    """Return `rows` rounded up to a power of two, for few labels. 0 is a codec run alone."""
    return 1 << (rows - 1).bit_length() if rows else 0


class Page(NamedTuple):
    """The answer to a scrape."""

    text: bytes
    content_type: str


def page_of_registry(registry: CollectorRegistry, accept: str) -> Page:
    """Return the registry's page in the newest format among the media types accepted."""
    try:
        encode, content_type = choose_encoder(accept)
    except TypeError:  # a version that is no number: as if nothing was asked for
        encode, content_type = choose_encoder("")
    return Page(encode(registry), content_type)


class Metrics:
    """All counters of one server. Safe to use from the engine's thread as well."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._listening_metrics()
        self._objective_metrics()
        self._engine_metrics()
        self._socket_metrics()
        self._begin_at_zero()

    def _begin_at_zero(self) -> None:
        """Show what alerts ask for before it first happens. Prometheus takes a counter that appears
        with a value for one that had it all along, so the first burst would be missed."""
        for reason in get_args(TurnReason):
            self.turns.labels(reason)
            if reason.startswith("guard_"):
                self.guard_stops.labels(reason)
        self.refused.labels("overloaded")

    def _listening_metrics(self) -> None:
        """Make the metrics of what listeners hear."""
        self.ttfa = self._histogram(
            "tts_ttfa_seconds", "First text delta received to first packet sent.", _TTFA_BUCKETS
        )
        self.underruns = self._counter(
            "tts_underruns_total", "Times a listener ran out of audio in the middle of a turn."
        )
        self.turns_with_gaps = self._counter(
            "tts_turns_with_gaps_total", "Turns in which a listener ran out of audio."
        )
        self.held_inside_word = self._counter(
            "tts_held_inside_word_total", "Times speech waited for text, perhaps inside a word."
        )
        self.moves = self._counter(
            "tts_moves_total", "Times another engine went on with a turn that had lost its own."
        )
        self.underrun_seconds = self._histogram(
            "tts_underrun_seconds", "Length of those gaps.", _UNDERRUN_BUCKETS
        )
        self.packets = self._counter("tts_packets_total", "Audio packets sent.")
        self.packets_late = self._counter(
            "tts_packets_late_total", "Audio packets sent after their playback deadline."
        )
        self.audio_seconds = self._counter("tts_audio_seconds_total", "Seconds of speech sent.")
        self.text_chars = self._counter("tts_text_chars_total", "Characters of text received.")
        self.turns = self._counter("tts_turns_total", "Turns done, by reason.", ["reason"])
        self.interrupts = self._counter("tts_interrupts_total", "Turns ended by an interrupt.")
        self.refused = self._counter(
            "tts_refused_total", "Sessions and turns refused, by reason.", ["reason"]
        )

    def _objective_metrics(self) -> None:
        """Make the metrics of how many turns meet the objective, and of lost traces."""
        limit = round(SLO_TTFA_SECONDS * 1000)
        self.slo_turns = self._counter(
            "tts_slo_turns_total", "Turns that sounded, or failed by a fault of the server."
        )
        self.slo_good_turns = self._counter(
            "tts_slo_good_turns_total",
            f"Of those, begun within {limit} ms and without an underrun.",
        )
        self.spans_dropped = self._counter(
            "tts_spans_dropped_total", "Spans of traces that the collector did not take."
        )

    def _engine_metrics(self) -> None:
        """Make the metrics of the engine; `step` and `guard` are called by its loop."""
        self.step_seconds = self._histogram(
            "tts_engine_step_seconds", "Duration of an engine step.", _STEP_BUCKETS
        )
        self.step_rows = Summary(
            "tts_engine_step_rows_seconds",
            "The same by rows (rounded up to a power of two) and by whether a prompt was in it.",
            ["rows", "kind"],
            unit="seconds",
            registry=self.registry,
        )
        self.prefills = self._counter("tts_engine_prefills_total", "Utterances prefilled.")
        self.frames = self._counter("tts_engine_frames_total", "Frames planned, 80 ms each.")
        self.guard_stops = self._counter(
            "tts_guard_stops_total", "Runaway turns stopped by a guard, by reason.", ["reason"]
        )

        self.engine_info = Info(
            "tts_engine",
            "What each engine computes with; always 1.",
            ["model", *_EXECUTION],
            registry=self.registry,
        )
        self.restarts = self._counter(
            "tts_engine_restarts_total", "Engine processes that ended and were started again."
        )
        self.load_failures = self._counter(
            "tts_engine_load_failures_total", "Engine processes that ended before they were ready."
        )

    def _socket_metrics(self) -> None:
        self.sessions = self._gauge("tts_sessions", "Open sessions, and streams of other APIs.")
        self.open_turns = self._gauge(
            "tts_open_turns", "Turns begun and not done, queued ones included."
        )
        self.socket_aborts = self._counter(
            "tts_socket_aborts_total", "Sockets given up, by reason.", ["reason"]
        )
        self.slow_reader_aborts = self._counter(
            "tts_slow_reader_aborts_total", "Sockets given up because the client did not read."
        )
        self.closed = self._counter("tts_closed_total", "Sessions closed, by close code.", ["code"])
        self._background = Gauge(
            "tts_background_failing",
            "Whether work beside the turns fails at present; of several fronts, in how many.",
            ["task"],
            registry=self.registry,
        )
        self.loop_lag = self._histogram(
            "tts_event_loop_lag_seconds", "How late the event loop woke a timer.", _LAG_BUCKETS
        )

    def step(self, seconds: float, prefills: int, decodes: int) -> None:
        """Count a step of the engine loop, with these numbers of rows."""
        self.step_seconds.observe(seconds)
        rows = prefills + decodes
        kind = "prefill" if prefills else "decode"
        self.step_rows.labels(str(row_bucket(rows)), kind).observe(seconds)
        self.prefills.inc(prefills)
        self.frames.inc(rows)

    def guard(self, reason: str) -> None:
        """Count a turn that a guard ended."""
        self.guard_stops.labels(reason).inc()

    def restarted(self) -> None:
        """Count an engine process that has ended and is started again."""
        self.restarts.inc()

    def load_failed(self) -> None:
        """Count an engine process that has ended before it was ready."""
        self.load_failures.inc()

    def watch_engine(self, status: Callable[[], EngineStatus]) -> None:
        """Show an engine's load; `status` is called at every scrape."""
        gauges: dict[str, tuple[str, Callable[[], float]]] = {
            "tts_active_turns": ("Turns that hold a slot.", lambda: status().active),
            "tts_held_turns": ("Turns waiting for their text.", lambda: status().held),
            "tts_queued_turns": ("Turns waiting for a slot.", lambda: status().queued),
            "tts_capacity_turns": ("Turns that fit, as measured.", lambda: status().capacity),
        }
        for name, (text, value) in gauges.items():
            self._gauge(name, text).set_function(value)

    def watch_fronts(self, fronts: Callable[[], float]) -> Counter:
        """Show how many of several fronts take sockets. Return the counter of those that have ended
        and are started again."""
        self._gauge("tts_fronts", "Front processes that take sockets.").set_function(fronts)
        return self._counter(
            "tts_front_restarts_total", "Front processes that ended and were started again."
        )

    def show_reloads(self) -> tuple[Gauge, Gauge]:
        """Show when settings were last reloaded, and whether the last try succeeded. Return both
        gauges, to be set to a Unix time, and to 1 or 0."""
        return (
            self._gauge(
                "tts_config_last_reload_success_timestamp_seconds",
                "When the settings were taken over the last time.",
            ),
            self._gauge(
                "tts_config_last_reload_successful",
                "Whether the last try to take settings over succeeded.",
            ),
        )

    def watch_certificate(self, expires: Callable[[], float]) -> None:
        """Show when the server's certificate expires, which `expires` gives as a Unix time."""
        name = "tts_certificate_expiry_timestamp_seconds"
        self._gauge(name, "When the TLS certificate expires.").set_function(expires)

    def watch_background(self, task: str, failing: Callable[[], bool]) -> None:
        """Show whether this work beside the turns fails at present, as `failing` says."""
        self._background.labels(task).set_function(failing)

    def describe_engine(self, infos: Iterable[EngineInfo]) -> None:
        """Show what each engine computes with."""
        for info in infos:
            for one in info.executions:
                labels = {name: getattr(one, name) for name in _EXECUTION}
                self.engine_info.labels(model=info.model, **labels).info({})

    def render(self, accept: str = "") -> Page:
        """Return the answer to a scrape that accepts these media types."""
        return page_of_registry(self.registry, accept)

    def _counter(self, name: str, text: str, labels: list[str] | None = None) -> Counter:
        unit = "seconds" if name.endswith("_seconds_total") else ""
        return Counter(name, text, labels or [], unit=unit, registry=self.registry)

    def _gauge(self, name: str, text: str) -> Gauge:
        unit = "seconds" if name.endswith("_seconds") else ""
        return Gauge(name, text, unit=unit, registry=self.registry)

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...]) -> Histogram:
        return Histogram(name, text, buckets=buckets, unit="seconds", registry=self.registry)
