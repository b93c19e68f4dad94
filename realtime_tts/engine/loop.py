"""The engine loop: apply commands → plan → step → book → publish → learn.

It does not know what it runs in (a thread, a process, a test). Commands come from a queue; events
leave through one callable, once per step.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from realtime_tts.audio.speed import Speed
from realtime_tts.engine.guards import GuardConfig, Watch
from realtime_tts.engine.interface import Engine, RowError, StepOutput
from realtime_tts.engine.link import (
    Append,
    Audio,
    Cancel,
    Command,
    CommandQueue,
    Ended,
    EngineStatus,
    Event,
    Failed,
    Finish,
    Lead,
    Open,
    Played,
    Refused,
    Spoken,
    Started,
    Waits,
)
from realtime_tts.engine.made_codes import Codes, MadeCodes, unpacked
from realtime_tts.engine.pending import PendingCommands
from realtime_tts.engine.pulse import LoopObserver, Pulse
from realtime_tts.engine.sound import LeadingSilence, all_sound, pcm_rows, sample_counts
from realtime_tts.errors import EngineError, NumericsError, RequestError
from tts_scheduler import SHORTEST_RETRY, DoesNotFit, Layout, Scheduler, StepPlan, StepResult
from tts_scheduler import Refused as RefusedAdmission
from tts_scheduler import Spoken as SpokenFrames

log = logging.getLogger(__name__)

MAX_CONSECUTIVE_FAILURES = 3
"""Failures at which an engine is given up, if no decode step works in between: after a step that
broke the engine, a row may still open and prefill."""

LOAD_INTERVAL = 0.1
"""Seconds between two snapshots of the load."""


class EngineLoop:
    """Drives one engine with one scheduler. `run` returns after `stop`, or raises EngineError.

    `commands`: the source of commands, if it is not `submit`. `max_failures`: failures of the
    engine in a row after which it is given up.
    """

    def __init__(
        self,
        engine: Engine,
        scheduler: Scheduler,
        publish: Callable[[list[Event]], None],
        *,
        guards: GuardConfig | None = None,
        observer: LoopObserver | None = None,
        clock: Callable[[], float] = time.monotonic,
        commands: CommandQueue | None = None,
        max_failures: int = MAX_CONSECUTIVE_FAILURES,
    ) -> None:
        self.engine = engine
        self.scheduler = scheduler
        self.pulse = Pulse(clock)
        self._publish = publish
        self._observer = observer
        self._clock = clock
        self.pending = PendingCommands(commands)
        report = None if observer is None else observer.guard
        self._watch = Watch(guards or GuardConfig(), engine.info.sample_rate, report)
        self._silence = LeadingSilence(engine.info.sample_rate)
        self._codes = MadeCodes(engine.info.codes_per_frame, engine.info.samples_per_frame)
        self._tokens = MadeCodes(1, engine.info.samples_per_frame)
        self._events: list[Event] = []
        self._failures, self._max_failures = 0, max_failures
        self._stopping, self._end = False, ("", "")
        self._load_due = 0.0
        self._measure_load()

    def submit(self, *commands: Command) -> None:
        """Queue commands, to be applied together. Callable from any thread; never blocks."""
        self.pending.put(commands)

    def stop(self, code: str = "engine_stopped", message: str = "the engine was stopped") -> None:
        """Ask the loop to end after the current step; open utterances then fail with this code."""
        self._end, self._stopping = (code, message), True  # the loop reads them in another thread
        self.pending.put(())

    @property
    def open_utterances(self) -> int:
        """Number of utterances that were admitted and have not ended. For any thread."""
        return len(self._watch.guards)

    def run(self) -> None:
        """Run until stopped. Every utterance still open then ends with Failed."""
        lost = "the engine failed in the middle of this turn; send its text again"
        end = EngineError.code, lost
        try:
            while not self._stopping:
                self._apply_commands()
                self._expire()
                self._measure_load()
                plan = self.scheduler.plan(self._clock())
                if plan is None:
                    self._flush_events()
                    self._wait()
                    continue
                output, seconds = self._step(plan)
                self._book(plan, output, seconds)
                self._flush_events()
                # After the events, since it is not urgent.
                self.scheduler.learn(plan, None if output.failed else seconds, self._clock())
            end = self._end
        finally:
            self._end_all(*end)

    # One method per stage, in the order of the loop.

    def _apply_commands(self) -> None:
        for command in self.pending:
            self._apply(command)

    def _apply(self, command: Command) -> None:
        now = self._clock()
        if isinstance(command, Open):
            self._open(command, now)
            return
        guards = self._watch.guards.get(command.id)
        if guards is None:
            return  # it ended while the command was on its way
        match command:
            case Append(id, ids):
                assert not guards.text_finished, "no text follows Finish"
                self.engine.append(id, ids)
                guards.text_tokens += len(ids)
                try:
                    self.scheduler.append(id, len(ids), now)
                except DoesNotFit as error:
                    self.scheduler.cancel(id, now)
                    self._forget(id)
                    self._events.append(Failed(id, RequestError.code, str(error), retryable=False))
            case Finish(id):
                self.engine.finish(id)
                guards.text_finished = True
                if not self.scheduler.finish(id, now):
                    self._events.append(Ended(id, "complete", 0, 0.0))
                    self._forget(id)
            case Played(id, seconds):
                self.scheduler.played(id, seconds, now)
            case Lead(id, seconds):
                self.scheduler.set_lead_cap(id, seconds, now)
            case Cancel(id):
                self.scheduler.cancel(id, now)
                self._forget(id)

    def _open(self, command: Open, now: float) -> None:
        spec = command.spec
        try:
            self.engine.check(spec)
            # Before the admission, because the engine may refuse the utterance here.
            codes = self._codes_of(command)
            self.engine.open(command.id, spec, codes)
            admission = self.scheduler.open(
                command.id,
                prompt_tokens=self.engine.prompt_tokens(spec),
                now=now,
                layout=Layout(spec.layout),
                listener_free_at=now + command.listener_free_after,
                lead_cap=command.lead_cap,
                text_needed=self.engine.text_needed(spec),
                silent_start=self.engine.silent_start(spec),
                continues=command.continues,
                spoken=_counted(command.spoken, codes),
                speed=spec.speed,
                lookahead=Speed(spec.speed).lookahead,
                payer=command.payer,
            )
        except (RequestError, DoesNotFit) as error:
            self.engine.close(command.id)
            self._events.append(Failed(command.id, RequestError.code, str(error), retryable=False))
            return
        except Exception as error:
            log.exception("engine.open_failed")
            self.engine.close(command.id)
            message = "the engine could not begin with this turn"
            self._events.append(Failed(command.id, EngineError.code, message, retryable=True))
            self._failed(error)
            return
        if isinstance(admission, RefusedAdmission):
            self.engine.close(command.id)
            self._events.append(
                Refused(command.id, "overloaded", admission.reason, admission.retry_after, True)
            )
            return
        self._begin(command, codes)

    def _codes_of(self, command: Open) -> Codes | None:
        if command.spoken is None:
            return None
        return unpacked(command.spoken.codes, self.engine.info.codes_per_frame)

    def _begin(self, command: Open, codes: Codes | None) -> None:
        """Begin to record what the steps make of an admitted utterance."""
        id, spoken = command.id, command.spoken
        for each in (self._watch, self._codes, self._tokens):
            each.begin(id)
        if spoken is not None and codes is not None:
            tokens = unpacked(spoken.tokens, 1)[:, 0].tolist()
            self._watch.guards[id].resume(codes[:, 0].tolist(), spoken.silent, tokens)
        elif command.spec.trim_silence == "on":  # the silence is at the start, not after `spoken`
            self._silence.begin(id, Speed(command.spec.speed))

    def _expire(self) -> None:
        for id in self.scheduler.expire(self._clock()):
            self._forget(id)
            message = "no capacity became free in time; try again"
            wait = max(SHORTEST_RETRY, self.scheduler.config.queue_timeout)
            self._events.append(Refused(id, "overloaded", message, wait))

    def _measure_load(self) -> None:
        """Update `load` now and then: to count held rows in every step would only cost time."""
        now = self._clock()
        if now >= self._load_due:
            scheduler = self.scheduler
            held, queued = scheduler.held, scheduler.queued
            load = scheduler.active, held, queued, scheduler.capacity
            self.load = EngineStatus(True, *load, step=self.pulse.longest_step)
            self._load_due = now + LOAD_INTERVAL

    def _wait(self) -> None:
        now = self._clock()
        wake = self.scheduler.next_wake(now)
        # Wakes at least twice a second, so that `pulse` can tell a hang from an idle engine.
        timeout = 0.5 if wake is None else min(max(wake - now, 0.0), 0.5)
        with self.pulse.resting():
            self.pending.wait(timeout)

    def _step(self, plan: StepPlan) -> tuple[StepOutput, float]:
        started = self._clock()
        try:
            output = self.engine.step(plan)
        except Exception as error:
            output = self._step_failed(plan, error)
        else:
            if plan.decodes:
                self._failures = 0
        return output, self.pulse.stepped(started)

    def _step_failed(self, plan: StepPlan, error: Exception) -> StepOutput:
        """Return an output in which all rows of the plan fail; the loop goes on with the others."""
        log.exception("engine.step_failed", extra={"fields": {"rows": len(plan.ids)}})
        self._failed(error)
        failure = RowError(EngineError.code, "the engine step failed")
        return StepOutput(failed=dict.fromkeys(plan.ids, failure))

    def _failed(self, error: Exception) -> None:
        """Count a failure of the engine. Raises EngineError if it is given up."""
        self._failures += 1
        if self._failures >= self._max_failures:
            raise EngineError(
                f"{self._failures} times in a row it failed, last: {error}"
            ) from error

    def _book(self, plan: StepPlan, output: StepOutput, seconds: float) -> None:
        blocks = all_sound(output)
        ended = self._watch.reasons(output, blocks)
        heard = self._silence.cut_from(blocks, ended, seconds)
        decoded = sample_counts(blocks)
        self._codes.step(output.codes, decoded)
        self._tokens.step(output.tokens, decoded)
        result = StepResult(
            seconds=seconds,
            frames=frozenset(output.frames),
            decoded=decoded,
            samples=sample_counts(heard),
            ended=frozenset(ended) | frozenset(output.failed),
        )
        now = self._clock()
        waiting = frozenset(self.scheduler.book(plan, result, now))
        if self._observer is not None:
            self._observer.step(seconds, len(plan.prefills), len(plan.decodes))
        # A turn's events must be in this order: it starts, it sounds, it is over.
        begun = [p for p in plan.prefills if p.id in output.frames]
        self._events.extend(Started(p.id, p.layout.value, seconds=seconds) for p in begun)
        held = self.scheduler.held_seconds
        for block in heard:
            self._events.extend(
                self._audio(id, pcm, id in waiting, now)
                for id, pcm in zip(block.ids, pcm_rows(block), strict=True)
            )
        guards = self._watch.guards
        self._events.extend(Waits(id, guards[id].text_tokens) for id in waiting)
        for id, reason in ended.items():
            stats = self.scheduler.stats(id, now)
            self._events.append(Ended(id, reason, stats.frames, stats.held_seconds))
        for id, failure in output.failed.items():
            code, retryable = failure.code, failure.code in (EngineError.code, NumericsError.code)
            self._events.append(Failed(id, code, failure.message, retryable, held(id, now)))
        self._forget(*ended, *output.failed)

    def _audio(self, id: str, pcm: bytes, waits: bool, now: float) -> Audio:
        silent, held = self._watch.guards[id].silent_samples, self.scheduler.held_seconds(id, now)
        return Audio(id, pcm, held, waits, self._codes.take(id), silent, self._tokens.take(id))

    def _flush_events(self) -> None:
        if self._events:
            events, self._events = self._events, []
            self._publish(events)

    def _forget(self, *ids: str) -> None:
        for each in (self._watch, self._silence, self._codes, self._tokens):
            for id in ids:
                each.end(id)
        for id in ids:  # last: an engine that has lost its device raises
            self.engine.close(id)

    def _end_all(self, code: str, message: str) -> None:
        now, left = self._clock(), list(self._watch.guards)
        self._events.extend(Failed(id, code, message, retryable=True) for id in left)
        self._flush_events()  # before the engine is asked for anything: it may be why the loop ends
        for id in left:
            self.scheduler.cancel(id, now)
        self._forget(*left)


def _counted(spoken: Spoken | None, codes: Codes | None) -> SpokenFrames | None:
    """Return the counts that the scheduler needs of `spoken`."""
    if spoken is None or codes is None:
        return None
    return SpokenFrames(len(codes), spoken.samples, spoken.unsent, spoken.held_seconds)
