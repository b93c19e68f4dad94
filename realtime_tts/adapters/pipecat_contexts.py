"""What a Pipecat TTS service puts into the framework's audio contexts: sound, words, ends; and how
much of it the listener has heard."""

from __future__ import annotations

import re
import time
import unicodedata
from typing import Any, NamedTuple

import numpy as np
import soxr
from loguru import logger
from pipecat.frames.frames import (
    BotStartedSpeakingFrame,
    BotStoppedSpeakingFrame,
    Frame,
    TTSAudioRawFrame,
    TTSStoppedFrame,
    TTSTextFrame,
)
from pipecat.processors.frame_processor import FrameDirection

from realtime_tts.adapters.pipecat_connection import ConnectedService
from realtime_tts.adapters.pipecat_sequencer import TokenSequencer
from realtime_tts.adapters.utterance import Listener, Utterance
from realtime_tts.errors import ClientError

_PAUSE = re.compile(r"<break\s[^>]*>")
"""A pause tag. It is left out of words, since Pipecat expects no markup in them."""

_NANOSECONDS = 1_000_000_000

_BEGINNING_SECONDS = 0.5
"""Seconds heard, up to which an utterance is only beginning when the transport reports that it
begins to play; with more, it goes on after a gap."""

_UNSPACED = ("CJK ", "HIRAGANA ", "KATAKANA ", "THAI ", "LAO ", "KHMER ", "MYANMAR ")


