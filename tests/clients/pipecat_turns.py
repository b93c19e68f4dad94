"""A running Pipecat pipeline around somebody's speech service, and a turn to send through it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

from pipecat.frames.frames import (
    EndFrame,
    Frame,
    LLMFullResponseEndFrame,
    LLMFullResponseStartFrame,
    LLMTextFrame,
    TTSAudioRawFrame,
    TTSTextFrame,
)
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.worker import PipelineParams, PipelineWorker
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor
from pipecat.workers.runner import WorkerRunner

PATIENCE = 60.0
RATE = 24_000
SENTENCES = "Your table is free. Come at eight, and bring your friends."
DELTAS = ("Your ta", "ble is fr", "ee. Come at e", "ight, and bring your fri", "ends.")
LONG = "The museum is open until six. " * 12


class Ear(FrameProcessor):
    """Notes every frame that passes in one direction."""

    def __init__(self, direction: FrameDirection, passed: Callable[[Frame], None]) -> None:
        super().__init__(enable_direct_mode=True)
        self._direction, self._passed = direction, passed

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        if direction is self._direction:
            self._passed(frame)
        await self.push_frame(frame, direction)


class Rig:
    """A running pipeline around one service, and what came out of it."""

    def __init__(self, service: FrameProcessor) -> None:
        self.frames: list[Frame] = []
        self._changed = asyncio.Event()
        ears = [Ear(direction, self._heard) for direction in FrameDirection]
        up = next(ear for ear in ears if ear._direction is FrameDirection.UPSTREAM)
        down = next(ear for ear in ears if ear._direction is FrameDirection.DOWNSTREAM)
        self.worker = PipelineWorker(
            Pipeline([up, service, down]), cancel_on_idle_timeout=False, enable_rtvi=False,
            params=PipelineParams(audio_out_sample_rate=RATE),
        )  # fmt: skip

    def _heard(self, frame: Frame) -> None:
        self.frames.append(frame)
        self._changed.set()

    async def send(self, *frames: Frame) -> None:
        for frame in frames:
            await self.worker.queue_frame(frame)

    async def until(self, condition: Callable[[], Any]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    def of(self, kind: type[Frame]) -> list[Any]:
        return [frame for frame in self.frames if isinstance(frame, kind)]

    @property
    def seconds(self) -> float:
        return sum(len(frame.audio) for frame in self.of(TTSAudioRawFrame)) / 2 / RATE

    @property
    def seconds_of_the_last(self) -> float:
        """Of the context that was heard last."""
        heard = self.of(TTSAudioRawFrame)
        audio = [frame.audio for frame in heard if frame.context_id == heard[-1].context_id]
        return sum(map(len, audio)) / 2 / RATE

    @property
    def words(self) -> list[str]:
        return " ".join(frame.text for frame in self.of(TTSTextFrame)).split()


@contextlib.asynccontextmanager
async def pipeline(service: FrameProcessor) -> AsyncIterator[Rig]:
    rig = Rig(service)
    started = asyncio.Event()
    rig.worker.add_event_handler("on_pipeline_started", lambda *_: started.set())
    runner = WorkerRunner(handle_sigint=False)
    await runner.add_workers(rig.worker)
    running = asyncio.create_task(runner.run())
    try:
        async with asyncio.timeout(PATIENCE):
            await started.wait()
        yield rig
        await rig.send(EndFrame())
        async with asyncio.timeout(PATIENCE):
            await running
    finally:
        if not running.done():
            await rig.worker.cancel()
            await asyncio.wait([running], timeout=PATIENCE)


def response(*deltas: str) -> list[Frame]:
    texts = [LLMTextFrame(delta) for delta in deltas]
    return [LLMFullResponseStartFrame(), *texts, LLMFullResponseEndFrame()]


def is_speech(seconds: float, text: str = SENTENCES) -> bool:
    return 0.03 * len(text) < seconds < 0.2 * len(text)
