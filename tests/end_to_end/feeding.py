"""A turn with the embedded voice, fed bit by bit in simulated time.

Text, pacing, scheduler, engine loop and model are the server's own. What is simulated is the time:
a step of the engine takes `STEP` seconds, and waiting takes none.
"""

from __future__ import annotations

import queue
from collections import deque
from collections.abc import Sequence
from math import inf
from typing import Any

from realtime_tts.engine.guards import GuardConfig
from realtime_tts.engine.interface import Engine, StepOutput
from realtime_tts.engine.link import Append, Command, Event, Finish, Open
from realtime_tts.engine.loop import EngineLoop
from realtime_tts.text.speech_times import SpokenSpan
from realtime_tts.text.tokenizer import Qwen2Tokenizer
from tests.server.feeding import Delta, Feeding, Row
from tts_scheduler import Scheduler, SchedulerConfig, StepPlan

STEP = 0.02


class EngineFeeding(Feeding):
    """`run` feeds one turn to `engine`; a later turn needs another of these. `sounds`: for each
    utterance, from which sample of the turn to which it sounds."""

    def __init__(self, engine: Engine, tokenizer: Qwen2Tokenizer, **settings: Any) -> None:
        super().__init__(tokenizer, **settings)
        self.words: list[SpokenSpan] = []
        self.utterances: dict[str, list[int]] = {}
        self._engine = engine
        self._texts: deque[tuple[float, str | None]] = deque()
        self._until = inf
        self._stopped = False
        config = SchedulerConfig(slots=engine.info.slots)
        self._commands = SimulatedQueue(self)
        self._loop = EngineLoop(
            SimulatedSteps(engine, self),
            Scheduler(config, kv_cache=engine.kv_cache),
            self._take_events,
            guards=GuardConfig(enabled=False),
            clock=lambda: self.now,
            commands=self._commands,
        )

    # The host.

    def open(self, command: Open, _: Any) -> None:
        assert command.continues == (self.turn.listener.made > 0)
        self.rows.append(Row(command.id, self.now))
        self._commands.put((command,))

    def submit(self, command: Any) -> None:
        row = self.rows[-1]
        assert command.id == row.id and not row.finished
        if isinstance(command, Append):
            row.ids += command.ids
        row.finished = isinstance(command, Finish)
        self._commands.put((command,))

    # The run.

    def run(self, deltas: Sequence[Delta], *, until: float = inf) -> None:
        """All of them, and the end; or up to a time."""
        at = 0.0
        for after, text in deltas:
            at += after
            self._texts.append((at, text))
        self._texts.append((at, None))
        self._until = until
        self._loop.run()
        self._take_words()  # the turn may have ended by text with nothing to speak
        self.ended_at = self.turn.listener.dry_at(self.now)

    @property
    def next_at(self) -> float:
        """When something is to be done for the text."""
        text_at = self._texts[0][0] if self._texts else inf
        return min(text_at, self.turn.text_deadline(), self._until)

    def catch_up(self) -> None:
        """Do what is due; the end of the turn ends the run."""
        while self.next_at <= self.now < self._until:
            if self._texts and self._texts[0][0] <= self.now:
                self._take(self._texts.popleft()[1])
            else:
                self.turn.poll(self.now)
        if self.now >= self._until or (self.turn.over and not self._texts):
            if not self._stopped:
                self._stopped = True
                self._loop.stop()

    def _take_events(self, events: list[Event]) -> None:
        for event in events:
            if event.id != self.turn.utterance_id or self.turn.over:
                continue  # the engine was stopped
            before = self.turn.listener.made
            self._publish(event)
            if self.turn.listener.made > before:
                sounds = self.utterances.setdefault(event.id, [before, before])
                sounds[1] = self.turn.listener.made
        self._take_words()

    def _take_words(self) -> None:
        while words := self.turn.listener.take_words():
            self.words += words


class SimulatedSteps:
    """An engine whose steps take `STEP` seconds of a turn's time, whatever they really take."""

    def __init__(self, engine: Engine, feeding: EngineFeeding) -> None:
        self._engine, self._feeding = engine, feeding

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def step(self, plan: StepPlan) -> StepOutput:
        self._feeding.now += STEP
        return self._engine.step(plan)


class SimulatedQueue:
    """The loop's commands. To wait for one is to let time go on."""

    def __init__(self, feeding: EngineFeeding) -> None:
        self._feeding = feeding
        self._waiting: deque[tuple[Command, ...]] = deque()

    def put(self, commands: Sequence[Command]) -> None:
        self._waiting.append(tuple(commands))

    def get_nowait(self) -> tuple[Command, ...]:
        self._feeding.catch_up()
        if not self._waiting:
            raise queue.Empty
        return self._waiting.popleft()

    def get(self, timeout: float) -> tuple[Command, ...]:
        feeding = self._feeding
        feeding.now = max(feeding.now, min(feeding.now + timeout, feeding.next_at))
        return self.get_nowait()
