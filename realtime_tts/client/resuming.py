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
"""The most bytes that a character takes in JSON."""
_CODES_BYTES = 32_768
"""The most bytes of codes in one message, well below what a server takes."""


class ResumeState:
    """The states of a turn that the server sends before its packets: `store` one, then `packet`."""

    def __init__(self, turn_id: str) -> None:
        self._turn_id = turn_id
        self._next: m.TurnState | None = None
        self._last: m.TurnState | None = None
        self._part = ""
        self._codes: list[str] = []
        self._spoken: list[tuple[int, int]] = []  # samples, and characters spoken by then

    def store(self, state: m.TurnState) -> None:
        """Store a state. It takes effect when the next packet arrives."""
        self._next = state

    def packet(self) -> None:
        """Note that a packet has arrived, so that the state stored before it takes effect."""
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
        """Drop a stored state whose packet has not arrived."""
        self._next = None

    @property
    def samples(self) -> int:
        """Samples of the turn that were received, at 24 kHz."""
        return 0 if self._last is None else self._last.samples

    def messages(self, words: Iterable[m.Word], traceparent: str | None = None) -> list[m.Message]:
        """Return the messages that go before the turn's text in another session; none for a turn
        without sound. `words`: all words received. `traceparent`: the turn's."""
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
        """Return what was heard of the turn's text by `played_ms` of its sound, where no server can
        be asked; None: by all sound received."""
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
    """Return how many characters of text always fit one message."""
    return min(limits.max_text_chars, limits.max_message_bytes // _BYTES_PER_CHAR)


def joined(script: Iterable[m.Message], most: int) -> list[m.Message]:
    """Return the messages, with texts in a row joined to at most `most` characters."""
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
    """Return a report that all of a turn's text was heard, if nothing else is known of the turn."""
    return m.TurnInterrupted(
        turn_id=turn_id,
        samples_sent=samples,
        played_ms=samples * 1000 / m.SAMPLE_RATE if played_ms is None else played_ms,
        text_spoken=text,
        text_remaining="",
    )


def done_here(turn_id: str, reason: str, samples: int, text_chars: int) -> m.TurnDone:
    """Return the end of a turn whose end no server has reported."""
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
    """Wrap a bound method without keeping its object alive. The call does nothing once the object
    is gone: a turn that its caller dropped."""
    reference = WeakMethod(method)

    def call(error: ConnectionLost) -> None:
        if (found := reference()) is not None:
            found(error)

    return call
