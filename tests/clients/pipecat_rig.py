"""A running Pipecat pipeline around one processor, and what came out of it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

from pipecat.frames.frames import (
    EndFrame,
    ErrorFrame,
    Frame,
    LLMFullResponseEndFrame,
    LLMFullResponseStartFrame,
    LLMTextFrame,
    TTSAudioRawFrame,
    TTSStoppedFrame,
)
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.worker import PipelineParams, PipelineWorker
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor
from pipecat.workers.runner import WorkerRunner

PATIENCE = 60.0


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
    """A running pipeline. `down` and `up`: the frames that came out at either end, in order."""

    def __init__(self, worker: PipelineWorker) -> None:
        self.worker = worker
        self.down: list[Frame] = []
        self.up: list[Frame] = []
        self._changed = asyncio.Event()

    def heard(self, frames: list[Frame], frame: Frame) -> None:
        frames.append(frame)
        self._changed.set()

    async def send(self, *frames: Frame) -> None:
        for frame in frames:
            await self.worker.queue_frame(frame)

    async def until(self, condition: Callable[[], Any]) -> None:
        """Wait until `condition` holds; it is looked at after every frame."""
        async with asyncio.timeout(PATIENCE):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    async def until_stopped(self, count: int = 1) -> None:
        await self.until(lambda: len(self.of(TTSStoppedFrame)) >= count)

    def of(self, kind: type[Frame]) -> list[Any]:
        return [frame for frame in self.down if isinstance(frame, kind)]

    @property
    def errors(self) -> list[ErrorFrame]:
        return [frame for frame in self.up if isinstance(frame, ErrorFrame)]

    def audio(self, context_id: str | None = None) -> bytes:
        """The audio that came out, of one context or of all."""
        frames = self.of(TTSAudioRawFrame)
        return b"".join(
            each.audio for each in frames if context_id is None or each.context_id == context_id
        )

    def contexts(self) -> list[str]:
        """The contexts that had audio, in the order in which they were heard."""
        return list(dict.fromkeys(each.context_id for each in self.of(TTSAudioRawFrame)))


AnyRig = TypeVar("AnyRig", bound=Rig)


def response(*tokens: str) -> list[Frame]:
    """What a language model's service pushes for one response."""
    texts = [LLMTextFrame(token) for token in tokens]
    return [LLMFullResponseStartFrame(), *texts, LLMFullResponseEndFrame()]


def pipeline(service: FrameProcessor, **params: Any) -> AbstractAsyncContextManager[Rig]:
    """The service in a pipeline of its own, started; ended by an EndFrame."""
    return pipeline_with(Rig, service, **params)


@contextlib.asynccontextmanager
async def pipeline_with(
    rig_class: type[AnyRig], service: FrameProcessor, *, traced: bool = False, **params: Any
) -> AsyncIterator[AnyRig]:
    """The same with a rig of another class."""
    hear_up: list[Callable[[Frame], None]] = []
    source = Ear(FrameDirection.UPSTREAM, lambda frame: hear_up[0](frame))
    sink = Ear(FrameDirection.DOWNSTREAM, lambda frame: hear_up[1](frame))
    worker = PipelineWorker(
        Pipeline([source, service, sink]),
        cancel_on_idle_timeout=False,
        enable_rtvi=False,
        enable_tracing=traced,
        params=PipelineParams(**params),
    )
    rig = rig_class(worker)
    hear_up += [lambda frame: rig.heard(rig.up, frame), lambda frame: rig.heard(rig.down, frame)]
    started = asyncio.Event()
    worker.add_event_handler("on_pipeline_started", lambda *_: started.set())
    runner = WorkerRunner(handle_sigint=False)
    await runner.add_workers(worker)
    running = asyncio.create_task(runner.run())
    try:
        async with asyncio.timeout(PATIENCE):
            await started.wait()
        yield rig
        await worker.queue_frame(EndFrame())
        async with asyncio.timeout(PATIENCE):
            await running
    finally:
        if not running.done():
            await worker.cancel()
            await asyncio.wait([running], timeout=PATIENCE)
