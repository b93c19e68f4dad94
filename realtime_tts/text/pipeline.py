"""From the caller's text deltas to token ids: sanitizer, speech text filter, tokenizer.

The pipeline of one turn also remembers which source character each spoken character stands for,
so that what was heard can be told in the caller's own text.
"""

from __future__ import annotations

from realtime_tts.text.filter import SpeechTextFilter
from realtime_tts.text.incremental import IncrementalTokenizer
from realtime_tts.text.sanitizer import Sanitizer
from realtime_tts.text.spans import Piece, PieceMap
from realtime_tts.text.tokenizer import Qwen2Tokenizer


class TextPipeline:
    """The text of one turn. `now` is in seconds on the caller's clock and never goes back.

    Every method that takes text or time returns the ids that became certain by it. However the
    text is cut, the ids joined are the same, unless the filter had to end a hold (see
    `SpeechTextFilter`) or `flush` cut the text into segments.
    """

    def __init__(self, tokenizer: Qwen2Tokenizer, *, filtered: bool = True) -> None:
        self._sanitizer = Sanitizer()
        self._filter = SpeechTextFilter() if filtered else None
        self._tokenizer = IncrementalTokenizer(tokenizer)
        self._deltas: list[str] = []
        self._spoken: list[str] = []
        self._map = PieceMap()  # spoken characters -> sanitized characters
        self._sanitized = 0  # characters that left the sanitizer
        self.has_speech = False
        """Whether a letter or digit was spoken; if not at the end, there is nothing to say."""
        self.finished = False

    @property
    def source(self) -> str:
        """All text fed, exactly as it was given."""
        self._deltas = ["".join(self._deltas)]
        return self._deltas[0]

    @property
    def spoken(self) -> str:
        """The text given to the tokenizer so far."""
        self._spoken = ["".join(self._spoken)]
        return self._spoken[0]

    @property
    def fed_characters(self) -> int:
        """How much of `spoken` has become ids; the rest is still open."""
        return max(0, self._map.length - self._tokenizer.held_characters)

    @property
    def repairs(self) -> int:
        """Characters that the sanitizer removed or replaced."""
        return self._sanitizer.repairs

    def feed(self, delta: str, now: float) -> list[int]:
        """Add text. Not after `finish`."""
        assert not self.finished, "text after the end of the turn"
        self._deltas.append(delta)
        return self._speak(self._filtered(self._sanitizer.feed(delta), now))

    def poll(self, now: float) -> list[int]:
        """Release what the filter has held too long; nothing before `deadline`."""
        return self._speak(self._filter.poll(now)) if self._filter else []

    def deadline(self) -> float | None:
        """When to call `poll`; None if nothing waits for time to pass."""
        return self._filter.deadline() if self._filter else None

    def flush(self, now: float) -> list[int]:
        """End a segment: everything held is released. Text that follows starts a new one."""
        pieces = self._filtered(self._sanitizer.flush(), now)
        if self._filter:
            pieces += self._filter.flush()
        return self._speak(pieces) + self._tokenizer.flush()

    def finish(self, now: float) -> list[int]:
        """End the turn. Idempotent."""
        ids = [] if self.finished else self.flush(now)
        self.finished = True
        return ids

    def source_offset(self, spoken_characters: int) -> int:
        """The offset in `source` just after the first `spoken_characters` of `spoken`."""
        return self._sanitizer.offsets.before(self._map.source_offset(spoken_characters))

    def source_start(self, index: int) -> int:
        """The offset in `source` of character `index` of `spoken`; its end if there is none."""
        start = self._map.source_start(index)
        return len(self.source) if start is None else self._sanitizer.offsets.before(start)

    def _filtered(self, text: str, now: float) -> list[Piece]:
        start = self._sanitized
        self._sanitized += len(text)
        if self._filter:
            return self._filter.feed(text, now)
        return [Piece(text, start, self._sanitized)] if text else []

    def _speak(self, pieces: list[Piece]) -> list[int]:
        for index, piece in enumerate(pieces):
            if self._map.length == 0:
                piece = _without_leading_space(piece)
            if piece.text:
                self._map.add(piece)
                self._spoken.append(piece.text)
                self.has_speech = self.has_speech or any(map(str.isalnum, piece.text))
            pieces[index] = piece
        text = "".join(piece.text for piece in pieces)
        return self._tokenizer.feed(text) if text else []


def _without_leading_space(piece: Piece) -> Piece:
    """A turn must not begin with white space: it would merge into the prompt before the text."""
    text = piece.text.lstrip()
    return Piece(text, piece.start + len(piece.text) - len(text), piece.end)
