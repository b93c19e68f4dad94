"""An utterance: text deltas pushed in as they come, packets out, whatever happens in between.

`RealtimeTTS.speak` pulls its text from an iterator and is one turn. A framework pushes text, from a
place where it cannot wait, and counts on hearing all of it. So an utterance keeps its text, and
begins another turn with it where that is safe: when a turn failed before any of it was heard, or
when one was over before its text: the text paused for too long, or the model ended by itself.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable

from realtime_tts.client import Interrupted, Speech, TextSource, TurnResult, Word
from realtime_tts.errors import ConnectionLost, OverloadedError, RealtimeTTSError, TurnError


class Listener:
    """Hears one utterance after the other. `free_at`: when all that was given has been heard."""

    def __init__(self) -> None:
        self.free_at = 0.0

    def drop(self) -> None:
        """What was given and not heard is thrown away, because the listener speaks."""
        self.free_at = 0.0


class Playback:
    """One utterance at the listener. `seconds`: of sound given; `gaps`: of silence between, because
    sound came late."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._ends_at = 0.0
        self.seconds = 0.0
        self.gaps = 0.0

    def give(self, seconds: float, now: float) -> None:
        """Sound goes to the framework, which plays it behind what it has."""
        free_at = self._listener.free_at
        if self.seconds:
            self.gaps += max(0.0, now - free_at)
        self.seconds += seconds
        self._ends_at = self._listener.free_at = max(now, free_at) + seconds

    def begins(self, now: float) -> None:
        """The framework begins to play now, and not when the first sound was given."""
        self._ends_at = self._listener.free_at = now + self.seconds

    def heard(self, now: float) -> float:
        """Seconds of its sound that have been heard."""
        return max(0.0, self.seconds - max(0.0, self._ends_at - now))

    def over(self, now: float) -> bool:
        """Whether all that was given of it has been heard."""
        return now >= self._ends_at


log = logging.getLogger(__name__)

_PAUSE = 0.25
"""Seconds before another attempt, where the server names no time. The client's backoff, which
waits for a connection, comes on top."""
_LONGEST_PAUSE = 30.0
"""A key that has used up its day is told to come back tomorrow."""


class Utterance:
    """One stretch of speech. `add` and `end` never wait; `packets` is to be read once.

    `playback`: how far its listener is, for whom tells it what goes to the listener, and when.
    `attempts`: turns that may fail, if nothing of them was heard, before it fails, too.
    """

    def __init__(self, playback: Playback | None = None, attempts: int = 3) -> None:
        self.playback = playback or Playback(Listener())
        self._attempts = attempts
        self._text = ""
        self._ended = False
        self._taken = 0  # characters that earlier turns have dealt with
        self._speech: Speech | None = None
        self._words: list[Word] = []  # that nobody has taken yet
        self._counted = 0  # words of the speech that are or were in there
        self._before_ms = 0.0  # of audio before the speech
        self._cut_ms: float | None = None  # heard of the turn when it was stopped
        self._changed = asyncio.Event()
        self._begun = asyncio.Event()
        self.stopped = False
        """Whether it was interrupted, so that no packet comes any more."""
        self.complete = False
        """The server spoke all that can be spoken of it, which may be nothing."""

    # Text in

    def add(self, delta: str) -> None:
        """Take more text, as it came. It is dropped after `end` or an interrupt."""
        if not (self._ended or self.stopped):
            self._text += delta
            self._changed.set()

    def end(self) -> None:
        """Say that no more text comes. Idempotent."""
        self._ended = True
        self._changed.set()

    async def wait_ended(self) -> None:
        """Return when there will be no more text."""
        while not (self._ended or self.stopped):
            await self._wait()

    async def wait_begun(self) -> None:
        """Return when the server has its first text, or will not get any."""
        await self._begun.wait()

    # Packets out

    async def packets(self, speak: Callable[[TextSource], Speech]) -> AsyncGenerator[bytes, None]:
        """PCM packets as they come: 24 kHz, mono, s16le. `speak`: as the client's.

        Raises what the client raises: at once if something was heard already or trying again is
        pointless, else after the last attempt. Leaving early interrupts the turn.
        """
        attempt, heard = 1, False
        try:
            while await self._has_text():
                # Every turn is a Speech, which sends and receives at the same time.
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
                    await asyncio.sleep(pause)
                else:
                    self._note_words()
                    if speech.result is None or not self._goes_on(speech.result):
                        break
                    self._taken += speech.result.text_chars
                    self._before_ms += speech.result.seconds * 1000
                    attempt, heard = 1, False
            self.complete = not self.stopped
        finally:
            self._begun.set()

    def take_words(self) -> list[Word]:
        """The words that came since the last call, if the session has `word_times`. Their times
        count from the first sound of the utterance. The last come when the packets have ended."""
        self._note_words()
        words, self._words = self._words, []
        return words

    # Stopping

    def stop(self) -> None:
        """Give not one packet more from this call on, without telling the server yet."""
        if not self.stopped:
            self._cut_ms = self._played_ms()
        self.stopped = True
        self._changed.set()
        self._begun.set()

    async def interrupt(self) -> Interrupted | None:
        """Stop, and learn from the server what was heard; None if it has nothing of the text.

        Works on an utterance that is over as well, as its listener may still hear it. Raises
        ConnectionLost.
        """
        self.stop()
        if self._speech is None:
            return None
        report = await self._speech.interrupt(self._cut_ms)
        return report if report.turn_id else None

    async def tell_played(self) -> None:
        """Tell the server how much has been heard. Raises ConnectionLost."""
        played_ms = self._played_ms()
        turn = self._speech.turn if self._speech is not None else None
        if turn is not None and played_ms is not None and not self.stopped:
            await turn.played(played_ms)

    # Steps

    def _played_ms(self) -> float | None:
        """How much of the turn's sound has been heard; None if its playback is not known."""
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
        """Whether text that the turn did not take is to be spoken in another one.

        A turn may be complete before its text is: nothing keeps a model from ending by itself.
        """
        if result.reason not in ("complete", "idle") and not self.stopped:
            log.warning("turn %s is not spoken to its end: %s", result.turn_id, result.reason)
        return result.reason == "idle" or (result.reason == "complete" and result.text_chars > 0)

    async def _has_text(self) -> bool:
        """Wait for text that no turn has taken. False: there will be none."""
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
                self._begun.set()  # who asks for the next piece has sent this one
            if self._ended or self.stopped:
                return
            await self._wait()

    async def _wait(self) -> None:
        # Several tasks may wait; each looks at the state again, so one event serves them all.
        self._changed.clear()
        await self._changed.wait()


def _pause(error: RealtimeTTSError) -> float | None:
    """Seconds before the same again may work, None if it will not, or nobody waits for so long.

    What has no answer within the client's backoff is final here: it has been tried for long enough.
    """
    if isinstance(error, OverloadedError):
        return error.retry_after if error.retry_after <= _LONGEST_PAUSE else None
    again = isinstance(error, ConnectionLost | TurnError) and error.retryable
    return _PAUSE if again else None
