"""A virtual machine, virtual sessions and a virtual clock around the real `Scheduler`.

Nothing is mocked: the same loop as in the server (hand over what came in, plan, step, commit), with
`Machine` in place of the engine. Commands that arrive during a step are handed over before its
commit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from random import Random

from tts_scheduler.admission import Refused
from tts_scheduler.config import SchedulerConfig
from tts_scheduler.cost import CostModel
from tts_scheduler.machine import Machine
from tts_scheduler.plan import StepPlan, StepResult
from tts_scheduler.playback import FRAME_SAMPLES, PACKET_SAMPLES, Playback
from tts_scheduler.policy import DEADLINE_ORDER, Policy
from tts_scheduler.report import Summary, Trace, measure, summarise
from tts_scheduler.scheduler import Scheduler
from tts_scheduler.workload import Script, Workload, write_script

_TRIES = 3
"""How often a refused session asks before it gives the turn up."""
_REPORT_EVERY = 0.5
"""Seconds between reports of what was played."""


@dataclass(slots=True, eq=False)
class Turn:
    """One turn as it happens. `frames` and `pending` are the engine's own counts."""

    id: str
    session: int
    script: Script
    trace: Trace
    reports: bool
    listener: Playback | None = None
    frames: int = 0
    pending: int = 0
    unsent: int = 0
    over: bool = False

    def deliver(self, samples: int, now: float) -> None:
        """Cut samples into packets as the framer does: the first leaves at once, later ones when
        they are full, and at the end whatever is left."""
        self.unsent += samples
        while self.unsent:
            if self.unsent < PACKET_SAMPLES and not (self.over or self.listener is None):
                return
            packet = min(self.unsent, PACKET_SAMPLES)
            self.unsent -= packet
            self.trace.packet(now, packet)
            if self.listener is None:
                starts_at = max(now + self.trace.client_buffer, self.trace.listener_free_at or now)
                self.listener = Playback(listener_free_at=starts_at)
            self.listener.sent(packet, now)

    def to_hear(self, now: float) -> float:
        """Return the seconds until the listener has heard everything sent."""
        return 0.0 if self.listener is None else self.listener.lead(now)

    def heard(self, now: float) -> float:
        """Return the seconds that the listener has played."""
        sent = 0.0 if self.listener is None else self.listener.sent_seconds
        return max(0.0, sent - self.to_hear(now))


@dataclass(slots=True)
class Outcome:
    """The result of a run: a trace per turn, and what the machine did."""

    traces: list[Trace] = field(default_factory=list)
    asked: int = 0
    refused: int = 0
    """Turns given up because there was no capacity."""
    steps: int = 0
    busy_seconds: float = 0.0
    seconds: float = 0.0
    capacity: int = 0
    """The scheduler's capacity at the end of the run."""
    peak: int = 0
    """The most turns active at once."""
    swap_outs: int = 0
    """How often a row was preempted for lack of memory."""
    peak_pages: int = 0
    """The most pages of the KV cache in use at once, where it has a limit."""

    def summary(self) -> Summary:
        """Return the measures of all turns."""
        return summarise((measure(trace) for trace in self.traces), self.busy_seconds)

    @property
    def refusals(self) -> float:
        """Share of the turns asked for that were not spoken for lack of capacity."""
        return self.refused / self.asked if self.asked else 0.0


