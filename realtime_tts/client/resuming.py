"""ResumeState: what a client keeps of a turn, to go on with it when its socket is lost.

PROTOCOL.md has the rules: Turns that outlive their socket.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from weakref import WeakMethod

from realtime_tts.errors import ConnectionLost
from realtime_tts.protocol import messages as m
from realtime_tts.protocol.settings import Limits

_BYTES_PER_CHAR = 8
"""No character takes more in JSON."""
_CODES_BYTES = 32_768
"""Of codes in one message, well below what a server takes."""


class ResumeState:
    """What the server says of a turn beside its packets: `told`, then the `packet`."""

    def __init__(self, turn_id: str) -> None:
        self._turn_id = turn_id
        self._next: m.TurnState | None = None
        self._last: m.TurnState | None = None
        self._part = ""
        self._codes: list[str] = []
        self._spoken: list[tuple[int, int]] = []  # samples, and characters spoken by then

    def told(self, state: m.TurnState) -> None:
        """It counts once the next packet has come."""
        self._next = state

    def packet(self) -> None:
        """A packet came."""
        state, self._next = self._next, None
        if state is None:
            return
        self._last = state
        self._spoken.append((state.samples, state.text_chars))
        if state.part:
            self._part, self._codes = state.part, []
        if state.codes:
            self._codes.append(state.codes)

    def socket_lost(self) -> None:
        """What was told without its packet does not count."""
        self._next = None

    @property
    def samples(self) -> int:
        """Of the turn that came, at 24 kHz."""
        return 0 if self._last is None else self._last.samples

    def messages(self, words: Iterable[m.Word], traceparent: str | None = None) -> list[m.Message]:
        """What goes before the turn's text in another session; nothing for a turn without sound.
        `words`: all that came. `traceparent`: the turn's."""
        if self._last is None:
            return []
        bunches: list[list[str]] = [[]]
        size = 0
        for codes in self._codes:
            if size + len(codes) > _CODES_BYTES:
                bunches.append([])
                size = 0
            bunches[-1].append(codes)
            size += len(codes)
        resume = m.TurnResume(
            turn_id=self._turn_id,
            samples=self._last.samples,
            text_chars=self._last.text_chars,
            words_chars=sum(len(word.text) for word in words),
            part=self._part,
            state=self._last.state,
            traceparent=traceparent,
        )
        return [*(m.TurnCodes(turn_id=self._turn_id, codes=tuple(b)) for b in bunches), resume]

    def report(self, text: str, played_ms: float | None) -> m.TurnInterrupted:
        """What was heard of the turn's text, where no server can be asked: in so much of its sound;
        None: in all that came."""
        came_ms = self.samples * 1000 / m.SAMPLE_RATE
        played_ms = came_ms if played_ms is None else min(played_ms, came_ms)
        played = played_ms * m.SAMPLE_RATE / 1000
        spoken = max((chars for samples, chars in self._spoken if samples <= played), default=0)
        return m.TurnInterrupted(
            turn_id=self._turn_id,
            samples_sent=self.samples,
            played_ms=played_ms,
            text_spoken=text[:spoken],
            text_remaining=text[spoken:],
        )


def most_chars(limits: Limits) -> int:
    """Characters of text that always fit one message."""
    return min(limits.max_text_chars, limits.max_message_bytes // _BYTES_PER_CHAR)


def joined(script: Iterable[m.Message], most: int) -> list[m.Message]:
    """The same messages, with texts in a row joined to at most so many characters."""
    result: list[m.Message] = []
    for message in script:
        last = result[-1] if result else None
        if (
            isinstance(message, m.Text)
            and isinstance(last, m.Text)
            and len(last.text) + len(message.text) <= most
        ):
            result[-1] = m.Text(
                text=last.text + message.text,
                turn_id=message.turn_id,
                end=message.end,
                traceparent=last.traceparent,
            )
        else:
            result.append(message)
    return result


def all_heard(turn_id: str, text: str, samples: int, played_ms: float | None) -> m.TurnInterrupted:
    """The report about a turn that nobody knows anything else of."""
    return m.TurnInterrupted(
        turn_id=turn_id,
        samples_sent=samples,
        played_ms=samples * 1000 / m.SAMPLE_RATE if played_ms is None else played_ms,
        text_spoken=text,
        text_remaining="",
    )


def done_here(turn_id: str, reason: str, samples: int, text_chars: int) -> m.TurnDone:
    """The end of a turn that no server has told of."""
    return m.TurnDone(
        turn_id=turn_id,
        reason=reason,
        samples=samples,
        ttfa_ms=None,
        underruns=0,
        held_ms=0.0,
        text_chars=text_chars,
    )


def weakly(method: Callable[[ConnectionLost], None]) -> Callable[[ConnectionLost], None]:
    """The same, which does nothing once its object is gone: a turn that its caller dropped."""
    reference = WeakMethod(method)

    def call(error: ConnectionLost) -> None:
        if (found := reference()) is not None:
            found(error)

    return call
