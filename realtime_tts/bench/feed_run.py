"""Runs feeds, one session each, which speak the same replies; and tables of what was heard.

For feeds without a stall, the client of `sentence_client` gets the same text deltas at the same
times.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from rich.table import Table

from realtime_tts.bench.feeds import Feed, fed
from realtime_tts.bench.heard import DEFINITIONS, FeedResult, Heard, feed_result, judge
from realtime_tts.bench.machine import describe_machine, hardware
from realtime_tts.bench.observation import Observation, Schedule, left
from realtime_tts.bench.result import Spread
from realtime_tts.bench.sentence_client import sentence_client
from realtime_tts.bench.settings import BenchSettings
from realtime_tts.bench.sockets import SocketTarget, speak
from realtime_tts.bench.workload import Counter, Progress


@dataclass(frozen=True, slots=True)
class FeedsResult:
    """The result of a run, with what a reader needs to judge it."""

    began: str
    command: str
    machine: dict[str, str | int]
    server: dict[str, Any]
    settings: dict[str, Any]
    feeds: tuple[FeedResult, ...]

    @property
    def failed(self) -> int:
        """Number of replies of which nothing or not everything was heard."""
        return sum(feed.failed + feed.cut_short for feed in self.feeds)

    def as_dict(self) -> dict[str, Any]:
        """Return the result in plain types, for JSON."""
        return asdict(self) | {"definitions": DEFINITIONS}


async def run_feeds(
    settings: BenchSettings,
    feeds: Sequence[Feed],
    replies: Sequence[str],
    at_once: int,
    progress: Progress,
    command: str,
) -> FeedsResult:
    """Measure the feeds, `at_once` sessions at a time.

    Raises HandshakeRefused, OverloadedError or RequestError if no session can be opened.
    """
    settings = replace(settings, options={**settings.options, "word_times": "on"})
    server = await SocketTarget(settings).describe()
    began = datetime.now(UTC).isoformat(timespec="seconds")
    counter = Counter("feeds", progress, len(feeds))
    free = asyncio.Semaphore(at_once)
    sentences = partial(sentence_client, settings, server["voice"])

    async def measure(feed: Feed) -> FeedResult:
        async with free:
            ours = await _hear(_deltas(settings), feed, replies, settings)
            theirs = [] if feed.stall else await _hear(sentences(), feed, replies, settings)
            counter.one()
            return feed_result(feed, ours, theirs)

    results = await asyncio.gather(*map(measure, feeds))
    shown = {
        "options": settings.options,
        "timing": asdict(settings.timing),
        "seed": settings.seed,
        "at_once": at_once,
    }
    return FeedsResult(began, command, describe_machine(), server, shown, tuple(results))


_Speak = Callable[[Schedule], Awaitable[Observation]]


@contextlib.asynccontextmanager
async def _deltas(settings: BenchSettings) -> AsyncIterator[_Speak]:
    """Connect our own client, which passes deltas on as they come."""
    async with SocketTarget(settings).client() as tts:
        yield partial(speak, tts, keep_sound=True)


async def _hear(
    connected: contextlib.AbstractAsyncContextManager[_Speak],
    feed: Feed,
    replies: Sequence[str],
    settings: BenchSettings,
) -> list[Heard]:
    """Speak the replies that have a place for the stall, each when the one before was heard."""
    heard = []
    async with connected as speak_one:
        for reply in replies:
            if (text := fed(reply, feed, settings)) is not None:
                seen = await speak_one(text.deltas)
                heard.append(judge(reply, text, seen))
                await asyncio.sleep(left(seen))
    return heard


_HEAD = (
    "feed",
    "replies",
    "gaps",
    "gaps in words (server's count)",
    "silence in clauses, s",
    "… though written, s",
    "first sound p50 / p95, ms",
    "known words late, max ms",
    "end against sentences p50 / max, ms",
    "sentences: first sound, ms",
    "sentences: gaps in words",
)


def terminal_table(result: FeedsResult) -> Table:
    """Return the table for the console."""
    table = Table()
    for number, title in enumerate(_HEAD):
        table.add_column(title, justify="right" if number else "left")
    for feed in result.feeds:
        table.add_row(*_cells(feed))
    return table


def markdown_table(result: FeedsResult) -> str:
    """Return the table for documents."""
    rows = [_HEAD, ("---", *["---:"] * (len(_HEAD) - 1)), *map(_cells, result.feeds)]
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([*lines, "", headline(result), "", f"    {result.command}", ""])


def headline(result: FeedsResult) -> str:
    """Return a sentence with model and machine."""
    machine, settings = result.machine, result.settings
    return (
        f"{result.server['model']}, {hardware(machine)}; realtime-tts {machine['realtime_tts']} "
        f"({machine['commit']}); {settings['at_once']} feeds at once; "
        f"seed {settings['seed']}; {result.began}"
    )


def _cells(feed: FeedResult) -> tuple[str, ...]:
    replies = str(feed.turns)
    replies += f", {feed.failed} failed" if feed.failed else ""
    replies += f", {feed.cut_short} cut short" if feed.cut_short else ""
    of_sentences = str(feed.sentence_gaps_in_words) if feed.heard_of_sentences else "–"
    return (
        feed.feed,
        replies,
        str(feed.gaps),
        f"{feed.gaps_in_words} ({feed.held_inside_word})",
        f"{feed.silence_in_clauses_s:.1f}",
        f"{feed.silence_though_written_s:.1f}",
        _two(feed.first_sound_ms, "p95"),
        "–" if feed.known_late_ms is None else f"{feed.known_late_ms.max:.0f}",
        _two(feed.behind_sentences_ms, "max"),
        _two(feed.sentence_first_sound_ms, "p95"),
        of_sentences,
    )


def _two(spread: Spread | None, other: str) -> str:
    return "–" if spread is None else f"{spread.p50:.0f} / {getattr(spread, other):.0f}"
