"""Replies that are written slowly, or with a stall in them. Pure: nothing waits here."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from random import Random

from realtime_tts.bench.deltas import schedule
from realtime_tts.bench.settings import BenchSettings

REPLIES = (
    "Sure, let me look that up for you.",
    "Let me check that for you. I found three flights that leave before noon.",
    "The library closes at six today, but the reading room stays open until eight.",
    "Your appointment is on Tuesday, November 17, at 9:30. Please bring your insurance card and "
    "come ten minutes early.",
    "That card was declined. It ends in 4242, and it expired in June. Would you like to try "
    "another one, or pay when you pick it up?",
)
TWO_SENTENCES = (
    REPLIES[1],
    "I have moved the meeting to Thursday at ten. Everybody has been told about it.",
    "The library closes at six today, but the reading room stays open until eight. Would you like "
    "to reserve a seat?",
    "Your parcel left our warehouse in Leipzig this morning and should reach you by the day after "
    "tomorrow. I can send you a message when it is on its way.",
    "If you cancel before the end of the month you get the whole amount back, and after that it is "
    "half of it until the course begins. Shall I cancel it for you?",
)
"""Replies of two sentences, with first sentences of 6, 9, 14, 18 and 27 words."""
_SENTENCE_END = re.compile(r"[.!?](?=\s)")
_WORD = re.compile(r"[^\W\d_]+")
_OPEN_END = re.compile(r"(?<=\w)(?= \w)")  # between two words of a clause


@dataclass(frozen=True, slots=True)
class Feed:
    """How a reply is written. `stall`: "" for none, or where it stalls for `seconds`: after a
    `sentence`, between two words of a `clause`, or in a `word`."""

    tokens_per_second: float = 60.0
    stall: str = ""
    seconds: float = 0.0

    @property
    def name(self) -> str:
        """The feed's name in tables."""
        place = {"sentence": "after a sentence", "clause": "mid-clause", "word": "mid-word"}
        if self.stall:
            return f"{self.seconds:g} s {place[self.stall]}"
        return f"{self.tokens_per_second:g} tokens/s"


PACES = tuple(Feed(pace) for pace in (60.0, 30.0, 15.0, 10.0, 5.0, 3.0))
STALLS = tuple(
    Feed(60.0, where, seconds)
    for where in ("sentence", "clause", "word")
    for seconds in (1.0, 4.0, 15.0)
)
FEEDS = {
    "all": ((*PACES, *STALLS), REPLIES),
    "quick": ((PACES[0], PACES[3], PACES[5], *STALLS[1::3]), (REPLIES[1], REPLIES[3])),
    "two-sentences": (PACES[1:3], TWO_SENTENCES),
}
"""The values of `--feeds`: feeds, and the replies that each of them speaks."""


@dataclass(frozen=True, slots=True)
class FedReply:
    """A reply as a feed writes it. `deltas`: pairs of (seconds to wait, text). `known`: the text
    that comes before the stall."""

    deltas: list[tuple[float, str]]
    known: str


def fed(reply: str, feed: Feed, settings: BenchSettings) -> FedReply | None:
    """Return the reply as the feed writes it; None if it has no place for the stall."""
    random = Random(f"{settings.seed}:{feed.name}:{reply}")
    timing = replace(settings.timing, tokens_per_second=feed.tokens_per_second)
    if not feed.stall:
        return FedReply(schedule(reply, timing, random), "")
    cut = stall_place(reply, feed.stall)
    if cut is None:
        return None
    (_, first), *others = schedule(reply[cut:], timing, random)
    known = schedule(reply[:cut], timing, random)
    return FedReply([*known, (feed.seconds, first), *others], reply[:cut])


def stall_place(reply: str, where: str) -> int | None:
    """Return the index of the stall in the reply: after the first sentence, or in the last one:
    between words at its middle, or in its longest word (the last such). None if there is no such
    place."""
    ends = [match.end() for match in _SENTENCE_END.finditer(reply)]
    if where == "sentence":
        return ends[0] if ends else None
    begin = ends[-1] if ends else 0
    if where == "clause":
        middle = (begin + len(reply)) / 2
        places = [match.start() for match in _OPEN_END.finditer(reply, begin)]
        return min(places, key=lambda place: abs(place - middle), default=None)
    longest = max(_WORD.finditer(reply, begin), key=lambda match: (len(match[0]), match.start()))
    return (longest.start() + longest.end()) // 2
