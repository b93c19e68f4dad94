"""Speech of a checkpoint as its users get it: a real server, the Python client, real sockets.

Only the pace differs: the server may be as far ahead of the listener as it likes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Literal

import numpy as np

from realtime_tts.client import RealtimeTTS
from realtime_tts.config import LimitsConfig, ServerConfig
from realtime_tts.engine.in_process import InProcessEngine
from realtime_tts.engine.load import engine_loader, load_tokenizer
from realtime_tts.engine.settings import EngineConfig
from realtime_tts.server.run import running
from tools.demo_voice.recognise import Recording
from tts_scheduler import SchedulerConfig

Layout = Literal["full_text", "streaming"]
LAYOUTS: tuple[Layout, ...] = ("full_text", "streaming")
SAMPLE_RATE = 24_000
_LONGEST_DELTA = 6
_AHEAD_SECONDS = 3_600  # nobody listens: no turn waits for a listener


@dataclass(frozen=True, slots=True)
class Request:
    """A text to speak. The seed decides the sampling and where the text is cut into deltas."""

    text: str
    voice: str
    layout: Layout
    seed: int


@dataclass(frozen=True, slots=True, eq=False)
class Spoken:
    """`reason`: how the turn ended; anything but "complete" is a guard's stop or a limit."""

    request: Request
    recording: Recording
    reason: str


@dataclass(frozen=True, slots=True)
class StudentSettings:
    """Where the checkpoint runs; `sessions` speak at the same time.

    `max_frames`: longest turn in frames of 80 ms, None for the checkpoint's own limit.
    """

    checkpoint: Path
    device: str = "cpu"
    threads: int | None = None
    sessions: int = 8
    max_frames: int | None = None

    def engine(self) -> EngineConfig:
        """An engine that lets everybody in at once, though nobody may get speech in real time."""
        return EngineConfig(
            model=str(self.checkpoint),
            device=self.device,
            threads=self.threads,
            max_frames=self.max_frames,
            scheduler=SchedulerConfig(
                slots=self.sessions,
                lead_cap=_AHEAD_SECONDS,
                utilisation=1000.0,
                max_queue=self.sessions,
                queue_timeout=_AHEAD_SECONDS,
            ),
        )

    def server(self) -> ServerConfig:
        limits = LimitsConfig(max_lead_ms=1000 * _AHEAD_SECONDS, outbox_ms=1000 * _AHEAD_SECONDS)
        return ServerConfig(
            port=0,
            lead_seconds=_AHEAD_SECONDS,
            engine_stall_seconds=_AHEAD_SECONDS,
            access_log=False,
            limits=limits,
        )


def deltas(text: str, seed: int) -> Iterator[str]:
    """The text in pieces of one to six characters, cut anywhere, as an impatient model emits it."""
    random, at = Random(seed), 0
    while at < len(text):
        size = random.randint(1, _LONGEST_DELTA)
        yield text[at : at + size]
        at += size


def speak_all(
    settings: StudentSettings,
    requests: Sequence[Request],
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[Spoken]:
    """Speak every request, in this order. Same requests, same samples.

    `progress` is told (done, total). Raises CheckpointError, and whatever ends a turn with an
    error.
    """
    return asyncio.run(_speak_all(settings, requests, progress))


async def _speak_all(
    settings: StudentSettings, requests: Sequence[Request], progress: Callable[[int, int], None]
) -> list[Spoken]:
    engine, waiting = settings.engine(), iter(enumerate(requests))
    spoken: dict[int, Spoken] = {}

    async def session(url: str) -> None:
        async with RealtimeTTS(url, language="english", reply_timeout=_AHEAD_SECONDS) as tts:
            for number, request in waiting:  # shared by all sessions
                spoken[number] = await _speak(tts, request)
                progress(len(spoken), len(requests))

    link = InProcessEngine(engine_loader(engine), engine.scheduler, guards=engine.guards)
    async with running(settings.server(), link, partial(load_tokenizer, engine)) as server:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(settings.sessions, len(requests))):
                group.create_task(session(server.websocket_url))
    return [spoken[number] for number in range(len(requests))]


async def _speak(tts: RealtimeTTS, request: Request) -> Spoken:
    await tts.configure(voice=request.voice, layout=request.layout, seed=request.seed)
    streamed = request.layout == "streaming"
    speech = tts.speak(deltas(request.text, request.seed) if streamed else request.text)
    pcm = b"".join([packet async for packet in speech])
    assert speech.result is not None, "a speech without an error has a result"
    samples = np.frombuffer(pcm, "<i2").astype(np.int16)
    return Spoken(request, Recording(samples, SAMPLE_RATE), speech.result.reason)
