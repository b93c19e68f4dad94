"""From the caller's text deltas to token ids: sanitizer, filter, normalizer, tokenizer.

The pipeline of one turn also remembers which source character each spoken character stands for, so
that what was heard can be given in the caller's own text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from realtime_tts.text.directions import (
    AS_THE_SESSION,
    Break,
    Change,
    Item,
    Seam,
    Voicing,
)
from realtime_tts.text.filter import SpeechTextFilter
from realtime_tts.text.incremental import IncrementalTokenizer
from realtime_tts.text.languages import Language, language_for
from realtime_tts.text.lexicon import Lexicon
from realtime_tts.text.line_joiner import LineJoiner
from realtime_tts.text.markdown import MarkdownReader
from realtime_tts.text.markup import PauseReader
from realtime_tts.text.normalizer import SpeechNormalizer
from realtime_tts.text.sanitizer import Sanitizer
from realtime_tts.text.scripts import ScriptGuard
from realtime_tts.text.spans import Piece, PieceMap, without_first
from realtime_tts.text.tokenizer import Qwen2Tokenizer
from realtime_tts.text.unspoken import UnspokenText


@dataclass(slots=True)
class TextSegment:
    """Text that is spoken as one utterance: between two pauses, or two commits."""

    pause: float
    """Seconds of silence before the segment; 0 behind a commit."""
    start: int
    """The index in `TextPipeline.spoken` at which the segment begins."""
    ids: list[int] = field(default_factory=list)
    """Ids that became certain and were not taken yet; whoever takes ids removes them."""
    sizes: list[int] = field(default_factory=list)
    """Bytes of each of the segment's ids that became certain."""
    has_speech: bool = False
    voicing: Voicing = AS_THE_SESSION
    """How the segment must be spoken."""
    closed: bool = False
    """Whether no more ids will come."""
    cut: int | None = None
    """Characters released in all when a commit closed the segment; None if the text itself did."""


