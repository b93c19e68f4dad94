"""Replay: the text of a turn comes again, and is brought to where another server had it.

The same deltas become the same ids, because what time decided there is repeated: where held text
was released, and where commits ended utterances. Nothing of it is opened in the engine.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from realtime_tts.server.resumption import Resumption
from realtime_tts.text.pipeline import TextPipeline


class Replay:
    """Feeds a text's pipeline until it is where the resumption says."""

    def __init__(self, text: TextPipeline, resumption: Resumption) -> None:
        self._text, self._resumption = text, resumption
        self._fed = 0  # characters fed
        part, position = resumption.part, resumption.position
        self._exact = part is not None and position is not None
        self._holds: deque[int] = deque()
        self._cuts: deque[int] = deque()
        self._released = 0
        if part is not None and position is not None:
            self._holds.extend(position.holds)
            cuts = [*(each.cut for each in part.before), position.cut]
            self._cuts.extend(cut for cut in cuts if cut is not None)
            self._released = position.released

    def feed(self, delta: str, now: float) -> None:
        """Feed a delta, as `TextPipeline.feed` does."""
        while self._holds and self._fed + len(delta) >= self._holds[0]:
            count = max(0, self._holds.popleft() - self._fed)
            self._feed(delta[:count], now)
            delta = delta[count:]
            while (due := self._text.deadline()) is not None:
                self._text.poll(due)
        self._feed(delta, now)
        self.advance()

    def _feed(self, delta: str, now: float) -> None:
        if delta:
            self._fed += len(delta)
            self._text.feed(delta, now)

    def advance(self) -> bool:
        """Process the text so far. Return whether it is where it was, or has ended, as another
        text."""
        text = self._text
        if not self._exact:
            return self._advance_to_word()
        while self._cuts and self._release(self._cuts[0]):
            self._cuts.popleft()
            self._commit()
        if not self._cuts and self._release(self._released):
            return True
        return text.finished

    def _release(self, until: int) -> bool:
        count = min(until - self._text.released, len(self._text.unspoken.text))
        if count > 0:
            self._text.release(count)
        return self._text.released >= until

    def _advance_to_word(self) -> bool:
        text = self._text
        count = text.unspoken_before(self._resumption.text_chars)
        if count:
            text.release(count)
        if not (text.unspoken.text or text.ended):
            return False
        if text.released:
            self._commit()
        return True

    def _commit(self) -> None:
        """End an utterance here; no other follows if the text has ended."""
        self._text.commit()
        self._text.segments[-1].closed = self._text.finished

    def made(self) -> Sequence[int]:
        """Return the samples of speech of each utterance before the one on the air."""
        segments, part = self._text.segments, self._resumption.part
        if part is not None:
            return [each.samples for each in part.before][: len(segments) - 1]
        ends = [segment.start for segment in segments[1:]]
        if not ends or not ends[-1]:
            return [0] * len(ends)
        samples = self._resumption.samples
        shares = [samples * end // ends[-1] for end in ends]
        return [share - before for share, before in zip(shares, [0, *shares], strict=False)]