class ContextService(ConnectedService):
    """A connected service that speaks into audio contexts."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._tokens: TokenSequencer | None = None
        if self._is_streaming_tokens and not self._push_text_frames:
            self._aggregated_frame_sequencer = self._tokens = TokenSequencer(str(self))
        self._texts: dict[str, _ContextText] = {}  # of the contexts whose words are reported
        self._sounding: dict[str, Utterance] = {}  # of the contexts whose sound may still be pushed
        self._last_pts = 0  # of all words pushed
        self._late = 0.0  # seconds by which a context's sound is heard after Pipecat's time of it
        self._listener, self._bot_speaking = Listener(), False
        self._at_transport: list[_Sent] = []  # perhaps not yet heard

    def _note_text(self, context_id: str, text: str) -> None:
        """Note text that goes to the server for the context; its words will be reported."""
        if not self._is_streaming_tokens and is_unspaced(text[::-1]):
            text = text.rstrip()  # a space that Pipecat puts between sentences
        self._texts.setdefault(context_id, _ContextText()).add(text)

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        """Process a frame as every TTSService does, and note whether the bot is heard."""
        if isinstance(frame, BotStartedSpeakingFrame | BotStoppedSpeakingFrame):
            self._bot_speaking = isinstance(frame, BotStartedSpeakingFrame)
            self._note_playback(begins=self._bot_speaking)
        await super().process_frame(frame, direction)

    async def push_frame(
        self, frame: Frame, direction: FrameDirection = FrameDirection.DOWNSTREAM
    ) -> None:
        """Push a frame as every TTSService does; words get the spaces of their text."""
        if isinstance(frame, TTSTextFrame):
            self._last_pts = frame.pts or self._last_pts
            if frame.context_id in self._texts:
                self._texts[frame.context_id].space(frame)
            elif self._push_text_frames:  # sentences of tokens begin with the space between them
                frame.text = frame.text.strip()
                frame.raw_text = frame.raw_text and frame.raw_text.strip()
        elif isinstance(frame, TTSAudioRawFrame):
            self._note_sound(frame)
        await super().push_frame(frame, direction)

    async def start_word_timestamps(self) -> None:
        """Begin to time a context's words as every TTSService does: from now, or from the last word
        if that is later. Its sound is heard from when the transport has played what it has."""
        since_last = max(0, self._last_pts - self.get_clock().get_time()) / _NANOSECONDS
        self._late = max(0.0, self._listener.free_at - time.monotonic() - since_last)
        await super().start_word_timestamps()

    async def reset_word_timestamps(self) -> None:
        """End the timing of a context's words."""
        self._late = 0.0
        await super().reset_word_timestamps()

    async def _add_word_timestamps(
        self,
        word_times: list[tuple[str, float]],
        context_id: str | None = None,
        includes_inter_frame_spaces: bool = False,
    ) -> None:
        """Pass words on. Pipecat passes each on when it is heard, by the clock: later than its
        position in the sound where that waited for other sound, or had gaps."""
        late = self._late
        if context_id in self._sounding:
            late += self._sounding[context_id].playback.gaps
        for word, position in word_times:
            if self._tokens is not None:
                for frame in await self._tokens.promote_for(word, context_id):
                    await self.push_frame(frame)
            later = [(word, position + late)]
            await super()._add_word_timestamps(later, context_id, includes_inter_frame_spaces)

    async def on_audio_context_interrupted(self, context_id: str) -> None:
        """Forget the context: no more of its words arrive."""
        await super().on_audio_context_interrupted(context_id)
        self._forget(context_id)

    async def on_audio_context_completed(self, context_id: str) -> None:
        """Forget the context: all words of it were passed on."""
        await super().on_audio_context_completed(context_id)
        self._forget(context_id)

    def _forget(self, context_id: str) -> None:
        self._texts.pop(context_id, None)
        self._sounding.pop(context_id, None)

    async def _append(self, context_id: str, audio: bytes) -> None:
        if audio:
            frame = TTSAudioRawFrame(audio, self.sample_rate, 1, context_id=context_id)
            await self.append_to_audio_context(context_id, frame)

    async def _append_words(self, context_id: str, utterance: Utterance) -> None:
        """Append the words that have arrived, with their position in the sound. What is no word,
        such as an emoji, goes along with the next or the last one: by itself it would be reported
        twice."""
        for word in utterance.take_words():
            text = _PAUSE.sub("", word.text).strip()
            if any(map(str.isalnum, text)):
                await self.add_word_timestamps([(text, word.start_ms / 1000)], context_id)

    async def _append_unspoken(self, context_id: str) -> None:
        """Append a text that had nothing to speak: it is reported before the reply is closed."""
        if context_id in self._texts and (text := self._texts[context_id].text.strip()):
            await self.add_word_timestamps([(text, 0.0)], context_id)

    async def _close_context(self, context_id: str) -> None:
        await self.append_to_audio_context(context_id, TTSStoppedFrame(context_id=context_id))
        await self.remove_audio_context(context_id)

    # What the listener hears

    def _note_sound(self, frame: TTSAudioRawFrame) -> None:
        """Note sound that goes to the transport, which plays it behind what it has."""
        now, seconds = time.monotonic(), len(frame.audio) / 2 / frame.sample_rate
        context_id = frame.context_id or ""
        utterance = self._sounding.get(context_id)
        if utterance is None:  # silence that Pipecat puts behind a reply (push_silence_after_stop)
            self._listener.give(seconds, now)
            return
        if not utterance.playback.seconds:
            self._leave_out_heard(now)
            interruptible = self._is_interruptible(context_id)
            self._at_transport.append(_Sent(context_id, utterance, interruptible))
        utterance.playback.give(seconds, now)

    def _leave_out_heard(self, now: float) -> None:
        """Forget what was heard, except for the last."""
        while len(self._at_transport) > 1 and self._at_transport[0].utterance.playback.over(now):
            del self._at_transport[0]

    def _drop(self, utterance: Utterance) -> None:
        """Note that the transport drops the rest of the utterance."""
        self._listener.drop()
        self._at_transport = [
            each for each in self._at_transport if each.utterance is not utterance
        ]

    def _take_dropped(self) -> list[Utterance]:
        """Take out what the transport drops in an interruption although all of it was passed on.
        Pipecat stops the contexts that still have sound to pass on."""
        self._leave_out_heard(time.monotonic())
        sent, self._at_transport = self._at_transport, []
        dropped = []
        for each in sent:
            if each.interruptible and each.context_id not in self._sounding:
                dropped.append(each.utterance)
            else:
                self._at_transport.append(each)
        return dropped

    def _is_interruptible(self, context_id: str) -> bool:
        """Return False for a TTSSpeakFrame that must be heard in spite of interruptions."""
        context = self._tts_contexts.get(context_id)
        return bool(getattr(context, "interruptible", True))  # pipecat-ai 1.12 has no such frames

    def _note_playback(self, *, begins: bool) -> None:
        """Note that the transport begins to play, or has played all; report the position."""
        now = time.monotonic()
        self._leave_out_heard(now)
        if self._at_transport:
            utterance = self._at_transport[0].utterance
            if begins and utterance.playback.heard(now) < _BEGINNING_SECONDS:
                utterance.playback.begins(now)
            self._spawn(self._report_played(utterance), "played")

    async def _report_played(self, utterance: Utterance) -> None:
        try:
            await utterance.report_played()
        except ClientError as error:  # `_speak` reports it
            logger.debug(f"{self}: the server cannot be told what was heard: {error}")