class Simulation:
    """One run. `watch(simulation, plan)` is called after every commit, for tests."""

    def __init__(
        self,
        workload: Workload,
        machine: Machine,
        config: SchedulerConfig,
        *,
        seed: int = 0,
        policy: Policy = DEADLINE_ORDER,
        cost: CostModel | None = None,
        watch: Callable[[Simulation, StepPlan], None] | None = None,
    ) -> None:
        self.workload = workload
        self.machine = machine
        self.config = config
        cost = machine.lesson() if cost is None else cost
        self.scheduler = Scheduler(config, cost, policy, machine.kv_cache)
        self.now = 0.0
        self.outcome = Outcome()
        self.turns: dict[str, Turn] = {}
        """Turns that are not over."""
        self._random = Random(seed)
        self._machine_random = Random(seed + 1)
        self._events: list[tuple[float, int, Callable[..., None], tuple[object, ...]]] = []
        self._numbers = count()
        self._watch = watch
        self._turns_left = [workload.turns] * workload.sessions
        reporting = workload.reporting
        self._reporting = [self._random.random() < reporting for _ in range(workload.sessions)]

    def run(self) -> Outcome:
        """Run until every session has had all its turns."""
        for session in range(self.workload.sessions):
            self._at(self._random.uniform(0.0, self.workload.arrival_seconds), self._ask, session)
        while self._events or self.turns:
            self._iterate()
        self.outcome.seconds = self.now
        self.outcome.capacity = self.scheduler.capacity
        return self.outcome

    # The loop -------------------------------------------------------------------------------

    def _iterate(self) -> None:
        """Run one iteration of the loop."""
        self._hand_over(self.now)
        for id in self.scheduler.expire(self.now):
            self._over(self.turns[id], "expired")
        plan = self.scheduler.plan(self.now)
        if plan is None:
            self._sleep()
            return
        seconds = self.machine.seconds(plan, self._machine_random)
        result = self._step(plan, seconds)
        self._hand_over(self.now + seconds)
        self.now += seconds
        self.scheduler.commit(plan, result, self.now)
        self._publish(result)
        self.outcome.steps += 1
        self.outcome.peak = max(self.outcome.peak, self.scheduler.active)
        self.outcome.busy_seconds += seconds
        self.outcome.swap_outs += len(plan.swap_outs)
        self.outcome.peak_pages = max(self.outcome.peak_pages, self.scheduler.pages_used)
        if self._watch is not None:
            self._watch(self, plan)

    def _sleep(self) -> None:
        wake = self.scheduler.next_wake(self.now)
        times = [] if wake is None else [wake]
        if self._events:
            times.append(self._events[0][0])
        assert times or not self.turns, f"nothing will ever happen to {sorted(self.turns)}"
        assert wake is None or wake > self.now, f"woken at {wake} for nothing"
        self.now = min(times, default=self.now)

    def _step(self, plan: StepPlan, seconds: float) -> StepResult:
        """Do a step as an engine would: speech ends after as many frames as the script says."""
        ended = []
        making = [p.id for p in plan.prefills] + [d.id for d in plan.decodes]
        for id in making:
            turn = self.turns[id]
            turn.frames += 1
            turn.pending += 1
            if turn.frames == turn.script.frames:
                ended.append(id)
        runs = {run.id: run.frames for run in plan.codec}
        runs.update((id, self.turns[id].pending) for id in ended)
        for id, frames in runs.items():
            assert frames <= self.turns[id].pending, f"{id} has no {frames} frames for the codec"
            self.turns[id].pending -= frames
        samples = {id: frames * FRAME_SAMPLES for id, frames in runs.items()}
        return StepResult(seconds, frozenset(making), samples, frozenset(ended))

    def _publish(self, result: StepResult) -> None:
        for id in result.samples:
            turn = self.turns.get(id)
            if turn is None:  # interrupted while the step was under way
                continue
            silent = turn.listener is None
            turn.over = id in result.ended
            turn.deliver(result.samples[id], self.now)
            if silent:
                self._first_packet(turn)
            if turn.over:
                self._over(turn, "complete")

    # Sessions -------------------------------------------------------------------------------

    def _at(self, time: float, event: Callable[..., None], *args: object) -> None:
        heappush(self._events, (time, next(self._numbers), event, args))

    def _hand_over(self, until: float) -> None:
        """Handle everything that arrived up to `until`, each event at its own time."""
        before = self.now
        while self._events and self._events[0][0] <= until:
            time, _, event, args = heappop(self._events)
            self.now = max(time, before)
            event(*args)
        self.now = before

    def _ask(self, session: int, listener_free_at: float | None = None, tries: int = 1) -> None:
        """Begin a session's next turn: its first text delta has arrived."""
        script = write_script(self._random, self.workload)
        id = f"{session}.{self._turns_left[session]}.{tries}"
        answer = self.scheduler.open(
            id,
            prompt_tokens=40,
            now=self.now,
            layout=script.layout,
            listener_free_at=listener_free_at,
        )
        self.outcome.asked += tries == 1
        if isinstance(answer, Refused):
            self._refused(session, tries, answer.retry_after)
            return
        reports = self._reporting[session]
        buffer = self.workload.client_buffer if reports else 0.0
        trace = Trace(self.now, listener_free_at, buffer)
        self.turns[id] = Turn(id, session, script, trace, reports)
        self._delta(self.turns[id], 0)

    def _refused(self, session: int, tries: int, retry_after: float) -> None:
        if tries < _TRIES:
            wait = retry_after * self._random.uniform(1.0, 1.5)
            self._at(self.now + wait, self._ask, session, None, tries + 1)
            return
        self.outcome.refused += 1
        self._next_turn(session, self.now + self._random.expovariate(0.5))

    def _delta(self, turn: Turn, number: int) -> None:
        if turn.over:
            return
        deltas = turn.script.deltas
        self.scheduler.append(turn.id, deltas[number][1], self.now)
        if number + 1 == len(deltas):
            self.scheduler.finish(turn.id, self.now)
        else:
            self._at(self.now + deltas[number + 1][0], self._delta, turn, number + 1)

    def _first_packet(self, turn: Turn) -> None:
        if turn.script.barge_in_after is not None:
            self._at(self.now + turn.script.barge_in_after, self._barge_in, turn)
        if turn.reports:
            self._at(self.now + _REPORT_EVERY, self._report, turn)

    def _barge_in(self, turn: Turn) -> None:
        if not turn.over:
            self.scheduler.cancel(turn.id, self.now)
            self._over(turn, "interrupted")

    def _report(self, turn: Turn) -> None:
        if not turn.over:
            self.scheduler.played(turn.id, turn.heard(self.now), self.now)
            self._at(self.now + _REPORT_EVERY, self._report, turn)

    def _over(self, turn: Turn, reason: str) -> None:
        stats = self.scheduler.stats(turn.id)
        turn.over = True
        trace = turn.trace
        trace.reason = reason
        trace.held_seconds, trace.starved = stats.held_seconds, stats.starved_underruns
        self.outcome.traces.append(trace)
        self.outcome.refused += reason == "expired"
        del self.turns[turn.id]
        quiet_at = self.now + (turn.to_hear(self.now) if reason == "complete" else 0.0)
        if turn.script.follow_up and reason == "complete":
            self._next_turn(turn.session, self.now, quiet_at)
        else:
            self._next_turn(turn.session, quiet_at + turn.script.pause)

    def _next_turn(self, session: int, at: float, free_at: float | None = None) -> None:
        self._turns_left[session] -= 1
        if self._turns_left[session]:
            self._at(at, self._ask, session, free_at)
