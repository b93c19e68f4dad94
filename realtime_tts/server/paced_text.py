"""PacedText: the text of a speech on its way to the engine, passed on when `Pacing` says so.

Text is passed on up to the end of a word, so that an utterance can be closed there at any time. It
is closed when its listener has almost heard it, and before it is too long for the checkpoint.
"""

from __future__ import annotations

from realtime_tts.text.characters import writes_without_spaces
from realtime_tts.text.pipeline import TextPipeline
from realtime_tts.text.tokenizer import Qwen2Tokenizer
from realtime_tts.text.unspoken import End, end_of
from tts_scheduler import Pacing, Reaction

_SAMPLE = 64  # characters whose tokens are counted to estimate those of a longer text
_WORD = 12  # most characters of a word
_WORD_TOKENS = 1.25  # at most, for a word or a part of one: a few say little of the pace
_USUAL, _USUAL_UNSPACED = 0.28, 0.7  # tokens per character, in scripts with and without spaces
_PRESSING = 0.5  # seconds of sound left
_LONG = 0.6  # share of the safe length after which to close at the next sentence end


class PacedText:
    """Cuts text into utterances for the engine. `most_tokens`: the longest utterance that the
    checkpoint speaks reliably. `whole`: give an utterance only when all its text is known.
    `closed`: close each at once, after a sentence, because it is not spoken before it is closed."""

    def __init__(
        self,
        text: TextPipeline,
        tokenizer: Qwen2Tokenizer,
        pacing: Pacing,
        reaction: Reaction,
        most_tokens: float,
        *,
        whole: bool,
        closed: bool,
    ) -> None:
        self.due: float | None = None
        """When to `advance` again if nothing happens until then; None: never."""
        self.starved = False
        """Whether the utterance on the air has used up its text, and is not closed."""
        self.used = 0
        """Tokens of the utterance on the air that the engine had when it last ran out of text."""
        self.held_inside_word = 0
        """How often a listener heard all sound there was, and then more of the same utterance."""
        self._text = text
        self._tokenizer = tokenizer
        self._pacing = pacing
        self._reaction = reaction
        self._most_tokens = most_tokens
        self._whole = whole
        self._closed = closed
        self._characters = self._tokens = 0  # given so far, over all utterances
        self._begun = False  # whether what was given ends inside a clause
        self._given = 0  # tokens of the utterance on the air
        self._asked_at: float | None = None  # when a starved row got text

    def received(self, text: str, now: float) -> None:
        """Note that text came from the caller."""
        density = self._tokens / self._characters if self._characters else _usual(text)
        tokens = len(text) * density
        part_of_word = len(text) <= _WORD and " " not in text.strip()
        self._pacing.came(min(tokens, _WORD_TOKENS) if part_of_word else tokens, now)

    def resumed(self) -> None:
        """Continue where another server was with the text."""
        segment = self._text.segments[-1]
        self._given = 0 if segment.closed else len(segment.ids)
        spoken = self._text.spoken[-16:]
        self._begun = bool(self._given) and end_of(spoken) in (End.WORD, None)

    def sounded(self, now: float) -> None:
        """Note that the utterance on the air made sound."""
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
            if dry_at < now + _PRESSING:  # else the engine may do something else first
                self._asked_at = now
            self.held_inside_word += now > dry_at

    def commit(self) -> None:
        """Close the utterance on the air after what was given of it."""
        self._text.commit()
        self._given, self.used, self._begun = 0, 0, False

    def _next(self, dry_at: float, now: float) -> tuple[int, bool]:
        """Return how many characters to pass on, and whether the utterance ends with them."""
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
        """Return tokens per character, counted only if the text may not fit the utterance."""
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
        """Return the length of all waiting text if it ends with the mark of such a unit, else 0."""
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
