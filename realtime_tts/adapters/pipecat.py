"""Pipecat: `RealtimeTTSService`, a TTS service for its pipelines. Needs pipecat-ai 1.12 or later.

    tts = RealtimeTTSService(
        server="ws://127.0.0.1:8000", settings=RealtimeTTSService.Settings(voice="ava")
    )

The language model's tokens go to the server as they arrive. One LLM response, or one TTSSpeakFrame,
is one audio context in Pipecat and one turn at the server, or several, where one has failed before
it was heard (utterance.py). All turns of a service share one socket.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from functools import partial
from typing import Any, ClassVar

from realtime_tts.adapters.link import Link
from realtime_tts.adapters.tracing import current_traceparent, traceparent_of
from realtime_tts.adapters.utterance import Playback, Utterance
from realtime_tts.client import DEFAULT_SERVER, Backoff, RealtimeTTS
from realtime_tts.errors import ClientError
from realtime_tts.extras import install
from realtime_tts.languages import language_name
from realtime_tts.protocol.messages import SAMPLE_RATE

try:
    from loguru import logger
    from pipecat.frames.frames import (
        ControlFrame,
        EndFrame,
        Frame,
        InterruptionFrame,
        LLMFullResponseEndFrame,
        LLMFullResponseStartFrame,
        ServiceSwitcherRequestMetadataFrame,
        TTSSpeakFrame,
    )
    from pipecat.processors.frame_processor import FrameDirection
    from pipecat.services.tts_service import TextAggregationMode
    from pipecat.transcriptions.language import Language
    from pipecat.utils.tracing.service_decorators import traced_tts

    from realtime_tts.adapters.pipecat_connection import (
        RealtimeTTSSettings,
        session_options,
    )
    from realtime_tts.adapters.pipecat_contexts import ContextService, Resampler
except ImportError as error:
    raise ImportError(
        f"realtime_tts.adapters.pipecat needs pipecat-ai 1.12 or later: {install('pipecat')}"
    ) from error

_TURNS_AT_THE_SERVER = 2
"""Turns at the server: one speaks and one waits, so that speech follows on speech without a gap.
The others wait here, as the server takes a limited number (`limits.max_queued_turns`)."""

_CONTEXT_SECONDS = 120.0
"""Seconds after which Pipecat gives up an audio context in which nothing happens. Its own default
of 3 s would cut a reply whose language model pauses, to call a tool for example. The server ends
every turn after 60 s without text, and so does the loss of its socket; this is for a server that
fails to."""

_TEXT_SECONDS = 3.0
"""Seconds after which text that belongs to no reply is complete: no frame says so."""

_SILENCE = bytes(2 * SAMPLE_RATE // 50)
"""20 ms of sound for a text with nothing to speak, such as one emoji: Pipecat counts a context
without audio as a failure, and a service with three in a row as broken for good."""

_ANSWER_SECONDS = 1.0
"""Seconds that the end of a pipeline waits for the server's answer to an interruption."""


class _TextPaused(ControlFrame):
    """No text has come for `_TEXT_SECONDS`; stays within the service."""


