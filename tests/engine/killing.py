"""Engine processes that are killed or stopped at random moments while turns are live.

    python -m tests.engine.killing --engine demo --engines 2 --moments 1000

Every turn is compared with the same turn of an engine that nobody disturbed. Prints a JSON object;
the status is 1 if a turn was lost or a sample differs.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import math
import os
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from random import Random

from realtime_tts.engine.data_parallel import DataParallelEngines
from realtime_tts.engine.failover import Failover
from realtime_tts.engine.in_process import InProcessEngine
from realtime_tts.engine.interface import UtteranceSpec
from realtime_tts.engine.link import (
    Append,
    Audio,
    Command,
    Ended,
    EngineLink,
    Event,
    Finish,
    Open,
    Refused,
    Waits,
)
from realtime_tts.engine.multiprocess import MultiprocessEngine, Supervision
from tests.engine.moving import SCHEDULING, Script, loader, spoken
from tests.waiting import until
from tts_scheduler import Playback, SchedulerConfig

WATCHED = Supervision(
    hang_seconds=2.5, first_delay=0.05, longest_delay=0.05, max_restarts=10**6, tick_seconds=0.05
)
LEAD = 1.0
"""Seconds of sound that a listener has before it plays."""
_PACKET = 2_048


@dataclass
class Found:
    """What came of it. `gaps`: times that a listener ran dry; `longest_gap` in seconds."""

    moments: int = 0
    turns: int = 0
    lost: int = 0
    different: int = 0
    moves: int = 0
    gaps: int = 0
    longest_gap: float = 0.0
    seconds: float = 0.0


def texts(random: Random, count: int) -> list[Script]:
    """Turns of three to ten seconds, some of which wait for their text now and then."""
    scripts = []
    for number in range(count):
        ids = [random.randrange(300) for _ in range(random.randrange(12, 30))]
        layout = random.choice(["streaming", "full_text"])
        cut = random.randrange(4, 11)
        pieces = [ids] if layout == "full_text" else [ids[:cut], ids[cut:]]
        trim = random.choice(["on", "off"])
        spec = UtteranceSpec(seed=random.randrange(2**40), layout=layout, trim_silence=trim)
        scripts.append(Script(f"wanted-{number}", pieces, spec))
    return scripts


@dataclass
class Listener:
    """Someone who plays a turn once a second of it is there."""

    script: Script
    wanted: Script
    left: list[Sequence[int]] = field(default_factory=list)
    heard: int = 0
    heard_at: float = 0.0
    longest_gap: float = 0.0
    playback: Playback | None = None

    def take(self, event: Event, now: float) -> None:
        self.script.events.append(event)
        self.heard_at = now
        if not isinstance(event, Audio):
            return
        samples = len(event.pcm) // 2
        self.heard += samples
        if self.playback is None and self.heard >= LEAD * 24_000:
            self.playback, samples = Playback(packet_samples=_PACKET), self.heard
        if self.playback is not None:
            self.longest_gap = max(self.longest_gap, self.playback.feed(samples, now))


class Talk:
    """`live` turns at any time, until it is told to end."""

    def __init__(self, link: EngineLink, wanted: Sequence[Script], random: Random) -> None:
        self.found = Found()
        self.listeners: dict[str, Listener] = {}
        self.ending = False
        self._link, self._wanted, self._random, self._begun = link, wanted, random, 0

    def begin(self) -> None:
        if self.ending:
            return
        wanted = self._random.choice(self._wanted)
        self._begun += 1
        script = Script(f"turn-{self._begun}", wanted.pieces, wanted.spec)
        one = self.listeners[script.id] = Listener(script, wanted, list(script.pieces[1:]))
        self._link.submit(
            Open(script.id, script.spec), *self._piece(script.id, script.pieces[0], one)
        )

    def _piece(self, id: str, piece: Sequence[int], one: Listener) -> list[Command]:
        return [Append(id, list(piece)), *([] if one.left else [Finish(id)])]

    def take(self, events: list[Event]) -> None:
        now = time.monotonic()
        for event in events:
            one = self.listeners[event.id]
            one.take(event, now)
            if isinstance(event, Waits) and one.left:
                self._link.submit(*self._piece(event.id, one.left.pop(0), one))
            elif isinstance(one.script.end, Refused) and len(one.script.events) == 1:
                del self.listeners[event.id]  # a new turn while no engine is there
                asyncio.get_running_loop().call_later(0.1, self.begin)
            elif one.script.end is not None:
                self._note(one)
                del self.listeners[event.id]
                self.begin()

    async def all_heard(self) -> None:
        """Wait until everybody has heard something new, but not for long: some wait for text."""
        now = time.monotonic()
        with contextlib.suppress(TimeoutError):
            await until(lambda: all(one.heard_at > now for one in self.listeners.values()), 5)

    def _note(self, one: Listener) -> None:
        found = self.found
        found.turns += 1
        found.moves += one.script.moves
        if not isinstance(one.script.end, Ended):
            found.lost += 1
            sys.stderr.write(f"lost: {one.script.end}\n")
        elif (one.script.pcm, len(one.script.codes)) != (one.wanted.pcm, len(one.wanted.codes)):
            found.different += 1
        if one.playback is not None and not one.wanted.pieces[1:]:
            found.gaps += one.playback.underruns
            found.longest_gap = max(found.longest_gap, round(one.longest_gap, 3))


async def disturbed(
    kind: str,
    engines: int,
    moments: int,
    live: int,
    seed: int,
    signals: Sequence[int],
    *,
    seconds: float = math.inf,
) -> Found:
    """Send `signals` to engines in turn, at most `moments` of them and none later than after
    `seconds`, while `live` turns are live."""
    random, load = Random(seed), loader(kind)
    wanted = texts(random, 6)
    await spoken(InProcessEngine(load, SCHEDULING), wanted)
    assert all(isinstance(script.end, Ended) for script in wanted), [one.end for one in wanted]
    config = SchedulerConfig(slots=4 * live, max_start_wait=0.01, utilisation=1_000, lead_cap=1.5)
    links = [MultiprocessEngine(load, config, supervision=WATCHED) for _ in range(engines)]
    link = Failover(links[0] if engines == 1 else DataParallelEngines(links), 60.0)
    talk = Talk(link, wanted, random)
    link.start(talk.take)
    begun = time.monotonic()
    try:
        await until(lambda: link.status().ready, 60)
        for _ in range(live):
            talk.begin()
        while talk.found.moments < moments and time.monotonic() - begun < seconds:
            await until(lambda: all(each.status().ready for each in links), 60)
            if random.random() < 0.8:
                await talk.all_heard()
            await asyncio.sleep(random.uniform(0.0, 0.6))
            victim = random.choice(links)
            with contextlib.suppress(ProcessLookupError):
                os.kill(victim.pid or 0, signals[talk.found.moments % len(signals)])
            talk.found.moments += 1
            await until(lambda victim=victim: not victim.status().ready, 60)  # type: ignore[misc]
        talk.ending = True
        await until(lambda: not talk.listeners, 120)
    finally:
        await link.stop()
    talk.found.seconds = round(time.monotonic() - begun, 1)
    return talk.found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=["demo", "fake"], default="demo")
    parser.add_argument("--engines", type=int, default=2)
    parser.add_argument("--moments", type=int, default=1_000)
    parser.add_argument("--live", type=int, default=6)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=math.inf, help="send no signal later")
    parser.add_argument("--signal", choices=["kill", "stop", "both"], default="both")
    arguments = parser.parse_args()
    both = {"kill": [signal.SIGKILL], "stop": [signal.SIGSTOP]}
    signals = both.get(arguments.signal, [signal.SIGKILL, signal.SIGSTOP])
    found = asyncio.run(
        disturbed(
            arguments.engine,
            arguments.engines,
            arguments.moments,
            arguments.live,
            arguments.seed,
            signals,
            seconds=arguments.seconds,
        )
    )
    sys.stdout.write(json.dumps(asdict(found)) + "\n")
    return int(bool(found.lost or found.different))


if __name__ == "__main__":
    sys.exit(main())