class _Sent(NamedTuple):
    """An utterance whose sound goes to the transport."""

    context_id: str
    utterance: Utterance
    interruptible: bool


class _ContextText:
    """The `text` of an audio context, and how far its words were pushed.

    Pipecat takes the white space off each word. Between two frames it puts a space, unless both
    declare that they bring their own; so a word that touches another one, as in a script without
    spaces, gets the white space before it back and declares so.
    """

    def __init__(self) -> None:
        self.text = ""
        self._pushed = 0

    def add(self, text: str) -> None:
        self.text += text

    def space(self, frame: TTSTextFrame) -> None:
        """Make the next word, or words, fit behind those before."""
        start = self.text.find(frame.text, self._pushed)
        if start < 0:
            return  # not from this text: a word between spaces
        before = self.text[self._pushed : start]
        self._pushed = start + len(frame.text)
        touches_before = start > 0 and not self.text[start - 1].isspace()
        behind = self.text[self._pushed : self._pushed + 1]
        touches_next = bool(behind) and not behind.isspace()
        if not (touches_before or touches_next):
            return
        space = before[len(before.rstrip()) :]
        frame.text = space + frame.text
        if frame.raw_text:
            frame.raw_text = space + frame.raw_text
        frame.includes_inter_frame_spaces = True


def is_unspaced(text: str) -> bool:
    """Return whether the script of the text puts no spaces between words."""
    letters = (unicodedata.name(char, "") for char in text if char.isalnum())
    return next(letters, "").startswith(_UNSPACED)


class Resampler:
    """Brings one stretch of mono s16le audio to another rate, without clicks and with nothing lost.

    Pipecat's own resampler forgets its state after a pause of 0.2 s, which clicks, and its oldest
    supported version cannot return what is still in its filter at the end.
    """

    def __init__(self, rate_in: int, rate_out: int) -> None:
        self.used = False
        """Whether any audio arrived."""
        self._stream = (
            None
            if rate_in == rate_out
            else soxr.ResampleStream(rate_in, rate_out, 1, dtype="int16", quality="HQ")
        )

    def push(self, pcm: bytes) -> bytes:
        """Return what is ready after `pcm`, whole samples; may be empty at first."""
        self.used = self.used or bool(pcm)
        return self._resampled(pcm, last=False) if pcm else b""

    def end(self) -> bytes:
        """Return the rest; the stretch is over."""
        return self._resampled(b"", last=True)

    def _resampled(self, pcm: bytes, *, last: bool) -> bytes:
        if self._stream is None:
            return pcm
        samples = self._stream.resample_chunk(np.frombuffer(pcm, dtype="<i2"), last=last)
        return bytes(samples.astype("<i2").tobytes())
