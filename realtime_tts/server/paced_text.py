"""PacedText: the text of a speech on its way to the engine, given on when `Pacing` says so.

What is given to the engine ends with a complete word, so that an utterance can be closed there at
any time. It is closed when its listener is about to hear the last of it, and before it is longer
than the checkpoint can speak.
"""

from __future__ import annotations

from realtime_tts.text.characters import writes_without_spaces
from realtime_tts.text.pipeline import TextPipeline
from realtime_tts.text.tokenizer import Qwen2Tokenizer
from realtime_tts.text.unspoken import End, end_of
from tts_scheduler import Pacing, Reaction

_SAMPLE = 64  # characters whose tokens are counted, to know how many there are in more of them
_WORD = 12  # characters, at most
_WORD_TOKENS = 1.25  # of one, or of a part of one: a few words say little of the pace of all
_USUAL, _USUAL_UNSPACED = 0.28, 0.7  # tokens of a character, with and without spaces for words
_PRESSING = 0.5  # seconds left to hear
_LONG = 0.6  # of the safe length: from here on the next end of a sentence is a good place to close


class PacedText:
    """`most_tokens`: the safe length of an utterance. `whole`: each waits for all its text.
    `closed`: each is closed at once, since it is not spoken before; so it is sentences."""

    def __init__(
        self,
        text: TextPipeline,
        tokenizer: Qwen2Tokenizer,
        pacing: Pacing,
        reaction: Reaction,
        most_tokens: float,
        *,
        whole: bool = False,
        closed: bool = False,
    ) -> None:
        self.due: float | None = None
        """When to `advance` again if nothing happens until then."""
        self.starved = False
        """The utterance on the air has made all the sound it can, and is not closed."""
        self.used = 0
        """Tokens of the utterance on the air with which the engine had made all it could."""
        self.held_inside_word = 0
        """Times that the listener heard all there was, and then more of the same utterance."""
        self._text = text
        self._tokenizer = tokenizer
        self._pacing = pacing
        self._reaction = reaction
        self._most_tokens = most_tokens
        self._whole = whole
        self._closed = closed
        self._characters = self._tokens = 0  # that were given, over all utterances
        self._begun = False  # a clause: what was given ends in the middle of it
        self._given = 0  # tokens of the utterance on the air
        self._asked_at: float | None = None  # text for a row that stood still

    def received(self, text: str, now: float) -> None:
        """The caller's text came."""
        density = self._tokens / self._characters if self._characters else _usual(text)
        tokens = len(text) * density
        part_of_word = len(text) <= _WORD and " " not in text.strip()
        self._pacing.came(min(tokens, _WORD_TOKENS) if part_of_word else tokens, now)

    def resumed(self) -> None:
        """The text is where another server had it."""
        segment = self._text.segments[-1]
        self._given = 0 if segment.closed else len(segment.ids)
        spoken = self._text.spoken[-16:]
        self._begun = bool(self._given) and end_of(spoken) in (End.WORD, None)

    def sounded(self, now: float) -> None:
        """Sound came of the utterance on the air."""
        if self._asked_at is not None:
            self._reaction.note(now - self._asked_at)
            self._asked_at = None

    def advance(self, dry_at: float, now: float) -> None:
        """Give text to the last segment, and close it if it is time.

        `dry_at`: when its listener has heard all that was made.
        """
        segment, given = self._text.segments[-1], self._given
        self.due, self.starved = None, False
        if segment.closed:
            return
        starved = 0 < given == self.used
        count, closes = self._next(dry_at, now)
        if count:
            self._begun = end_of(self._text.unspoken.text[max(0, count - 16) : count]) == End.WORD
            tokens = len(self._text.release(count))
            self._given += tokens
            self._characters, self._tokens = self._characters + count, self._tokens + tokens
        if starved and self._given == given and segment.has_speech and not segment.closed:
            if now >= self._pacing.closes_at(dry_at):
                self._text.release(self._tail())
                closes = True
        if closes and not segment.closed:
            self.commit()
        if segment.closed:
            self._given, self.used, self._begun = 0, 0, False
        else:
            self.starved = 0 < self._given == self.used
            self.due = self._wake(dry_at, now)
        if starved and (segment.closed or self._given > given):
            if dry_at < now + _PRESSING:  # else the engine may well do something else first
                self._asked_at = now
            self.held_inside_word += now > dry_at

    def commit(self) -> None:
        """Close the utterance on the air behind what was given of it."""
        self._text.commit()
        self._given, self.used, self._begun = 0, 0, False

    def _next(self, dry_at: float, now: float) -> tuple[int, bool]:
        """How many characters are to be given on, and whether that is all of the utterance."""
        unspoken = self._text.unspoken
        length, room = len(unspoken.text), max(0.0, self._most_tokens - self._given)
        density = self._density(room)
        whole = unspoken.first(End.BREAK) or (length if self._text.ended else 0)
        wanted = whole or self._wanted(density, dry_at, now)
        if self._whole and not whole:
            wanted = length if length * density > room else 0
        if wanted * density <= room:
            sentence = 0 if whole else unspoken.first(End.SENTENCE)
            is_long = self._given + sentence * density > _LONG * self._most_tokens
            if is_long and 0 < sentence <= wanted:
                return sentence, True
            return wanted, self._closed and wanted > whole
        for end in (End.SENTENCE, End.CLAUSE, End.WORD):
            if found := unspoken.last(end, within=int(room / density)):
                return found, True
        return (0, True) if self._given else (int(room / density), False)

    def _density(self, room: float) -> float:
        """Tokens of a character. Counted where it matters: there is more than surely has room."""
        sample = self._text.unspoken.text[:_SAMPLE]
        if len(self._text.unspoken.text) > _LONG * room:
            return max(0.01, len(self._tokenizer.encode(sample)) / len(sample))
        return _usual(sample)

    def _wanted(self, density: float, dry_at: float, now: float) -> int:
        unspoken = self._text.unspoken
        if now >= self._pacing.end_at() and (tail := self._tail(self._pacing.unit(unspoken.words))):
            return tail
        waiting = unspoken.last(End.WORD) * density
        units = self._pacing.units(unspoken.words, waiting, self._begun, dry_at, now)
        return next((found for unit in units if (found := unspoken.last(End(unit)))), 0)

    def _tail(self, unit: int = End.CLAUSE) -> int:
        """All that waits, if it ends in the mark of such a unit; else 0."""
        text = self._text.unspoken.text
        end = end_of(text) if text and not text[-1].isspace() else None
        return len(text) if end is not None and end >= max(unit, End.CLAUSE) else 0

    def _wake(self, dry_at: float, now: float) -> float | None:
        words = self._text.unspoken.words
        times = [self._pacing.end_at()] if self._tail(self._pacing.unit(words)) else []
        if words:
            times.append(self._pacing.overdue_at(dry_at))
        if self.starved and self._text.segments[-1].has_speech:
            times.append(self._pacing.closes_at(dry_at))
        return min((at for at in times if at > now), default=None)


def _usual(text: str) -> float:
    return _USUAL_UNSPACED if text and writes_without_spaces(text[0]) else _USUAL
