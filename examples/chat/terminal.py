"""A chatbot that talks in the terminal. Typing a line while it speaks interrupts it.

    python examples/chat/terminal.py --llm-url http://127.0.0.1:8002/v1 --llm-model any

A program of your own can work in the same way: the model's deltas go straight into a turn, and
after an interrupt the history holds only what was heard.
"""

import argparse
import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator

from llm import Conversation, LLMError, Model, add_model_arguments, model_of

from realtime_tts import RealtimeTTS, Speech
from realtime_tts.audio.formats import audio_format
from realtime_tts.cli.output import Output, sink_makers
from realtime_tts.errors import RealtimeTTSError

WAV = audio_format("pcm_s16le", container="wav")
"""Format of `--output FILE`."""


class Chat:
    """One spoken conversation."""

    def __init__(self, tts: RealtimeTTS, model: Model, output: str | None) -> None:
        self._tts = tts
        self._model = model
        self._output = output
        self.conversation = Conversation()

    async def answer(self, text: str, interrupted: asyncio.Event) -> None:
        """Say the reply to `text`, unless `interrupted` is set before it ends."""
        self.conversation.user(text)
        message = self.conversation.reply()
        speech = self._tts.speak(self._reply(message))
        sound = Output(sink_makers(self._output, WAV), on_failure=print)
        listening = asyncio.create_task(self._listen(speech, sound))
        barge = asyncio.create_task(interrupted.wait())
        await asyncio.wait([listening, barge], return_when=asyncio.FIRST_COMPLETED)
        barge.cancel()
        if not listening.done():
            await self._interrupt(speech, sound, message)
        try:
            await listening
        except RealtimeTTSError as error:
            print(f"\n[no speech: {error}]")
        print()

    async def _reply(self, message: dict[str, str]) -> AsyncIterator[str]:
        """Yield the model's deltas, and print and store them. An error ends the reply early."""
        deltas = self._model.deltas(self.conversation.to_send())
        async with contextlib.aclosing(deltas):
            try:
                async for delta in deltas:
                    print(delta, end="", flush=True)
                    message["content"] += delta
                    yield delta
            except LLMError as error:
                print(f"\n[{error}]", end="", flush=True)

    async def _listen(self, speech: Speech, sound: Output) -> None:
        async for packet in speech:
            await sound.write(packet)
        if speech.interrupted is None:
            await sound.finish()

    async def _interrupt(self, speech: Speech, sound: Output, message: dict[str, str]) -> None:
        played = sound.played_seconds
        sound.stop()
        with contextlib.suppress(RealtimeTTSError):
            report = await speech.interrupt(None if played is None else played * 1000)
            self.conversation.cut(message, report.text_spoken)
            print(f"\n[heard: {report.text_spoken!r}]")
            print(f"[not heard: {report.text_remaining!r}]", end="", flush=True)


async def lines_of_input() -> AsyncIterator[str]:
    """Yield lines as they are typed, read in a thread so that nothing waits for them."""
    while line := await asyncio.to_thread(sys.stdin.readline):
        yield line.strip()


async def main(arguments: argparse.Namespace) -> None:
    model = model_of(arguments)
    key = os.environ.get("REALTIME_TTS_API_KEY")
    async with RealtimeTTS(arguments.tts, api_key=key, voice=arguments.voice) as tts:
        chat = Chat(tts, model, arguments.output)
        answering: asyncio.Task[None] | None = None
        interrupted = asyncio.Event()
        print("Say something. A line typed while it speaks interrupts; Ctrl-D ends.", flush=True)
        async for line in lines_of_input():
            if answering is not None:
                interrupted.set()
                await answering
                answering = None
            if line:
                interrupted = asyncio.Event()
                answering = asyncio.create_task(chat.answer(line, interrupted))
        if answering is not None:
            await answering
    await model.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A chatbot that talks, in the terminal.")
    parser.add_argument("--tts", default="ws://127.0.0.1:8000", help="the speech server")
    parser.add_argument("--voice")
    parser.add_argument("--output", help="a WAV file, or - for raw PCM, instead of a player")
    add_model_arguments(parser)
    try:
        asyncio.run(main(parser.parse_args()))
    except RealtimeTTSError as error:  # such as no server, or a wrong key
        sys.exit(str(error))
