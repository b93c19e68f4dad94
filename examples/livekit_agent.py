"""A voice agent of LiveKit Agents that speaks with realtime-tts; STT and LLM are stand-ins.

    python examples/livekit_agent.py "Good day!" "When do you close?"

No LiveKit server is needed: the words of the command line replace the microphone, and the sound is
written to a WAV file. With --patience, the user waits that many seconds and then talks over the
agent, which falls silent. In a real agent, the STT and the LLM of your choice replace `TypedSpeech`
and `Clerk`, a room replaces `Silence` and `Listener`, and `AgentSession(tts=TTS(...))` stays as it
is: docs/adapters.md.
"""

import argparse
import asyncio
import sys
import time
from typing import Any

from livekit import rtc
from livekit.agents import Agent, AgentSession, APIError, llm, stt, tts
from livekit.agents.types import DEFAULT_API_CONNECT_OPTIONS, APIConnectOptions
from livekit.agents.voice.io import AudioInput, AudioOutput, AudioOutputCapabilities, TextOutput
from livekit.agents.voice.transcription.synchronizer import TranscriptSynchronizer

from realtime_tts import wav_writer
from realtime_tts.adapters.livekit import TTS

RATE = 24_000


class Clerk(llm.LLM):
    """Stands for a language model: it writes a few characters at a time, and has one answer."""

    def chat(
        self,
        *,
        chat_ctx: llm.ChatContext,
        tools: list[Any] | None = None,
        conn_options: APIConnectOptions = DEFAULT_API_CONNECT_OPTIONS,
        **_: Any,
    ) -> llm.LLMStream:
        return Reply(self, chat_ctx=chat_ctx, tools=tools or [], conn_options=conn_options)


class Reply(llm.LLMStream):
    async def _run(self) -> None:
        asked = self.chat_ctx.items[-1].text_content
        text = f"You said: {asked} The museum is open until six, and the café until nine."
        for start in range(0, len(text), 5):
            delta = llm.ChoiceDelta(role="assistant", content=text[start : start + 5])
            self._event_ch.send_nowait(llm.ChatChunk(id="reply", delta=delta))
            await asyncio.sleep(0.01)


class TypedSpeech(stt.STT):
    """Stands for a speech recogniser: it hears whatever is put into `said`."""

    def __init__(self) -> None:
        super().__init__(capabilities=stt.STTCapabilities(streaming=True, interim_results=False))
        self.said: asyncio.Queue[str] = asyncio.Queue()

    async def _recognize_impl(self, *arguments: Any, **options: Any) -> stt.SpeechEvent:
        raise NotImplementedError("it listens all the time; use stream()")

    def stream(
        self, *, conn_options: APIConnectOptions = DEFAULT_API_CONNECT_OPTIONS, **_: Any
    ) -> stt.RecognizeStream:
        return Recognition(stt=self, conn_options=conn_options)


class Recognition(stt.RecognizeStream):
    async def _run(self) -> None:
        while True:
            words = [stt.SpeechData(text=await self._stt.said.get(), language="en")]
            for kind in ("START_OF_SPEECH", "FINAL_TRANSCRIPT", "END_OF_SPEECH"):
                event = stt.SpeechEvent(type=stt.SpeechEventType[kind], alternatives=words)
                self._event_ch.send_nowait(event)


