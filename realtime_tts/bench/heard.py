"""What a listener heard of the replies of a feed: the gaps, where in the text they are, figures.

The listener plays packets as they come. Whether a gap cuts a word is judged from the sound at its
two edges, because the times of words are estimates: speech up to the gap and again directly after
it was cut, wherever the word is assumed to be. A gap between two words that are spoken without a
pause counts as well, because it sounds the same. The demo voice's pauses are 40 dB and more below
its speech, the closures of its consonants (as in "hap-pen") 20 to 35 dB, so that a cut in a closure
is mostly detected, too.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from math import inf
from operator import mul

from realtime_tts.bench.feeds import FedReply, Feed
from realtime_tts.bench.observation import Observation, samples_of
from realtime_tts.bench.result import Spread, spread
from realtime_tts.protocol.messages import SAMPLE_RATE
from tts_scheduler.playback import Playback
from tts_scheduler.report import percentile

_EDGE = round(0.04 * SAMPLE_RATE)
_SPEECH_SHARE = 0.9
"""Quantile of the levels of a turn's sound, in pieces of `_EDGE`, that is the turn's level."""
_QUIETER = 10 ** (-35 / 20)
"""An edge contains speech if it is less than 35 dB below the turn's level."""
_ABOUT = 0.3
"""Seconds by which the time of a word is often wrong."""
_CLAUSE_ENDS = ".,;:!?…—。，！？；："
_CLOSING = "\"'”’)]"


@dataclass(frozen=True, slots=True)
class Gap:
    """A gap in a turn. `at`: seconds of the turn's sound before it; `began`: when it began, on the
    clock of the packets."""

    at: float
    began: float
    seconds: float

    @property
    def ended(self) -> float:
        """When sound came again, on the clock of the packets."""
        return self.began + self.seconds


def find_gaps(packets: Sequence[tuple[float, int]]) -> list[Gap]:
    """Return the gaps of a listener without any buffer, given pairs of (arrival time, samples)."""
    playback, found = Playback(SAMPLE_RATE), []
    for at, samples in packets:
        before = playback.sent_seconds
        if (late := playback.sent(samples, at)) > 0:
            found.append(Gap(before, at - late, late))
    return found


class Sound:
    """The sound of a turn, mono s16le at 24 kHz, and its own level."""

    def __init__(self, pcm: bytes) -> None:
        self._samples = samples_of(pcm)
        levels = [self._level(at) for at in range(0, len(self._samples), _EDGE)]
        self._speech = percentile(levels, _SPEECH_SHARE) * _QUIETER if levels else inf

    def cut_at(self, seconds: float) -> bool:
        """Return whether there is speech on both sides of this position, 40 ms each."""
        at = round(seconds * SAMPLE_RATE)
        return min(self._level(at - _EDGE), self._level(at)) > self._speech

    def _level(self, begin: int) -> float:
        """Return the root mean square of the `_EDGE` samples from `begin` on."""
        part = self._samples[max(begin, 0) : max(begin, 0) + _EDGE]
        return float((sum(map(mul, part, part)) / len(part)) ** 0.5) if part else 0.0


class SpokenWords:
    """The words of a turn, with the white space before them, and when they end in its sound."""

    def __init__(self, words: Sequence[tuple[str, float]]) -> None:
        self._ends = [end for _, end in words]
        self._texts = [text for text, _ in words]
        self._chars = list(accumulate(len(text) for text, _ in words))

    def before(self, seconds: float, *, cut: bool) -> int:
        """Return how many words end before this position.

        A gap that cuts no word is between two words, and is assumed to be at the nearest end of
        one; if a clause ends within 0.3 s, at its end: the times are no better than that.
        """
        if cut:
            return bisect_right(self._ends, seconds)
        away = [abs(seconds - end) for end in (0.0, *self._ends)]
        near = [number for number, far in enumerate(away) if far <= _ABOUT]
        clauses = [number for number in near if self.ends_clause(number)]
        return min(clauses or range(len(away)), key=lambda number: away[number])

    def ends_clause(self, number: int) -> bool:
        """Return whether a speaker may breathe after the first `number` words."""
        if number == 0:
            return True
        return self._texts[number - 1].rstrip().rstrip(_CLOSING).endswith(tuple(_CLAUSE_ENDS))

    def known(self, text: str) -> int:
        """Return how many words are complete in this beginning of the turn's text: others follow
        them, or a mark ends them."""
        number = bisect_right(self._chars, len(text))
        if number and self._chars[number - 1] == len(text) and not self.ends_clause(number):
            return number - 1
        return number

    def written_at(self, number: int, deltas: Sequence[tuple[float, str]]) -> float:
        """Return when word `number` was known to be complete, by `deltas` of (when sent, text)."""
        text = ""
        for at, delta in deltas:
            text += delta
            if self.known(text) > number:
                return at
        return deltas[-1][0]


