"""A listener, an engine and a text that comes bit by bit, in simulated time.

`Utterances` are the server's own. The engine is a machine that takes `STEP` seconds for a frame,
speaks `FRAMES` frames for a token, and stands still where it lacks one.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from math import ceil, inf
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from realtime_tts.access.account import FREE
from realtime_tts.bench.deltas import DeltaKind, split
from realtime_tts.engine.fake import FakeEngine
from realtime_tts.engine.link import Append, Audio, Ended, Event, Finish, Open, Started, Waits
from realtime_tts.protocol.settings import SessionSettings
from realtime_tts.server.made import Made
from realtime_tts.server.utterances import Utterances
from realtime_tts.text.spoken import SpeechRates
from realtime_tts.text.stable_bpe import ALPHABET
from realtime_tts.text.tokenizer import Qwen2Tokenizer
from realtime_tts.text.unspoken import End, end_of
from realtime_tts.voices.file import VoiceRecord
from tts_scheduler import FeedPace, Reaction

FRAME, RATE = 1_920, 24_000
STEP, FRAMES = 0.02, 2.7
START_WAIT = 0.15

Delta = tuple[float, str]
"""Seconds after the one before, and the text; an empty text is a flush."""


@dataclass
class Row:
    """An utterance in the engine."""

    id: str
    opened_at: float
    ids: list[int] = field(default_factory=list)
    finished: bool = False
    frames: int = 0
    needs: int = 2

    def can_go_on(self, now: float) -> bool:
        tokens = len(self.ids)
        if not self.frames and self.needs > 2:
            return self.finished or tokens >= self.needs
        if not self.frames:
            return (
                self.finished or tokens > 1 or (tokens > 0 and now >= self.opened_at + START_WAIT)
            )
        return self.finished or self.frames < tokens

    @property
    def over(self) -> bool:
        return self.finished and self.frames >= ceil(FRAMES * len(self.ids))


@dataclass(frozen=True)
class Gap:
    """Silence that the listener heard; `after` what, None: in the middle of an utterance."""

    seconds: float
    after: End | None


class Feeding:
    """One turn. `run` feeds it all; what came of it is in the attributes. It is its own host.

    `step_of`: seconds that the next step of a row takes.
    """

    def __init__(
        self,
        tokenizer: Qwen2Tokenizer,
        *,
        pace: FeedPace | None = None,
        safe_tokens: int = 0,
        in_context: bool = False,
        step_of: Callable[[Row], float] = lambda row: STEP,
        **settings: Any,
    ) -> None:
        self.rows: list[Row] = []
        self.gaps: list[Gap] = []
        self.first_at = inf
        self.ended_at = inf
        """When the listener has heard all."""
        self.now = 0.0
        self.info = msgspec.structs.replace(FakeEngine().info, safe_tokens=safe_tokens)
        self.reaction, self.paces = Reaction(), SpeechRates()
        self._tokenizer = tokenizer
        self._in_context = in_context
        self._step_of = step_of
        usual = {"voice": "anna", "text_normalization": "on", "language": "english"}
        chosen = SessionSettings(**(usual | settings))
        host: Any = self
        pace = pace or FeedPace()
        self.turn = Utterances("t", chosen, host, lambda event: None, None, pace, FREE)

    # The host.

    def lexicons(self, refs: Sequence[str]) -> list[Any]:
        """None is stored here."""
        assert not refs
        return []

    def tokenizer_of(self, *_: Any) -> Qwen2Tokenizer:
        return self._tokenizer

    def registered(self, name: str) -> VoiceRecord:
        return VoiceRecord(name, "", 64, self._in_context, None, None, None, Path(), 0)

    def info_for(self, *_: Any) -> Any:
        return self.info

    def open(self, command: Open, _: Any) -> None:
        assert not self.rows or self.rows[-1].over, "one utterance after another"
        assert command.continues == (self.turn.listener.made > 0)
        self.rows.append(Row(command.id, self.now, needs=90 if self._in_context else 2))

    def submit(self, command: Any) -> None:
        row = self.rows[-1]
        assert command.id == row.id and not row.finished
        if isinstance(command, Append):
            row.ids += command.ids
        elif isinstance(command, Finish):
            row.finished = True

    def forget(self, _: str) -> None:
        """It keeps nothing of those that are over."""

    cancel = forget

    # The run.

    def run(self, deltas: Sequence[Delta], *, until: float = inf) -> None:
        """All of them, and the end; or up to a time."""
        times: list[tuple[float, int, str | None]] = []
        number, at = count(), 0.0
        for after, text in deltas:
            at += after
            heapq.heappush(times, (at, next(number), text))
        heapq.heappush(times, (at, next(number), None))
        step_at = 0.0
        for _ in range(1_000_000):
            row = self.rows[-1] if self.rows else None
            works = row is not None and not row.over and row.can_go_on(max(self.now, step_at))
            ahead = self.turn.listener.dry_at(self.now) - self.now if self.first_at < inf else 0.0
            begins = step_at
            if works and ahead > 3.0:
                begins = self.now + ahead - 3.0
            elif row and not row.frames and row.ids and not works and not self._in_context:
                begins, works = row.opened_at + START_WAIT, True
            due = self.turn.text_deadline()
            next_text = times[0][0] if times else inf
            now = min(next_text, due, max(begins, self.now) if works else inf)
            if now > until or now == inf:
                break
            self.now = max(self.now, now)
            if times and next_text <= self.now:
                self._take(heapq.heappop(times)[2])
            elif due is not None and due <= self.now:
                self.turn.poll(self.now)
            else:
                row = self.rows[-1]
                self.now += self._step_of(row)
                step_at = self.now
                self._step(row)
        self.ended_at = self.turn.listener.dry_at(self.now)

    def _take(self, text: str | None) -> None:
        if text is None:
            self._leaves(self.turn.end(self.now), self.rows[-1:])
        elif text:
            self.turn.feed(text, self.now)
        else:
            self.turn.commit(self.now)

    def _step(self, row: Row) -> None:
        if not row.can_go_on(self.now):
            return
        if not row.frames:
            self._publish(Started(row.id, "streaming"))
        row.frames += 1
        stands = not row.can_go_on(self.now)
        self._publish(Audio(row.id, bytes(2 * FRAME), stands=stands))
        if stands:
            self._publish(Waits(row.id, len(row.ids)))
        if row.over:
            self._publish(Ended(row.id, "complete", row.frames, 0.0))

    def _publish(self, event: Event) -> None:
        begins = self.turn.listener.taken <= self.turn.listener.part_begins
        before = self.rows[-2:-1] if begins else []
        self._leaves(self.turn.take(event, self.now), before)

    def _leaves(self, made: Made, before: list[Row]) -> None:
        """The listener gets it at once. `before`: the utterance that it follows; none: its own."""
        samples = sum(len(one) // 2 for one in made if isinstance(one, bytes))
        if not samples:
            return
        listener = self.turn.listener
        dry_at = listener.playback.runs_out_at
        if dry_at is not None and self.now > dry_at + 1e-6:
            after = end_of(self.text(before[0]) + " ") if before else None
            self.gaps.append(Gap(self.now - dry_at, after))
        listener.take(listener.taken + samples)
        self.turn.sent(samples, self.now)
        self.first_at = min(self.first_at, self.now)

    def text(self, row: Row) -> str:
        """What it was given."""
        letters = {id: token for token, id in self._tokenizer.vocabulary.ids.items()}
        alphabet = {char: byte for byte, char in enumerate(ALPHABET)}
        joined = "".join(letters[id] for id in row.ids)
        return bytes(alphabet[char] for char in joined).decode()

    @property
    def spoken(self) -> list[str]:
        """The texts of its utterances."""
        return [self.text(row) for row in self.rows]

    def seams(self, after: End) -> int:
        """Utterances but the last that end so."""
        return sum(end_of(text + " ") == after for text in self.spoken[:-1])

    def silence(self, *after: End | None) -> float:
        """Seconds of it, of gaps after these."""
        return sum(gap.seconds for gap in self.gaps if gap.after in after)


def at_pace(
    text: str, tokens_per_second: float, random: Random, jitter: float = 0.0
) -> list[Delta]:
    """The text as a language model writes it."""
    deltas: list[Delta] = []
    for number, delta in enumerate(split(text, DeltaKind.TOKENS, random)):
        gap = 1 / tokens_per_second
        if jitter:
            gap = random.gammavariate(1 / jitter**2, gap * jitter**2)
        deltas.append((gap if number else 0.0, delta))
    return deltas


def by_sentence(deltas: Iterable[Delta]) -> Iterator[Delta]:
    """As a client sends them that waits for whole sentences, and the word behind each."""
    held, waited = "", 0.0
    for after, text in deltas:
        waited += after
        if held and end_of(held + " ") == End.SENTENCE and text[:1].isspace():
            yield waited, held
            held, waited = "", 0.0
        held += text
    if held:
        yield waited, held


TEXTS = (
    "Let me check that for you. I found three tables for tonight, at seven, at half past seven, "
    "and at nine. Which one would you like me to reserve?",
    "Sure. The meeting was moved to Thursday, because the room is taken. I have told the others "
    "about it, and everybody can come.",
    "The ferry leaves in the morning and comes back before dark. If you like, I can book two seats "
    "on the upper deck, where you have the best view of the harbour.",
)
