"""An utterance: text deltas pushed in as they arrive, packets out, whatever happens in between.

`RealtimeTTS.speak` pulls its text from an iterator and is one turn. A framework pushes text, from
where it cannot wait, and expects to hear all of it. So an utterance keeps its text, and begins
another turn with it where that is safe: when a turn failed before any of it was heard, or when one
was over before its text: the text paused for too long, or the model ended by itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator, Callable

from realtime_tts.client import Interrupted, Speech, TextSource, TurnResult, Word
from realtime_tts.errors import ConnectionLost, OverloadedError, RealtimeTTSError, TurnError


class Listener:
    """Hears one utterance after another. `free_at`: when it has heard all sound sent so far."""

    def __init__(self) -> None:
        self.free_at = 0.0

    def give(self, seconds: float, now: float) -> None:
        """Note sound that is played behind what the listener has."""
        self.free_at = max(now, self.free_at) + seconds

    def drop(self) -> None:
        """Note that sound not yet heard is dropped, because the listener speaks."""
        self.free_at = 0.0


class Playback:
    """The playback of one utterance. `seconds`: of sound sent; `gaps`: seconds of silence in
    between, because sound was late."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._ends_at = 0.0
        self.seconds = 0.0
        self.gaps = 0.0

    def give(self, seconds: float, now: float) -> None:
        """Note that sound goes to the framework, which plays it behind what it has."""
        free_at = max(self._listener.free_at, self._ends_at)  # the former is 0 after a drop
        if self.seconds:
            self.gaps += max(0.0, now - free_at)
        self.seconds += seconds
        self._ends_at = self._listener.free_at = max(now, free_at) + seconds

    def begins(self, now: float) -> None:
        """Note that the framework begins to play now, and not when the first sound was sent. What
        it has behind this is as much later."""
        late = now + self.seconds - self._ends_at
        self._ends_at += late
        self._listener.free_at = max(self._listener.free_at + late, self._ends_at)

    def heard(self, now: float) -> float:
        """Return how many seconds of the utterance have been heard."""
        return max(0.0, self.seconds - max(0.0, self._ends_at - now))

    def over(self, now: float) -> bool:
        """Return whether all of the utterance that was sent has been heard."""
        return now >= self._ends_at


log = logging.getLogger(__name__)

_PAUSE = 0.25
"""Seconds before another attempt, where the server names no time. The client's backoff, which
waits for a connection, comes on top."""
_LONGEST_PAUSE = 30.0
"""The longest such wait. A server tells a key that has used up its day to come back tomorrow."""


