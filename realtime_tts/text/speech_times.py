"""When each word is spoken, worked out while the speech is being made.

Some models report which token of its text each frame of audio speaks (`token_times.py`): a word
ends where the next one begins, or falls silent before it. Otherwise the times are an estimate, by
the rule of `spoken.py`: every spoken character has an expected duration by its script. While more
speech may come, as much text counts as spoken as the seconds usually hold at the voice's pace; once
the speech of a part is complete, its text is spread over it. Words are returned in order, once, and
never beyond the audio that is asked about: they are squeezed or wait where the first guess turns
out wrong.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from math import inf
from typing import NamedTuple

from realtime_tts.text.pipeline import TextPipeline, TextSegment
from realtime_tts.text.spoken import (
    ROUNDING,
    SpokenPart,
    SpokenSplit,
    expected_durations,
    may_end_word,
    source_cut,
    split_at,
    split_spoken,
)
from realtime_tts.text.token_times import FRAME_SECONDS, TokenTimes

_SHORTEST_PAUSE = 0.12
"""Seconds of silence that are a pause: a plosive takes less."""

_LOOK = 500
"""Characters that are looked at together: their words take 1 ms, Chinese ones 2.5 ms."""


class SpokenSpan(NamedTuple):
    """Text of the caller, spoken from `start` to `end`, in seconds of the speech."""

    text: str
    start: float
    end: float

    @property
    def exact(self) -> bool:
        """Whether the model reported the time, without white space; if not, it is an estimate."""
        return False

    def later(self, seconds: float) -> SpokenSpan:
        """Return the span, moved `seconds` later."""
        return self._replace(start=self.start + seconds, end=self.end + seconds)


class ExactSpan(SpokenSpan):
    """A span whose time the model reported."""

    @property
    def exact(self) -> bool:
        return True


class SpokenText:
    """Aligns the text of one turn with its audio, part by part as pauses cut it. Nothing is
    computed before it is asked for, and of a long text no more than the audio has reached.

    Seconds are those of the turn's audio. `language` ("Japanese") refines durations; `pace`:
    seconds of audio per expected second, for speech that is not complete, at a speed of 1.
    """

    def __init__(
        self, pipeline: TextPipeline, language: str | None = None, pace: float = 1.0
    ) -> None:
        self._pipeline = pipeline
        self._language = language
        self._pace = pace
        self.parts = [SpokenPart(0, 0.0, 0.0)]  # one for each segment begun
        self._part = 0  # index of the one whose words are next
        self._before = 0.0  # seconds of audio before that part
        self._count = 0  # spoken characters that `take` returned
        self._ends = [0.0]  # expected seconds there, and behind each later character looked at
        self._whole: float | None = None  # expected seconds of the part, when its end is known
        self.told = 0  # characters of the caller's text that `take` returned
        self._at = 0.0  # where the last word ended, in seconds of audio
        self._ended = False  # no more speech comes, though perhaps not all was spoken
        self._times = [TokenTimes(pipeline.segments[0].sizes)]  # one for each part
        self._byte = 0  # bytes of the part's text that `take` returned
        self.exact = False
        """Whether the model reports which word it speaks."""

    def begin(self, segment: TextSegment, speed: float = 1.0) -> None:
        """Begin this segment, after its pause: the speech so far is complete."""
        self.parts.append(SpokenPart(segment.start, segment.pause, 0.0, speed))
        self._times.append(TokenTimes(segment.sizes))

    def play_at(self, speed: float) -> None:
        """Set the speed of the last part, of which no speech was made yet."""
        self.parts[-1] = self.parts[-1]._replace(speed=speed)

    def made(self, seconds: float, tokens: Sequence[int] = (), silent: float = 0.0) -> None:
        """Add `seconds` of speech; the last `silent` seconds of all speech cannot be heard. Both as
        they are played.

        `tokens`: which tokens its frames speak, where the model reports it. The last one ends with
        the speech, and of the first some may have been left out.
        """
        part = self.parts[-1]
        before, made = part.generated, part.generated + seconds
        self.parts[-1] = part._replace(generated=made)
        times, frame = self._times[-1], FRAME_SECONDS / part.speed
        for index, token in enumerate(tokens):
            times.frame(token, max(before, made - (len(tokens) - index) * frame))
        if tokens:
            self.exact = True
        if silent > _SHORTEST_PAUSE / part.speed:
            times.silent_from(made - silent)

    def measured(self) -> tuple[float, float]:
        """Return the expected and the true seconds of the last part, at a speed of 1, when all its
        speech was made."""
        part, segments = self.parts[-1], self._pipeline.segments
        end = segments[len(self.parts)].start if len(self.parts) < len(segments) else None
        text = self._pipeline.spoken[part.start : end]
        return sum(expected_durations(text, self._language)), part.generated * part.speed

    def all_spoken(self) -> bool:
        """Return whether all words so far were spoken, as far as the model reports it."""
        spoken, ends = self._pipeline.spoken, [part.start for part in self.parts[1:]]
        ends.append(self._pipeline.fed_characters)
        return all(
            times.spoke(spoken[part.start : end])
            for part, end, times in zip(self.parts, ends, self._times, strict=True)
        )

    def split(self, played: float, generated: float, complete: bool) -> SpokenSplit:
        """Split the caller's text where its listener stopped: see `split_spoken`."""
        if self.exact and 0 < played and not (complete and played >= generated):
            return split_at(self._pipeline, self._ended_by(played))
        return split_spoken(
            self._pipeline,
            played,
            generated,
            complete=complete,
            language=self._language,
            parts=self.parts if len(self.parts) > 1 else (),
            pace=self._pace / self.parts[-1].speed,
        )

    def take(
        self, played: float, in_all: float | None = None, *, ended: bool = False
    ) -> list[SpokenSpan]:
        """Return the words spoken by `played` seconds that were not returned yet; of many, the next
        ones. Call it again until it returns none.

        Each is the caller's text from where the one before ends: with the white space before it,
        and with marks that are not spoken. Where a script writes no spaces, a character counts as a
        word. Joined they are the text so far, and all of it when all speech is played. `in_all`:
        seconds of the audio of all the text, if known. `ended`: no more speech comes, and no word
        grows; without `in_all` perhaps not all text was spoken.
        """
        self._ended, parts = ended, self.parts
        words: list[SpokenSpan] = []
        while True:
            part = parts[self._part]
            begin = self._before + part.pause
            if self._part + 1 == len(parts):
                return words + self._due(played, begin, in_all, self._known(in_all), True)
            stop, end = begin + part.generated, parts[self._part + 1].start
            played = stop if abs(stop - played) < ROUNDING else played
            due = self._due(played, begin, stop, end, False)
            words += due
            if played < stop or (due and self._count < end):
                return words
            self._part += 1
            self._count, self._before = end, stop
            self._ends, self._whole, self._byte = [0.0], None, 0

    def _known(self, in_all: float | None) -> int:
        """Return the end of the last part's text, as far as the model was given it."""
        if in_all is not None:
            return len(self._pipeline.spoken)
        fed, segments = self._pipeline.fed_characters, self._pipeline.segments
        return min(fed, segments[self._part + 1].start) if self._part + 1 < len(segments) else fed

    def _due(
        self, played: float, begin: float, stop: float | None, end: int, last: bool
    ) -> list[SpokenSpan]:
        """Return words of spoken[:end], spoken from `begin` to `stop`; None: not known yet."""
        over = stop is not None and played >= stop
        if not over and played <= max(begin, self._at):
            return []
        if self.exact:
            return self._due_exactly(played, begin, stop, end, last)
        rate = self.parts[self._part].speed / self._pace  # expected seconds in a second of audio
        if stop is not None and stop > begin:
            rate = self._expected(end) / (stop - begin)
        heard = inf if over else (played - begin) * rate
        count = bound = self._count
        marks: list[tuple[int, int]] = []
        while not marks:
            bound = self._bound(bound, end)
            self._look(heard, bound)
            count = self._heard(heard, bound, end, stop is not None)
            no_more = over or (stop is None and self._ended and self._pipeline.finished)
            marks = self._marks(count, to_the_end=no_more and last and count == end)
            if not marks and (count < bound or bound == end):
                return []
        at_end, count = count == end, marks[-1][0]
        ends = [self._ends[at - self._count] for at in (self._count, *(mark for mark, _ in marks))]
        reached = stop if over and stop is not None else played
        # A part of only pauses begins where all ends: perhaps by a rounding error behind it.
        first = max(min(begin, reached), self._at)
        opens, closes = first, reached
        if rate > 0:
            opens = max(first, begin + ends[0] / rate)
            closes = reached if over and at_end else min(begin + ends[-1] / rate, reached)
        if closes <= opens:  # the speech is faster than was estimated
            opens, closes = first, max(first, reached)
        words = self._spread(marks, ends, opens, closes)
        del self._ends[: count - self._count]
        self._count, self.told, self._at = count, marks[-1][1], closes
        return words

    def _due_exactly(
        self, played: float, begin: float, stop: float | None, end: int, last: bool
    ) -> list[SpokenSpan]:
        """Return words whose ends the model reported, and which were played."""
        over = stop is not None and played >= stop
        ended = over or (stop is None and self._ended)
        limit, tokens = begin + self.parts[self._part].generated, self._times[self._part]
        times: dict[int, tuple[int, float, float]] = {}  # by the end of each spoken word
        count, opens = self._count, self._at
        for word in tokens.words(self._pipeline.spoken, self._count, self._byte, end):
            if word.end is None and not (over or (ended and word.start is not None)):
                break
            opens = max(opens, limit if word.start is None else begin + word.start)
            closes = max(opens, limit if word.end is None else begin + word.end)
            if closes > played + ROUNDING:
                break
            count, times[word.stop] = word.stop, (word.byte, opens, closes)
            opens = closes
            if count - self._count >= _LOOK:
                break
        no_more = over or (ended and self._pipeline.finished)
        marks = self._marks(count, to_the_end=no_more and last and count == end)
        words: list[SpokenSpan] = []
        for at, cut in marks:
            spoken = [times[each] for each in times if self._count < each <= at]
            self._byte = spoken[-1][0] if spoken else self._byte
            start, self._at = (spoken[0][1], spoken[-1][2]) if spoken else (played, played)
            words.append(ExactSpan(self._pipeline.source[self.told : cut], start, self._at))
            self._count, self.told = at, cut
        return words

    def _ended_by(self, played: float) -> int:
        """Return how many characters belong to words that ended by `played` seconds."""
        begin, fed = 0.0, self._pipeline.fed_characters
        for index, part in enumerate(self.parts):
            begin += part.pause
            last = index + 1 == len(self.parts)
            end = fed if last else self.parts[index + 1].start
            if not last and played >= begin + part.generated - ROUNDING:
                begin += part.generated
                continue
            count = part.start
            for word in self._times[index].words(self._pipeline.spoken, count, 0, end):
                if word.end is None or begin + word.end > played + ROUNDING:
                    break
                count = word.stop
            return count
        return fed

    def _expected(self, end: int) -> float:
        """Return the expected seconds of the part, whose text ends at `end` for good."""
        if self._whole is None:
            rest = (expected_durations(text, self._language) for text in self._ahead(end))
            self._whole = self._ends[-1] + sum(map(sum, rest))
        return self._whole

    def _bound(self, start: int, end: int) -> int:
        """Decide where one call stops: some characters on, behind a word if one ends soon."""
        near, far = min(start + _LOOK, end), min(start + 2 * _LOOK, end)
        spoken = self._pipeline.spoken
        return next((at for at in range(near, far) if may_end_word(spoken, at)), far)

    def _look(self, until: float, end: int) -> None:
        """Add durations up to the text of spoken[:end] that is expected to be spoken after
        `until`."""
        for text in self._ahead(end):
            if self._ends[-1] > until:
                return
            durations = expected_durations(text, self._language)
            self._ends[-1:] = accumulate(durations, initial=self._ends[-1])

    def _ahead(self, end: int) -> Iterator[str]:
        """Yield the text of spoken[:end] that was not looked at yet, piece by piece."""
        spoken = self._pipeline.spoken
        for at in range(self._count + len(self._ends) - 1, end, _LOOK):
            yield spoken[at : min(at + _LOOK, end)]

    def _heard(self, expected: float, bound: int, end: int, complete: bool) -> int:
        """Find where in spoken[:end] `expected` seconds end: at a word's end that cannot move, or
        at `bound`, where a word may be cut."""
        spoken = self._pipeline.spoken
        count = self._count
        if expected > 0:
            count += max(0, bisect_right(self._ends, expected) - 1)
        if expected == inf or count == bound < end:
            return bound
        most = len(spoken) if complete or self._ended else len(spoken) - 1
        while count > self._count and not (count <= most and may_end_word(spoken, count)):
            count -= 1
        return count

    def _marks(self, count: int, to_the_end: bool) -> list[tuple[int, int]]:
        """Find where words end up to `count`: in the spoken text, and in the caller's."""
        marks: list[tuple[int, int]] = []
        cut = self.told
        for at in range(self._count + 1, count + 1):
            if at == count or may_end_word(self._pipeline.spoken, at):
                new = source_cut(self._pipeline, at)
                # Otherwise inside what stands for one word, such as a number, or before it.
                if new > cut and not self._pipeline.source[cut:new].isspace():
                    marks.append((at, new))
                    cut = new
        if to_the_end and (marks or cut < len(self._pipeline.source)):
            marks[-1:] = [(count, len(self._pipeline.source))]
        return marks

    def _spread(
        self, marks: list[tuple[int, int]], ends: list[float], opens: float, closes: float
    ) -> list[SpokenSpan]:
        """Divide the time among the words up to each mark, by what is expected of each."""
        expected = ends[-1] - ends[0]
        times = [
            opens + (closes - opens) * ((end - ends[0]) / expected if expected > 0 else 1.0)
            for end in ends
        ]
        times[0], times[-1] = opens, closes
        cuts = pairwise([self.told, *(cut for _, cut in marks)])
        source = self._pipeline.source
        return [
            SpokenSpan(source[left:right], *time)
            for (left, right), time in zip(cuts, pairwise(times), strict=True)
        ]