class TextPipeline:
    """The text of one turn. `now` is in seconds on the caller's clock and never goes back.

    Every method that takes text or time returns the ids that it made certain. However the text is
    cut, the ids joined are the same, unless the filter had to end a hold (see `SpeechTextFilter`,
    `SpeechNormalizer`) or `flush` cut the text. The same ids are in `segments`, split at pauses and
    where another voicing begins (`directions.py`); each of them begins afresh.

    `paced`: text waits in `unspoken` until `release`, and a `flush` is a commit, which splits the
    text like a pause of no time. `language`: the one for numbers; None leaves them as they are.
    `languages`: those that the voice speaks; text in scripts of others is left out. `able`: returns
    what can be done of a voicing; by default, nothing. `language_of`: returns the language for
    numbers in a voicing.
    """

    def __init__(
        self,
        tokenizer: Qwen2Tokenizer,
        *,
        filtered: bool = True,
        paced: bool = False,
        language: Language | None = None,
        lexicon: Lexicon | None = None,
        languages: Iterable[str] = (),
        able: Callable[[Voicing], Voicing] = lambda voicing: AS_THE_SESSION,
        language_of: Callable[[Voicing], Language | None] | None = None,
    ) -> None:
        self._sanitizer = Sanitizer()
        self._filter = SpeechTextFilter(MarkdownReader if filtered else PauseReader)
        self._normalizer = SpeechNormalizer(language, lexicon, language_of)
        self._able = able
        self._voicing = AS_THE_SESSION  # of the last text that left the filter
        self._scripts = ScriptGuard(languages)
        self._one_line = filtered
        self._lines = LineJoiner()
        self._tokenizer = IncrementalTokenizer(tokenizer)
        self._sizes = tokenizer.sizes
        self._paced = paced
        self.ended = False
        """Whether no more text comes."""
        self.unspoken = UnspokenText()
        self.released = 0
        """Characters that `release` has taken out of `unspoken`; a break counts as one."""
        self.holds: list[int] = []
        """Characters of text fed when `poll` released something that more text could have changed.
        With these, the flushes and the segments' cuts, the same text becomes the same ids again."""
        self.segments = [TextSegment(0.0, 0)]
        self._fed = 0  # characters
        self._deltas: list[str] = []
        self._spoken: list[str] = []
        self._map = PieceMap()  # spoken characters -> sanitized characters
        self.has_speech = False
        """Whether a letter or digit was spoken. Without one at the end, there is nothing to say."""
        self.finished = False
        """Whether no more ids come."""

    @property
    def left_out(self) -> list[str]:
        """The scripts of text that was left out, as the voice cannot speak them."""
        return list(self._scripts.left_out)

    @property
    def markup_left_out(self) -> list[str]:
        """What markup asked for and no checkpoint can do, as messages for the client."""
        return self._filter.warnings

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
        """Characters of `spoken` that have become ids; the rest may still change."""
        return max(0, self._map.length - self._tokenizer.held_characters)

    def feed(self, delta: str, now: float) -> list[int]:
        """Add text. Must not follow `finish`."""
        assert not self.ended, "text after the end of the turn"
        self._deltas.append(delta)
        self._fed += len(delta)
        since = self._filter.held_since(now)  # a second wait behind it must not add up
        pieces = self._filtered(self._sanitizer.feed(delta), now)
        return self._speak(self._normalizer.feed(pieces, now, since), more=True)

    def poll(self, now: float) -> list[int]:
        """Release text that has been held too long; nothing is released before `deadline`."""
        since = self._filter.held_since(now)  # a second wait behind it must not add up
        pieces = self._directed(self._filter.poll(now))
        said = self._normalizer.feed(pieces, now, since) + self._normalizer.poll(now)
        if pieces or said:
            self.holds.append(self._fed)
        return self._speak(said, more=True)

    def deadline(self) -> float | None:
        """Return when to call `poll`; None if nothing waits for time to pass."""
        filtering = self._filter.deadline()
        reading = self._normalizer.deadline()
        return min((due for due in (filtering, reading) if due is not None), default=None)

    def flush(self, now: float) -> list[int]:
        """End a segment: release everything held except an incomplete tag, which waits for its
        rest. Text that follows starts a new one."""
        said = self._rest(now)
        if self._paced:
            begun = self.unspoken.text or self._map.length > self.segments[-1].start
            return self._speak([*said, Break(0.0)] if said or begun else [])
        return self._speak(said) + self._commit(self._tokenizer.flush())

    def finish(self, now: float) -> list[int]:
        """End the turn. Idempotent."""
        ids = [] if self.ended else self._speak(self._rest(now, final=True))
        self.ended = True
        return ids + self.release(0)

    def release(self, characters: int) -> list[int]:
        """Speak the first `characters` of `unspoken`; at the turn's end, add the last ids."""
        self.released += characters
        ids = self._say(self.unspoken.take(characters)) if characters else []
        if self.ended and not self.unspoken.text and not self.finished:
            ids += self._commit(self._tokenizer.flush())
            self.finished = self.segments[-1].closed = True
        return ids

    def commit(self) -> list[int]:
        """End the segment behind the text released; text that follows begins another."""
        self.segments[-1].cut = self.released
        return self._say([Break(0.0)])

    def unspoken_before(self, offset: int) -> int:
        """Count the characters of `unspoken` for text before this offset in `source`."""
        before = self._sanitizer.offsets.before
        return self.unspoken.count_before(lambda start: before(start) < offset)

    def _rest(self, now: float, *, final: bool = False) -> list[Piece | Seam]:
        """Release what the stages before the tokenizer hold."""
        rest = self._sanitizer.flush()
        pieces = self._filtered(rest, now) if rest else []
        pieces += self._directed(self._filter.flush(final=final))
        said = self._normalizer.feed(pieces, now) if pieces else []
        return said + self._normalizer.flush()

    def source_offset(self, spoken_characters: int) -> int:
        """Return the offset in `source` just after the first `spoken_characters` of `spoken`."""
        return self._sanitizer.offsets.before(self._map.source_offset(spoken_characters))

    def source_start(self, index: int) -> int:
        """Return the offset in `source` of character `index` of `spoken`, or the end."""
        start = self._map.source_start(index)
        if start is None and self.unspoken.text:
            start = self.unspoken.start
        return len(self.source) if start is None else self._sanitizer.offsets.before(start)

    def _filtered(self, text: str, now: float) -> list[Item]:
        return self._directed(self._filter.feed(text, now))

    def _directed(self, items: list[Item]) -> list[Item]:
        """Drop voicing changes that have no effect, so that they do not split the speech."""
        if not any(isinstance(item, Change) for item in items):
            return items
        left: list[Item] = []
        for item in items:
            if isinstance(item, Change):
                voicing = self._able(item.voicing)
                if voicing == self._voicing:
                    continue
                self._voicing = voicing
                item = Change(voicing)
            left.append(item)
        return left

    def _speak(self, said: list[Piece | Seam], *, more: bool = False) -> list[int]:
        said = self._scripts.pass_on(said, more=more)
        if not self._paced:
            return self._say(said)
        self.unspoken.add(said)
        return []

    def _say(self, said: list[Piece | Seam]) -> list[int]:
        ids: list[int] = []
        texts: list[str] = []
        for piece in said:
            if isinstance(piece, Seam):
                pause = piece.seconds if isinstance(piece, Break) else 0.0
                end = self._tokenizer.flush if pause else self._tokenizer.cut
                ids += self._feed(texts) + self._commit(end())
                self._begin_segment(pause, piece.voicing if isinstance(piece, Change) else None)
                continue
            for part in self._lines.join(piece) if self._one_line else (piece,):
                texts.append(self._add(part))
        self.has_speech = self.has_speech or self.segments[-1].has_speech
        return ids + self._feed(texts)

    def _add(self, piece: Piece) -> str:
        """Add text to the segment; returns what of it is spoken."""
        segment = self.segments[-1]
        if self._map.length == segment.start:
            # White space would merge into the prompt that a segment begins with.
            piece = without_first(piece, len(piece.text) - len(piece.text.lstrip()))
        if piece.text:
            self._map.add(piece)
            self._spoken.append(piece.text)
            segment.has_speech = segment.has_speech or any(map(str.isalnum, piece.text))
        return piece.text

    def _begin_segment(self, pause: float, voicing: Voicing | None) -> None:
        segment = self.segments[-1]
        self.has_speech = self.has_speech or segment.has_speech
        segment.closed = True
        self._lines = LineJoiner()
        voicing = segment.voicing if voicing is None else voicing
        self.segments.append(TextSegment(pause, self._map.length, voicing=voicing))

    def _feed(self, texts: list[str]) -> list[int]:
        text = "".join(texts)
        texts.clear()
        return self._commit(self._tokenizer.feed(text)) if text else []

    def _commit(self, ids: list[int]) -> list[int]:
        segment = self.segments[-1]
        segment.ids += ids
        segment.sizes += self._sizes(ids)
        return ids


def warm_up(tokenizer: Qwen2Tokenizer, languages: Sequence[str]) -> None:
    """Load and compile, by speaking a sample, what the first text in each of these languages needs:
    in a turn, everybody would wait for it, up to 50 ms for a language."""
    for name in languages:
        pipeline = TextPipeline(tokenizer, language=language_for(name), languages=languages)
        pipeline.feed("Call 3 of them, please.", 0.0)
        pipeline.finish(0.0)