DEFINITIONS = {
    "cut_short": "replies that were not spoken to their end, by the server's words",
    "gaps": "times at which a listener without any buffer had played all that had come, before the "
    "turn's sound was over",
    "gaps_in_words": "those with speech on both sides, in 40 ms before and behind, by the turn's "
    "own level",
    "held_inside_word": "server: how often speech stood still for want of text and went on from "
    "there, perhaps inside a word",
    "silence_in_clauses_s": "length of all gaps but those at the end of a clause or sentence, by "
    "the server's word times where the sound is silent on a side",
    "silence_though_written_s": "of it, what lies after the next word had been sent",
    "first_sound_ms": "first text delta sent to the first sample above -45 dBFS at the ear",
    "known_late_ms": "feeds with a stall: gaps before the end of the last word that was whole when "
    "the stall began; 0: it was heard as if nothing had stalled",
    "behind_sentences_ms": "end of the reply at the ear, compared with the sentence client; below "
    "0: heard earlier. p95 and max are the worst",
    "sentence_first_sound_ms": "the same as first_sound_ms, of the sentence client",
    "sentence_gaps_in_words": "the same as gaps_in_words, of the sentence client",
    "held_ms": "server: how long a turn's speech waited for text",
}


@dataclass(frozen=True, slots=True)
class Heard:
    """What a listener heard of one reply; times in seconds. `gaps`: triples of position in the
    sound, length, and whether speech was cut. `unspoken`: the end of the text, if the server
    reports that it was not spoken."""

    reply: str
    error: str | None
    reason: str | None = None
    first_sound: float | None = None
    ended: float = 0.0
    gaps: tuple[tuple[float, float, bool], ...] = ()
    in_clauses: float = 0.0
    though_written: float = 0.0
    known_late: float | None = None
    held_ms: float | None = None
    held_inside_word: int = 0
    unspoken: str = ""

    @property
    def cuts(self) -> int:
        """Number of gaps with speech on both sides."""
        return sum(cut for _, _, cut in self.gaps)


def judge(reply: str, text: FedReply, seen: Observation) -> Heard:
    """Return what was heard: the gaps, and where they are in the text, or else in the sound."""
    result = seen.result
    if not seen.complete:
        return Heard(reply, seen.error or "no sound")
    return replace(
        _with_gaps(Heard(reply, None), text, seen),
        reason=result.reason if result else None,
        first_sound=seen.audible_ttfa,
        ended=seen.heard_until - seen.trace.asked_at,
        held_ms=result.held_ms if result else None,
        held_inside_word=result.held_inside_word if result else 0,
        unspoken=reply[sum(len(word.text) for word in seen.words) :] if seen.words else "",
    )


def _with_gaps(heard: Heard, text: FedReply, seen: Observation) -> Heard:
    words = SpokenWords([(word.text, word.end_ms / 1000) for word in seen.words])
    sound, known = Sound(bytes(seen.sound or b"")), words.known(text.known)
    times = accumulate((wait for wait, _ in text.deltas[1:]), initial=seen.trace.asked_at)
    deltas = [(at, delta) for at, (_, delta) in zip(times, text.deltas, strict=True)]
    found, in_clauses, though_written, late = [], 0.0, 0.0, 0.0
    for gap in find_gaps(seen.trace.packets):
        cut = sound.cut_at(gap.at)
        before = words.before(gap.at, cut=cut)
        found.append((round(gap.at, 3), round(gap.seconds, 3), cut))
        if cut or not words.ends_clause(before):
            in_clauses += gap.seconds
            there = max(gap.began, words.written_at(before, deltas))
            though_written += max(0.0, gap.ended - there)
        if before < known:
            late += gap.seconds
    return replace(
        heard,
        gaps=tuple(found),
        in_clauses=in_clauses,
        though_written=though_written,
        known_late=late if text.known else None,
    )


@dataclass(frozen=True, slots=True)
class FeedResult:
    """The figures of one feed; DEFINITIONS says what each means. Sums are over all turns."""

    feed: str
    turns: int
    failed: int
    cut_short: int
    gaps: int
    gaps_in_words: int
    held_inside_word: int
    silence_in_clauses_s: float
    silence_though_written_s: float
    first_sound_ms: Spread | None
    known_late_ms: Spread | None
    behind_sentences_ms: Spread | None
    sentence_first_sound_ms: Spread | None
    sentence_gaps_in_words: int
    held_ms: Spread | None
    heard: tuple[Heard, ...] = field(repr=False)
    heard_of_sentences: tuple[Heard, ...] = field(repr=False)


def feed_result(feed: Feed, ours: Sequence[Heard], theirs: Sequence[Heard]) -> FeedResult:
    """Summarise what was heard; the same replies of both clients are compared."""
    whole = [heard for heard in ours if heard.error is None]
    ends = {heard.reply: heard.ended for heard in theirs if heard.error is None}
    behind = [heard.ended - ends[heard.reply] for heard in whole if heard.reply in ends]
    return FeedResult(
        feed.name,
        len(ours),
        len(ours) - len(whole),
        sum(bool(heard.unspoken.strip()) for heard in whole),
        sum(len(heard.gaps) for heard in whole),
        sum(heard.cuts for heard in whole),
        sum(heard.held_inside_word for heard in whole),
        round(sum(heard.in_clauses for heard in whole), 2),
        round(sum(heard.though_written for heard in whole), 2),
        spread([heard.first_sound for heard in whole], 1000),
        spread([heard.known_late for heard in whole], 1000),
        spread(behind, 1000),
        spread([heard.first_sound for heard in theirs], 1000),
        sum(heard.cuts for heard in theirs),
        spread([heard.held_ms for heard in whole]),
        tuple(ours),
        tuple(theirs),
    )
