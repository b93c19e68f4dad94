"""What virtual sessions do: turns whose text arrives as a language model writes it.

Everything is drawn from one seeded `random.Random`, so that a run can be repeated.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tts_scheduler.plan import Layout


@dataclass(frozen=True, slots=True)
class TextFeed:
    """How a language model writes: deltas of up to `burst` tokens, with occasional stalls.

    `stall_chance` is per delta, `stall_seconds` the mean length of a stall.
    """

    name: str
    tokens_per_second: float
    burst: int = 1
    stall_chance: float = 0.0
    stall_seconds: float = 1.0


FAST = TextFeed("fast", 90.0, burst=3)
STEADY = TextFeed("steady", 40.0, burst=2)
BURSTY = TextFeed("bursty", 50.0, burst=12)
STALLING = TextFeed("stalling", 40.0, burst=2, stall_chance=0.03, stall_seconds=0.8)
SLOW = TextFeed("slow", 10.0)
COMPLETE = TextFeed("complete", 1e9, burst=10_000)
FEEDS = (FAST, STEADY, BURSTY, STALLING, SLOW, COMPLETE)


@dataclass(frozen=True, slots=True)
class Workload:
    """A number of sessions, each speaking turns with pauses between them.

    `turns`: per session. `arrival_seconds`: sessions begin within this time. `pause_seconds`: mean
    time between the end of a turn's playback and the next turn's text. `tokens`: range of the text
    tokens of a turn. `frames_per_token`: range of speech per text token, in frames. `barge_in`:
    share of turns that the listener interrupts. `follow_up`: share of turns that begin while the
    one before is still heard. `reporting`: share of sessions that report what was played, behind a
    client buffer of `client_buffer` seconds.
    """

    sessions: int
    turns: int = 3
    arrival_seconds: float = 5.0
    pause_seconds: float = 1.5
    tokens: tuple[int, int] = (8, 60)
    frames_per_token: tuple[float, float] = (2.5, 4.5)
    barge_in: float = 0.15
    follow_up: float = 0.15
    reporting: float = 0.2
    client_buffer: float = 0.12
    feeds: tuple[TextFeed, ...] = FEEDS


@dataclass(frozen=True, slots=True)
class Script:
    """One turn before it happens. `deltas`: (seconds after the previous one, tokens).

    `frames`: length of its speech. `barge_in_after`: seconds after its first packet, None if the
    listener lets it finish.
    """

    deltas: tuple[tuple[float, int], ...]
    frames: int
    layout: Layout
    barge_in_after: float | None
    pause: float
    follow_up: bool


def write_script(random: Random, workload: Workload) -> Script:
    """Draw one turn at random."""
    feed = random.choice(workload.feeds)
    tokens = random.randint(*workload.tokens)
    frames = max(tokens + 2, round(tokens * random.uniform(*workload.frames_per_token)))
    barged = random.random() < workload.barge_in
    return Script(
        deltas=_deltas(random, feed, tokens),
        frames=frames,
        layout=random.choice((Layout.AUTO, Layout.AUTO, Layout.AUTO, Layout.STREAMING)),
        barge_in_after=random.uniform(0.0, frames * 0.08) if barged else None,
        pause=random.expovariate(1.0 / workload.pause_seconds) if workload.pause_seconds else 0.0,
        follow_up=random.random() < workload.follow_up,
    )


def _deltas(random: Random, feed: TextFeed, tokens: int) -> tuple[tuple[float, int], ...]:
    deltas = []
    wait = 0.0
    while tokens:
        count = min(tokens, random.randint(1, feed.burst) if feed.burst < 10_000 else tokens)
        deltas.append((wait, count))
        tokens -= count
        wait = count / feed.tokens_per_second * random.uniform(0.5, 1.5)
        if random.random() < feed.stall_chance:
            wait += random.expovariate(1.0 / feed.stall_seconds)
    return tuple(deltas)
