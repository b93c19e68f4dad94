"""What a listener heard of the replies of a feed, and its figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate

from realtime_tts.bench.feeds import FedReply, Feed
from realtime_tts.bench.gaps import Sound, SpokenWords, find_gaps
from realtime_tts.bench.observation import Observation
from realtime_tts.bench.result import Spread, spread

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
    """What a listener heard of one reply; times in seconds. `gaps`: triples of where in the sound,
    how long, and whether speech was cut. `unspoken`: the end of the text, where the server says
    that it was not spoken."""

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
        """Gaps with speech on both sides."""
        return sum(cut for _, _, cut in self.gaps)


def judge(reply: str, text: FedReply, seen: Observation) -> Heard:
    """Find the gaps, and where in the text they are; without words, where in the sound."""
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
    """Sum up what was heard; the same replies of both clients are compared."""
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
