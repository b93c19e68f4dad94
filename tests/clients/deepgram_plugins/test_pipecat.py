"""Pipecat's own Deepgram services, Aura's and Flux', told nothing but another address."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp
import pytest
from pipecat.frames.frames import (
    EndFrame,
    ErrorFrame,
    Frame,
    InterruptionFrame,
    LLMFullResponseEndFrame,
    LLMFullResponseStartFrame,
    LLMTextFrame,
    TTSAudioRawFrame,
    TTSStoppedFrame,
    TTSUpdateSettingsFrame,
)
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.worker import PipelineParams, PipelineWorker
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor
from pipecat.services.deepgram.flux.tts import DeepgramFluxTTSService
from pipecat.services.deepgram.tts import DeepgramHttpTTSService, DeepgramTTSService
from pipecat.workers.runner import WorkerRunner
from serving import Server

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


def aura(server: Server, api_key: str | None = None, **settings: Any) -> DeepgramTTSService:
    asked = DeepgramTTSService.Settings(**{"voice": "aura-2-ava-en"} | settings)
    key = api_key or server.api_key or "none"
    return DeepgramTTSService(api_key=key, base_url=server.websocket_url, settings=asked)


def flux(server: Server, api_key: str | None = None, **settings: Any) -> DeepgramFluxTTSService:
    asked = DeepgramFluxTTSService.Settings(**{"voice": "flux-ava-en"} | settings)
    key = api_key or server.api_key or "none"
    url = f"{server.websocket_url}/v2/speak"
    return DeepgramFluxTTSService(api_key=key, url=url, settings=asked, tag=["a", "b"])


both = pytest.mark.parametrize("service", [aura, flux])


def is_speech(seconds: float, text: str = SENTENCES) -> bool:
    return 0.03 * len(text) < seconds < 0.2 * len(text)


@both
async def test_three_turns(server: Server, service: Any) -> None:
    async with pipeline(service(server)) as rig:
        for turn in range(1, 4):
            await rig.send(*response(*DELTAS))
            await rig.until(lambda turn=turn: len(rig.of(TTSStoppedFrame)) == turn)
            assert is_speech(rig.seconds / turn)
        assert not rig.of(ErrorFrame)
        contexts = {frame.context_id for frame in rig.of(TTSAudioRawFrame)}
        assert len(contexts) == 3
    await asyncio.to_thread(server.until, "tts_open_turns", 0)


@both
async def test_a_barge_in_and_the_next_turn(server: Server, service: Any) -> None:
    interrupted = server.value('tts_turns_total{reason="interrupted"}')
    async with pipeline(service(server)) as rig:
        await rig.send(*response(LONG))
        await rig.until(lambda: rig.of(TTSAudioRawFrame))
        await rig.send(InterruptionFrame())
        await asyncio.to_thread(
            server.until, 'tts_turns_total{reason="interrupted"}', interrupted + 1
        )
        before = len(rig.of(TTSStoppedFrame))
        await rig.send(*response(*DELTAS))
        await rig.until(lambda: len(rig.of(TTSStoppedFrame)) > before)
        last = rig.of(TTSAudioRawFrame)[-1].context_id
        heard = [frame for frame in rig.of(TTSAudioRawFrame) if frame.context_id == last]
        assert is_speech(sum(len(frame.audio) for frame in heard) / 2 / RATE)
        assert not rig.of(ErrorFrame)


@both
async def test_turns_of_nothing_to_speak_do_not_end_the_service(
    server: Server, service: Any
) -> None:
    """After three turns without sound the framework would give the service up."""
    async with pipeline(service(server)) as rig:
        for turn in range(1, 6):
            await rig.send(*response("…"))
            await rig.until(lambda turn=turn: len(rig.of(TTSStoppedFrame)) >= turn)
        await rig.send(*response(*DELTAS))
        await rig.until(lambda: is_speech(rig.seconds))
        assert not rig.of(ErrorFrame)


async def test_over_http(server: Server) -> None:
    async with aiohttp.ClientSession() as session:
        speaker = DeepgramHttpTTSService(
            api_key="none", base_url=server.url, aiohttp_session=session,
            settings=DeepgramHttpTTSService.Settings(voice="ava"),
        )  # fmt: skip
        async with pipeline(speaker) as rig:
            await rig.send(*response(*DELTAS))
            await rig.until(lambda: rig.of(TTSStoppedFrame) and is_speech(rig.seconds))
            assert not rig.of(ErrorFrame)


@both
async def test_the_key_is_checked(keyed_server: Server, service: Any) -> None:
    async with pipeline(service(keyed_server)) as rig:
        await rig.send(*response(*DELTAS))
        await rig.until(lambda: rig.of(TTSStoppedFrame))
        assert is_speech(rig.seconds)
    async with pipeline(service(keyed_server, api_key="wrong")) as rig:
        await rig.until(lambda: rig.of(ErrorFrame))
        assert "401" in rig.of(ErrorFrame)[0].error


@both
@pytest.mark.parametrize("wrong", [{"voice": "nobody"}, {"speed": 1.2}])
async def test_what_cannot_be_had_is_told(
    server: Server, service: Any, wrong: dict[str, Any]
) -> None:
    async with pipeline(service(server, **wrong)) as rig:
        await rig.until(lambda: rig.of(ErrorFrame))
        told = rig.of(ErrorFrame)[0].error
        assert "HTTP 400" in told and ("ava" in told or "speed" in told)


async def test_a_speed_that_is_set_later_is_told_and_speech_goes_on(server: Server) -> None:
    async with pipeline(flux(server)) as rig:
        delta = DeepgramFluxTTSService.Settings(speed=1.2)
        await rig.send(TTSUpdateSettingsFrame(delta=delta))
        await rig.until(lambda: rig.of(ErrorFrame))
        assert "SPEED_NOT_SUPPORTED" in rig.of(ErrorFrame)[0].error
        await rig.send(*response(*DELTAS))
        await rig.until(lambda: rig.of(TTSStoppedFrame))
        assert is_speech(rig.seconds)