class RealtimeTTSService(ContextService):
    """Text-to-speech by a realtime-tts server, to which it connects when its pipeline starts.

    Args:
        server: ws(s) or http(s) URL, or host:port.
        api_key: one of the server's, where it has any.
        sample_rate: Hz of the audio frames; by default the pipeline's. The server's is 24000,
            anything else is resampled from it.
        text_aggregation_mode: TOKEN sends text as it arrives, SENTENCE by the sentence.
        word_times: TTSTextFrames by the word, in time with the sound; otherwise by the sentence,
            as soon as its text is at the server.
        backoff: waits between attempts to connect, and how long to go on.
        settings: `RealtimeTTSService.Settings(voice=..., ...)`; the server's where not given.
        **kwargs: for TTSService.

    Raises ConfigError for an address or a setting that cannot be used.

    Event handlers, besides those of every TTSService:
        on_speech_interrupted: the server has answered an interruption; called for each reply that
            was not heard to its end, with the service and an `Interrupted` with `text_spoken` and
            `text_remaining`, an estimate to about a word.

    Pipecat gets a TTSTextFrame for each word when, by the server's estimate, it is heard; so after
    an interruption the LLM's context holds what was heard.
    """

    Settings: ClassVar[type[RealtimeTTSSettings]] = RealtimeTTSSettings

    def __init__(
        self,
        *,
        server: str = DEFAULT_SERVER,
        api_key: str | None = None,
        sample_rate: int | None = None,
        text_aggregation_mode: TextAggregationMode = TextAggregationMode.TOKEN,
        word_times: bool = True,
        backoff: Backoff = Backoff(give_up_after=5.0),  # noqa: B008 - frozen
        settings: RealtimeTTSSettings | None = None,
        **kwargs: Any,
    ) -> None:
        initial = RealtimeTTSSettings.unset()
        if settings is not None:
            initial.apply_update(settings)
        kwargs.setdefault("stop_frame_timeout_s", _CONTEXT_SECONDS)
        fixed: dict[str, Any] = {"api_key": api_key, "backoff": backoff}
        fixed["word_times"] = "on" if word_times else "off"
        super().__init__(
            Link(
                lambda options: RealtimeTTS(server, **fixed, **options),
                session_options(initial),
                backoff.give_up_after,
            ),
            push_start_frame=True,
            push_text_frames=not word_times,
            append_trailing_space=True,  # between sentences; tokens bring their own
            sample_rate=sample_rate,
            text_aggregation_mode=text_aggregation_mode,
            settings=initial,
            **kwargs,
        )
        self._turn_limit = asyncio.Semaphore(_TURNS_AT_THE_SERVER)
        self._interrupts: set[asyncio.Task[None]] = set()
        self._in_reply = False  # between the frames of its beginning and its end
        self._text_timer: asyncio.TimerHandle | None = None
        self._register_event_handler("on_speech_interrupted")

    def can_generate_metrics(self) -> bool:
        """Return True: the service reports TTFB, TTFA and usage."""
        return True

    @property
    def supports_processing_metrics(self) -> bool:
        """False, since `run_tts` hands the text over and returns."""
        return False

    def language_to_service_language(self, language: Language) -> str | None:
        """Return the server's name of a language, such as `english` for en-GB; None: unknown."""
        return language_name(str(language))

    # The pipeline's frames

    async def stop(self, frame: EndFrame) -> None:
        """Speak all text there is, then disconnect."""
        for context_id in self.get_audio_contexts():
            await self.flush_audio(context_id)
        await super().stop(frame)
        if self._interrupts:  # the server's answers, which may be on their way
            await asyncio.wait(self._interrupts, timeout=_ANSWER_SECONDS)
        await self._disconnect()

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        """Process a frame as every TTSService does; text that belongs to no reply is ended."""
        match frame:
            case InterruptionFrame():
                self._in_reply = False
                self._cut_what_is_heard()
            case LLMFullResponseEndFrame():
                self._in_reply = False
            case LLMFullResponseStartFrame():
                await self._end_text()
                self._in_reply = True
            case TTSSpeakFrame():
                await self._end_text()
            case ServiceSwitcherRequestMetadataFrame():  # another service had the reply's end
                self._in_reply = False
                await self._end_text()
            case _TextPaused():
                await self._end_text()
                return
        await super().process_frame(frame, direction)

    # Text in

    def create_context_id(self) -> str:
        """Return the context of the reply. Text without a reply begins one, too: its end, or that
        of a reply whose beginning a ServiceSwitcher gave to another service, must find a context
        to end."""
        context_id = str(super().create_context_id())
        if self._reuse_context_id_within_turn:
            self._turn_context_id = context_id
            self._set_text_timer()
        return context_id

    def _set_text_timer(self) -> None:
        if self._text_timer is not None:
            self._text_timer.cancel()
        if not self._in_reply:
            loop = asyncio.get_running_loop()
            self._text_timer = loop.call_later(_TEXT_SECONDS, self._note_pause)

    def _note_pause(self) -> None:
        if not self._closed:
            self._spawn(self.queue_frame(_TextPaused()), "text paused")

    async def _end_text(self) -> None:
        """End text that belongs to no reply, as the end of a reply does."""
        if self._turn_context_id is not None and not self._in_reply:
            await super().process_frame(LLMFullResponseEndFrame(), FrameDirection.DOWNSTREAM)

    async def on_turn_context_created(self, context_id: str) -> None:
        """Connect, since text will follow."""
        if self.is_usable and not self._link.client.connected:
            self._spawn(self._connect(report=False), "connect")

    @traced_tts
    async def run_tts(self, text: str, context_id: str) -> AsyncGenerator[Frame | None, None]:
        """Pass the text to its utterance, whose audio goes to the context by itself."""
        utterance = self._utterances.get(context_id)
        if utterance is None:
            utterance = self._utterances[context_id] = Utterance(Playback(self._listener))
            self._sounding[context_id] = utterance
            if self._closed:
                logger.warning(f"{self}: not spoken, the pipeline has ended: {text!r}")
                utterance.stop()
            span = self._span_of(context_id)
            speaking = self._speak(context_id, utterance, after=self._applying, span=span)
            self._spawn(speaking, f"speak {context_id}")
        utterance.add(text)
        if not self._reuse_context_id_within_turn:
            utterance.end()  # the context is for this text alone, and nothing else ends it
        if not self._push_text_frames:
            self._note_text(context_id, text)
        await self.start_tts_usage_metrics(text)
        yield None

    async def flush_audio(self, context_id: str | None = None) -> None:
        """Note that the text of this context, by default the current one, is complete."""
        context_id = context_id or self.get_active_audio_context_id()
        if context_id is None:
            return
        utterance = self._utterances.get(context_id)
        if utterance is not None:
            utterance.end()
        elif self.audio_context_available(context_id):  # begun, but never given to run_tts
            await self._close_context(context_id)

    def _span_of(self, context_id: str) -> str | None:
        """Return the parent of the turn's span: Pipecat's span of the context, if it has one."""
        entry = getattr(self, "_tts_spans", {}).get(context_id)  # `traced_tts` keeps it there
        return current_traceparent() if entry is None else traceparent_of(entry["span"])

    # Audio out

    async def _speak(
        self,
        context_id: str,
        utterance: Utterance,
        after: asyncio.Task[None] | None,
        span: str | None,
    ) -> None:
        """Speak an utterance to its last audio, `after` settings that were changed before."""
        resampler = Resampler(SAMPLE_RATE, self.sample_rate)
        try:
            if after is not None:
                await asyncio.wait([after])
            async with self._turn_limit:
                speak = partial(self._link.client.speak, traceparent=span)
                async for packet in utterance.packets(speak):
                    await self._append(context_id, resampler.push(packet))
                    await self._append_words(context_id, utterance)
            await self._append_words(context_id, utterance)
            if utterance.complete:
                if not resampler.used:
                    await self._append(context_id, resampler.push(_SILENCE))
                    await self._append_unspoken(context_id)
                await self._append(context_id, resampler.end())
        except Exception as error:  # whatever it is, the context has to be closed
            if not utterance.stopped:
                await self._report(error)
        # Text that still arrives for this context belongs to what was just spoken, or failed.
        await utterance.wait_ended()
        if not utterance.stopped:
            await self._close_context(context_id)
        self._utterances.pop(context_id, None)
        if not self._utterances:
            await self._link.close_retired()

    # Interruptions

    async def on_audio_context_interrupted(self, context_id: str) -> None:
        """Stop the turn: no further packet is played, and the server is notified."""
        utterance = self._sounding.get(context_id)
        await super().on_audio_context_interrupted(context_id)
        self._utterances.pop(context_id, None)
        if utterance is not None:
            self._interrupt(utterance)

    async def on_audio_context_completed(self, context_id: str) -> None:
        """Stop the turn if Pipecat gave the context up before all audio was passed on."""
        if context_id in self._utterances:
            await self.on_audio_context_interrupted(context_id)
        await super().on_audio_context_completed(context_id)

    def _cut_what_is_heard(self) -> None:
        """Notify the server of a barge-in into audio that was all sent but is still heard."""
        for utterance in self._take_dropped():
            if self._bot_speaking:
                self._interrupt(utterance)

    def _interrupt(self, utterance: Utterance) -> None:
        utterance.stop()
        self._drop(utterance)
        task = self._spawn(self._report_interrupt(utterance), "interrupt")
        self._interrupts.add(task)
        task.add_done_callback(self._interrupts.discard)

    async def _report_interrupt(self, utterance: Utterance) -> None:
        try:
            report = await utterance.interrupt()
        except ClientError as error:  # no more audio of it follows, so nothing is lost
            logger.warning(f"{self}: what was heard is not known: {error}")
            return
        if report is not None and report.text_remaining:
            await self._call_event_handler("on_speech_interrupted", report)
