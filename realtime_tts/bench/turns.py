"""Speaks one turn as an agent would, and watches what comes back."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from realtime_tts.bench.observation import SAMPLE_RATE, Observation
from realtime_tts.client import RealtimeTTS, Turn
from realtime_tts.errors import OverloadedError, RealtimeTTSError, TurnError
from tts_scheduler.report import Trace

clock = time.perf_counter

_HEARD_EVERY = 5 * SAMPLE_RATE

Schedule = Sequence[tuple[float, str]]
"""Pairs of (seconds to wait, text delta), in order."""


async def speak(
    tts: RealtimeTTS,
    schedule: Schedule,
    cut_after: float | None = None,
    *,
    paced: bool = True,
    keep_sound: bool = False,
) -> Observation:
    """Send the deltas in their time and collect the packets.

    `cut_after`: interrupt so many seconds after the first packet. Unpaced, what came is reported as
    heard, so that the server never waits for a listener. Errors of the server and of the connection
    do not come out of here: they are part of what was observed.
    """
    seen = Observation(sum(len(delta) for _, delta in schedule), Trace(asked_at=clock()))
    seen.sound = bytearray() if keep_sound else None
    tasks: list[asyncio.Task[None]] = []
    heard = 0
    try:
        turn = await tts.turn()
        tasks.append(asyncio.create_task(_feed(turn, schedule, seen)))
        async for packet in turn:
            seen.packet(packet, clock())
            if cut_after is not None and len(tasks) == 1:
                tasks.append(asyncio.create_task(_cut(turn, cut_after, seen)))
            if not paced and turn.samples_received - heard >= _HEARD_EVERY:
                heard = turn.samples_received
                await turn.played(heard / SAMPLE_RATE * 1000)
        if not paced:  # or the session's next turn would count this one's audio as still unheard
            await turn.played(turn.samples_received / SAMPLE_RATE * 1000)
        seen.result = turn.result
        seen.layout, seen.words = turn.layout, turn.words
        if len(tasks) > 1:
            await tasks[1]
    except RealtimeTTSError as error:
        seen.error = error.server_code if isinstance(error, TurnError) else error.code
        seen.retry_after = error.retry_after if isinstance(error, OverloadedError) else 0.0
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return seen


async def _feed(turn: Turn, schedule: Schedule, seen: Observation) -> None:
    due = clock()
    try:
        for number, (gap, delta) in enumerate(schedule):
            due += gap  # from the plan, not from now: a late delta must not delay all later ones
            if (wait := due - clock()) > 0:
                await asyncio.sleep(wait)
            if number == 0:
                seen.trace.asked_at = clock()
            await turn.send(delta, end=number == len(schedule) - 1)
    except RealtimeTTSError as error:
        turn.abandon(error)  # whoever reads would wait for ever; no effect where it failed already


async def _cut(turn: Turn, after: float, seen: Observation) -> None:
    await asyncio.sleep(after)
    on_air = not turn.over
    asked_at = clock()
    await turn.interrupt(played_ms=after * 1000)
    seen.interrupt_seconds = clock() - asked_at
    if on_air and turn.last_audio_at is not None:
        seen.last_byte_seconds = max(0.0, turn.last_audio_at - asked_at)


def left(seen: Observation) -> float:
    """Seconds until the listener has heard the turn; none if it was cut off or failed."""
    heard = seen.interrupt_seconds is None and seen.error is None
    return max(0.0, seen.heard_until - clock()) if heard else 0.0