class Silence(AudioInput):
    """A microphone that nobody speaks into."""

    def __init__(self) -> None:
        super().__init__(label="silence")

    async def __anext__(self) -> rtc.AudioFrame:
        await asyncio.sleep(0.1)
        return rtc.AudioFrame(bytes(RATE // 5), RATE, 1, RATE // 10)


class Subtitles(TextOutput):
    """Receives the words as they are heard, to be shown; a room does this by itself."""

    def __init__(self) -> None:
        super().__init__(label="subtitles", next_in_chain=None)

    async def capture_text(self, text: str) -> None:
        pass

    def flush(self) -> None:
        pass


class Listener(AudioOutput):
    """A loudspeaker: plays in real time, and keeps what was heard."""

    def __init__(self) -> None:
        capabilities = AudioOutputCapabilities(pause=False)
        super().__init__(label="listener", capabilities=capabilities, sample_rate=RATE)
        self.heard = bytearray()
        self.begun = asyncio.Event()
        self._playing = bytearray()
        self._since = 0.0
        self._end: asyncio.TimerHandle | None = None

    async def capture_frame(self, frame: rtc.AudioFrame) -> None:
        await super().capture_frame(frame)
        if not self._playing:
            self._since = time.time()
            self.begun.set()
            self.on_playback_started(created_at=self._since)
        self._playing += frame.data.cast("B")

    def flush(self) -> None:
        super().flush()
        if self._playing:
            left = self._seconds - (time.time() - self._since)
            loop = asyncio.get_running_loop()
            self._end = loop.call_later(left, self._finish, self._seconds, False)

    def clear_buffer(self) -> None:
        if self._playing:
            self._finish(min(self._seconds, time.time() - self._since), True)

    @property
    def _seconds(self) -> float:
        return len(self._playing) / 2 / RATE

    def _finish(self, played: float, interrupted: bool) -> None:
        if self._end is not None:
            self._end.cancel()
        self.heard += self._playing[: 2 * int(played * RATE)]
        self._playing.clear()
        self.begun.clear()
        self.on_playback_finished(playback_position=played, interrupted=interrupted)


async def talk(arguments: argparse.Namespace) -> None:
    hearing, listener = TypedSpeech(), Listener()
    speaker = TTS(arguments.server, api_key=arguments.api_key)
    synchronizer = TranscriptSynchronizer(
        next_in_chain_audio=listener, next_in_chain_text=Subtitles()
    )
    turns = {
        "turn_detection": "stt",
        "endpointing": {"min_delay": 0.0, "max_delay": 0.0},
        "interruption": {"resume_false_interruption": False},
    }
    async with (
        speaker,
        AgentSession(
            stt=hearing,
            llm=Clerk(),
            tts=speaker,
            vad=None,
            turn_handling=turns,
            tts_text_transforms=None,  # the server leaves out markdown and emoji itself
        ) as session,
    ):
        session.input.audio = Silence()
        session.output.audio = synchronizer.audio_output
        session.output.transcription = synchronizer.text_output
        replies: asyncio.Queue[Any] = asyncio.Queue()
        session.on("conversation_item_added", lambda event: note(event.item, replies))
        failed = asyncio.get_running_loop().create_future()
        session.on("error", lambda event: fail(event.error, failed))
        await session.start(Agent(instructions="Answer visitors of the museum."))
        talking = asyncio.create_task(converse(arguments, hearing, listener, replies))
        ended, _ = await asyncio.wait([talking, failed], return_when=asyncio.FIRST_COMPLETED)
        talking.cancel()
        for one in ended:
            one.result()  # raises what went wrong
    await synchronizer.aclose()
    with wav_writer(arguments.output) as wav:
        wav.writeframes(listener.heard)


async def converse(
    arguments: argparse.Namespace,
    hearing: TypedSpeech,
    listener: Listener,
    replies: asyncio.Queue[Any],
) -> None:
    """Say the lines, each when the agent has answered the one before or the user loses patience."""
    for number, line in enumerate(arguments.said, start=1):
        hearing.said.put_nowait(line)
        if number > 1 and arguments.patience is not None:
            await replies.get()  # the one before, as far as it was heard
        await listener.begun.wait()
        last = number == len(arguments.said)
        if last or arguments.patience is None:
            await replies.get()
        else:
            await asyncio.sleep(arguments.patience)


def fail(error: Any, failed: asyncio.Future[None]) -> None:
    """End the conversation when speech has failed and is not tried again."""
    if isinstance(error, tts.TTSError) and not error.recoverable and not failed.done():
        failed.set_exception(error.error)


def note(item: Any, replies: asyncio.Queue[Any]) -> None:
    """Print an entry of the history; an interrupted reply holds only what was heard."""
    if item.type != "message":
        return
    interrupted = " (interrupted)" if item.interrupted else ""
    print(f"{item.role}: {item.text_content}{interrupted}", flush=True)
    if item.role == "assistant":
        replies.put_nowait(item)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A LiveKit agent without LiveKit's server.")
    parser.add_argument("said", nargs="+", help="what the user says, one turn after another")
    parser.add_argument("--server", default="ws://127.0.0.1:8000")
    parser.add_argument("--api-key")
    parser.add_argument("--patience", type=float, metavar="SECONDS")
    parser.add_argument("--output", default="heard.wav")
    try:
        asyncio.run(talk(parser.parse_args()))
    except APIError as error:  # such as no server
        sys.exit(error.message)
