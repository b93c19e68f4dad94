"""A voice agent in Pipecat, with stand-ins for speech recognition, language model and loudspeaker.

    realtime-tts serve                                         # in another terminal
    python examples/pipecat_agent.py "Good day!" "When do you close?"

The user says each line when the agent has answered the one before, or that many seconds into the
answer with --interrupt-after. What the user hears is written to a WAV file in real time. In an
agent of your own, a transport with an STT service replaces `Ears`, an LLM service replaces `Mind`,
and a transport replaces `Speaker`; RealtimeTTSService stays as it is.
"""

import argparse
import asyncio
import sys
import wave

from loguru import logger
from pipecat.frames.frames import (
    BotStoppedSpeakingFrame,
    EndFrame,
    ErrorFrame,
    Frame,
    InterruptionFrame,
    LLMFullResponseEndFrame,
    LLMFullResponseStartFrame,
    LLMTextFrame,
    OutputAudioRawFrame,
    StartFrame,
    TranscriptionFrame,
)
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.worker import PipelineWorker
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor
from pipecat.transports.base_output import BaseOutputTransport
from pipecat.transports.base_transport import TransportParams
from pipecat.workers.runner import WorkerRunner

from realtime_tts.adapters.pipecat import RealtimeTTSService
from realtime_tts.client import Interrupted

REPLY = "You said: {} The museum is open until six, and the café until nine."


class Ears(FrameProcessor):
    """Stands for a microphone and an STT service: what the user says is given as a line of text."""

    def __init__(self) -> None:
        super().__init__()
        self.silent = asyncio.Event()

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        if isinstance(frame, BotStoppedSpeakingFrame):
            self.silent.set()
        await self.push_frame(frame, direction)

    async def hear(self, line: str) -> None:
        print(f"user:      {line}")
        await self.push_frame(TranscriptionFrame(line, "user", "2026-01-01T00:00:00Z"))


class Mind(FrameProcessor):
    """Stands for an LLM service: it replies in tokens of three characters."""

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        if not isinstance(frame, TranscriptionFrame):
            await self.push_frame(frame, direction)
            return
        reply = REPLY.format(frame.text)
        print(f"assistant: {reply}")
        await self.push_frame(LLMFullResponseStartFrame())
        for at in range(0, len(reply), 3):
            await self.push_frame(LLMTextFrame(reply[at : at + 3]))
            await asyncio.sleep(0.01)
        await self.push_frame(LLMFullResponseEndFrame())


class Speaker(BaseOutputTransport):
    """Stands for a loudspeaker: it writes a WAV file, as fast as somebody would listen."""

    def __init__(self, path: str) -> None:
        super().__init__(TransportParams(audio_out_enabled=True, audio_out_sample_rate=24_000))
        self.first = asyncio.Event()
        self._wav = wave.open(path, "wb")
        self._wav.setparams((1, 2, 24_000, 0, "NONE", ""))

    async def start(self, frame: StartFrame) -> None:
        await super().start(frame)
        await self.set_transport_ready(frame)

    async def write_audio_frame(self, frame: OutputAudioRawFrame) -> bool:
        self.first.set()
        self._wav.writeframes(frame.audio)
        await asyncio.sleep(len(frame.audio) / 2 / 24_000)
        return True

    async def cleanup(self) -> None:
        await super().cleanup()
        self._wav.close()


async def main(arguments: argparse.Namespace) -> str | None:
    """Return what went wrong, such as that there is no server."""
    tts = RealtimeTTSService(
        server=arguments.server,
        api_key=arguments.api_key,
        settings=RealtimeTTSService.Settings(voice=arguments.voice),
    )

    @tts.event_handler("on_speech_interrupted")
    async def on_speech_interrupted(_: RealtimeTTSService, report: Interrupted) -> None:
        print(f"heard:     {report.text_spoken!r}")
        print(f"not heard: {report.text_remaining!r}")

    failures: list[str] = []
    ears, speaker = Ears(), Speaker(arguments.output)
    worker = PipelineWorker(Pipeline([ears, Mind(), tts, speaker]))

    async def converse() -> None:
        for line in arguments.lines:
            if failures:
                break
            ears.silent.clear()
            speaker.first.clear()
            await ears.hear(line)
            if arguments.interrupt_after is None:
                await ears.silent.wait()
            else:
                await speaker.first.wait()
                await asyncio.sleep(arguments.interrupt_after)
                await worker.queue_frame(InterruptionFrame())  # an STT service would, or a VAD
                await ears.silent.wait()
        await worker.queue_frame(EndFrame())

    @worker.event_handler("on_pipeline_error")
    async def on_pipeline_error(worker: PipelineWorker, frame: ErrorFrame) -> None:
        failures.append(frame.error)
        speaker.first.set()
        ears.silent.set()

    @worker.event_handler("on_pipeline_started")
    async def on_pipeline_started(worker: PipelineWorker, frame: Frame) -> None:
        await converse()

    runner = WorkerRunner()
    await runner.add_workers(worker)
    await runner.run()
    return failures[0] if failures else None


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A voice agent in Pipecat.")
    parser.add_argument("lines", nargs="+", metavar="LINE", help="what the user says")
    parser.add_argument("--server", default="ws://127.0.0.1:8000")
    parser.add_argument("--api-key")
    parser.add_argument("--voice")
    parser.add_argument("--output", default="heard.wav")
    parser.add_argument("--interrupt-after", type=float, metavar="SECONDS")
    parser.add_argument("--verbose", action="store_true", help="Pipecat's own log")
    given = parser.parse_args()
    logger.remove()
    logger.add(sys.stderr, level="DEBUG" if given.verbose else "WARNING")
    sys.exit(asyncio.run(main(given)))