class Utterance:
    """One stretch of speech. `add` and `end` never wait; `packets` can be read once.

    `playback`: how far its listener is, if the caller notes there what goes to the listener, and
    when. `attempts`: turns that may fail before any of them was heard; then the utterance fails,
    too.
    """

    def __init__(self, playback: Playback | None = None, attempts: int = 3) -> None:
        self.playback = playback or Playback(Listener())
        self._attempts = attempts
        self._text = ""
        self._ended = False
        self._taken = 0  # characters that earlier turns took
        self._speech: Speech | None = None
        self._words: list[Word] = []  # not taken yet: see `take_words`
        self._counted = 0  # words of the present turn that went in there
        self._before_ms = 0.0  # audio before the present turn
        self._cut_ms: float | None = None  # how much of the turn was heard when it was stopped
        self._changed = asyncio.Event()
        self._begun = asyncio.Event()
        self.stopped = False
        """Whether it was interrupted, so that no more packets come."""
        self.complete = False
        """Whether the server spoke all of it that can be spoken, which may be nothing."""

    # Text in

    def add(self, delta: str) -> None:
        """Add text as it arrived. It is dropped after `end` or an interrupt."""
        if not (self._ended or self.stopped):
            self._text += delta
            self._changed.set()

    def end(self) -> None:
        """Note that no more text comes. Idempotent."""
        self._ended = True
        self._changed.set()

    async def wait_ended(self) -> None:
        """Return when no more text will come."""
        while not (self._ended or self.stopped):
            await self._wait()

    async def wait_begun(self) -> None:
        """Return when the server has the first text, or will not get any."""
        await self._begun.wait()

    # Packets out

    async def packets(self, speak: Callable[[TextSource], Speech]) -> AsyncGenerator[bytes, None]:
        """Yield PCM packets as they arrive: 24 kHz, mono, s16le. `speak`: as the client's.

        Raises what the client raises: at once if something was heard already or trying again is
        pointless, otherwise after the last attempt. Leaving early interrupts the turn.
        """
        attempt, heard = 1, False
        try:
            while await self._has_text():
                # Every turn is a Speech, which sends and receives at the same time.
                if self._speech is not None and self._speech.result is not None:
                    self._before_ms += self._speech.result.seconds * 1000
                speech = self._speech = speak(self._deltas())
                self._counted = 0
                try:
                    async for packet in speech:
                        if self.stopped:
                            # Before the speech does, which does not know what was heard.
                            if speech.turn is not None:
                                speech.turn.abandon(played_ms=self._cut_ms)
                            return
                        heard = True
                        yield packet
                except RealtimeTTSError as error:
                    self._speech = None
                    pause = _pause(error)
                    if heard or pause is None or attempt == self._attempts or self.stopped:
                        raise
                    log.warning("nothing of the turn was heard, so it is begun again: %s", error)
                    attempt += 1
                    await self._rest(pause)
                else:
                    self._note_words()
                    if speech.result is None or not self._goes_on(speech.result):
                        break
                    self._taken += speech.result.text_chars
                    attempt, heard = 1, False
            self.complete = not self.stopped
        finally:
            self._begun.set()

    def take_words(self) -> list[Word]:
        """Return the words that arrived since the last call, if the session has `word_times`. Their
        times count from the first sound of the utterance. The last arrive when the packets have
        ended."""
        self._note_words()
        words, self._words = self._words, []
        return words

    # Stopping

    def stop(self) -> None:
        """Yield no more packets from this call on, without notifying the server yet."""
        if not self.stopped:
            self._cut_ms = self._played_ms()
        self.stopped = True
        self._changed.set()
        self._begun.set()

    async def interrupt(self) -> Interrupted | None:
        """Stop, and return the server's report of what was heard; None if it has nothing of the
        text.

        Works on an utterance that is over as well, as its listener may still hear it. Raises
        ConnectionLost.
        """
        self.stop()
        if self._speech is None:
            return None
        report = await self._speech.interrupt(self._cut_ms)
        return report if report.turn_id else None

    async def report_played(self) -> None:
        """Report to the server how much has been heard. Raises ConnectionLost."""
        played_ms = self._played_ms()
        turn = self._speech.turn if self._speech is not None else None
        if turn is not None and played_ms is not None and not self.stopped:
            await turn.played(played_ms)

    # Steps

    def _played_ms(self) -> float | None:
        """Return how many ms of the turn have been heard; None if that is not known."""
        if not self.playback.seconds:
            return None
        heard_ms = self.playback.heard(time.monotonic()) * 1000
        return max(0.0, heard_ms - self._before_ms)

    def _note_words(self) -> None:
        turn = self._speech.turn if self._speech is not None else None
        if turn is None or self._counted == len(turn.words):
            return
        for word in turn.words[self._counted :]:
            start_ms, end_ms = (self._before_ms + ms for ms in (word.start_ms, word.end_ms))
            self._words.append(Word(text=word.text, start_ms=start_ms, end_ms=end_ms))
        self._counted = len(turn.words)

    def _goes_on(self, result: TurnResult) -> bool:
        """Return whether text that the turn did not take must be spoken in another one.

        A turn may be complete before its text is: nothing keeps a model from ending by itself.
        """
        if result.reason not in ("complete", "idle") and not self.stopped:
            log.warning("turn %s is not spoken to its end: %s", result.turn_id, result.reason)
        return result.reason == "idle" or (result.reason == "complete" and result.text_chars > 0)

    async def _has_text(self) -> bool:
        """Wait for text that no turn has taken. Return False if there will be none."""
        while len(self._text) == self._taken:
            if self._ended or self.stopped:
                return False
            await self._wait()
        return not self.stopped

    async def _deltas(self) -> AsyncGenerator[str, None]:
        at = self._taken
        while True:
            while at < len(self._text) and not self.stopped:
                piece, at = self._text[at:], len(self._text)
                yield piece
                self._begun.set()  # the reader asks for the next piece when this one is sent
            if self._ended or self.stopped:
                return
            await self._wait()

    async def _rest(self, seconds: float) -> None:
        """Wait for so long, or until it is stopped."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not self.stopped:
                    await self._wait()

    async def _wait(self) -> None:
        # Several tasks may wait; each looks at the state again, so one event serves them all.
        self._changed.clear()
        await self._changed.wait()


def _pause(error: RealtimeTTSError) -> float | None:
    """Return the seconds before the same may work again; None if it will not, or only after too
    long.

    What has no answer within the client's backoff is final here: it has been tried for long enough.
    """
    if isinstance(error, OverloadedError):
        return error.retry_after if error.retry_after <= _LONGEST_PAUSE else None
    again = isinstance(error, ConnectionLost | TurnError) and error.retryable
    return _PAUSE if again else None
