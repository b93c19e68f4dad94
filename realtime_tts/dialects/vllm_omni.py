"""vLLM-Omni's speech over a WebSocket: `/v1/audio/speech/stream`.

docs/dialects.md says what is supported. An utterance is the text between two `input.done`; here it
is one sentence of that API, or a few where its text pauses. With `stream_audio` it is spoken as its
text comes. Without, the API promises one frame of sound, so its text waits for `input.done`, too.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from typing import Any

from starlette.routing import BaseRoute
from starlette.websockets import WebSocket

from realtime_tts.audio.pcm import BYTES_PER_SAMPLE
from realtime_tts.dialects.catalogue import chosen_voice, model_for, our_language
from realtime_tts.dialects.context import SpeechContext
from realtime_tts.dialects.fields import text_of, type_of
from realtime_tts.dialects.openai import API
from realtime_tts.dialects.socket import SingleVoiceSocket
from realtime_tts.dialects.timing import words_of
from realtime_tts.dialects.vllm_omni_request import Config, parse_config
from realtime_tts.errors import RequestError
from realtime_tts.protocol.effects import TurnFailure
from realtime_tts.protocol.messages import SAMPLE_RATE
from realtime_tts.protocol.settings import SessionSettings
from realtime_tts.protocol.ticks import ticks
from realtime_tts.server.front import Front
from realtime_tts.server.track import Segment
from realtime_tts.server.writer import Messages
from realtime_tts.text.speech_times import SpokenSpan

SOCKET_PATH = "/v1/audio/speech/stream"


def routes(front: Front) -> list[BaseRoute]:
    return [VllmOmniSocket.route(front, SOCKET_PATH)]


class VllmOmniSocket(SingleVoiceSocket):
    api = API

    def __init__(self, front: Front, websocket: WebSocket) -> None:
        super().__init__(front, websocket)
        self._config = Config()
        self._refused = False  # the last `session.config`, so it is unknown how to speak
        self._open = False  # an utterance takes text
        self._utterance = 0  # index of the one being spoken
        self._sentence = 0  # index of its sentence

    # From the client.

    def greet(self) -> None:
        self.speak_as(self._voice_settings(self._config))

    def received(self, message: dict[str, Any]) -> None:
        actions = {
            "session.config": lambda: self._configure(message),
            "input.text": lambda: self._text(message.get("text", "")),
            "input.commit": self._commit,
            "input.done": self._done,
            "session.close": self._close,
        }
        kind = type_of(message, actions)
        if self.finishing:
            raise RequestError("nothing can come after `session.close`")
        actions[kind]()

    def _configure(self, message: dict[str, Any]) -> None:
        if self._open:
            raise RequestError(
                "`session.config` cannot change an utterance that has begun; send `input.done`"
            )
        self._refused = True
        config = parse_config(message)
        chosen = self._voice_settings(config)
        self.front.check_speech(chosen)
        self._config, self._refused = config, False
        self.speak_as(chosen)

    def _voice_settings(self, config: Config) -> SessionSettings:
        info = self.front.info
        voice = chosen_voice(config.voice_name, self.front.voice_names(self.account))
        return self.front.settings(
            audio=config.audio,
            model=model_for(config.task_type, config.model, voice, info),
            voice=voice,
            language=our_language(config.language, info),
            instructions=config.instructions or None,
            seed=config.seed,
            speed=config.our_speed.given,
            pacing=config.pacing,
            lead_ms=None if config.stream_audio else self.limits.max_lead_ms,
        )

    def _text(self, value: Any) -> None:
        text = text_of(value)
        if self._refused and not self.skipping:
            self.skipping = True  # the rest of the utterance is no further mistake
            raise RequestError(
                "the last `session.config` was refused, and its text is not spoken in another "
                "voice or format; send one that can be taken first"
            )
        self._open = self._open or (bool(text) and not self._refused)
        self._note(self.take(text, at_once=self._config.stream_audio), text)

    def _note(self, segment: Segment | None, text: str) -> None:
        if segment is not None:
            self._sentence_of(segment).text.append(text)

    def _commit(self) -> None:
        """Speak the text so far. Without `stream_audio` it waits for the end of its utterance."""
        if self._config.stream_audio and self._open:
            self.voice.commit()

    def _done(self) -> None:
        text = self.kept
        try:
            self._note(self.speak_kept(), text)
        except TurnFailure:
            if not self.kept:
                self._open = self.skipping = False
            raise
        self._open = self.skipping = False
        self.voice.cut()

    def _close(self) -> None:
        """Speak what `input.done` ended, but of an open utterance only what is already spoken."""
        self.kept = ""
        self.finish()

    # To the client.

    def segment_started(self, context: SpeechContext, segment: Segment) -> Messages:
        sentence = self._sentence_of(segment)
        return [sentence.start(self._utterance, self._sentence, segment.begins)]

    def sound(self, context: SpeechContext, segment: Segment, data: bytes) -> Messages:
        return self._sentence_of(segment).sound(data)

    def spoken(self, context: SpeechContext, segment: Segment, span: SpokenSpan) -> Messages:
        self._sentence_of(segment).spoken(span)
        return ()

    def segment_done(self, context: SpeechContext, segment: Segment) -> Messages:
        told: list[str | bytes] = []
        sentence = self._sentence_of(segment)
        if sentence.started:
            told += sentence.rest()
            told.append(sentence.done(failed=False))
            self._sentence += 1
        if segment.flushed:
            told.append(self._utterance_done())
        return told

    def failed(self, context: SpeechContext, failure: TurnFailure) -> Messages:
        """End each complete utterance that is lost: its client waits for that."""
        told: list[str | bytes] = []
        self.skipping = self.skipping or context.speech.open is not None
        for segment in context.speech.segments:
            sentence = self._sentence_of(segment)
            if not told:
                told.append(_error(failure, partial_audio=sentence.bytes_sent > 0))
            if sentence.started:
                told.append(sentence.done(failed=True))
                self._sentence += 1
            if segment.flushed:
                told.append(self._utterance_done())
        return told or [_error(failure)]

    def refusal(self, failure: TurnFailure) -> Messages:
        return [_error(failure)]

    def _sentence_of(self, segment: Segment) -> Sentence:
        if segment.tag is None:
            segment.tag = Sentence(self._config)
        sentence: Sentence = segment.tag
        return sentence

    def _utterance_done(self) -> str:
        message = {
            "type": "session.done",
            "utterance_index": self._utterance,
            "total_sentences": self._sentence,
        }
        self._utterance += 1
        self._sentence = 0
        return json.dumps(message)


def _error(failure: TurnFailure, *, partial_audio: bool = False) -> str:
    """Return an error; its `code` is ours."""
    message: dict[str, Any] = {"type": "error", "message": failure.message, "code": failure.code}
    if partial_audio:
        message |= {"partial_audio": True, "action": "discard"}
    return json.dumps(message)


MAX_FRAME_BYTES = 1 << 20
"""Largest binary frame: by default, Python clients accept no larger one."""

_WAV_HEADER_BYTES = 44


@dataclass(slots=True)
class Sentence:
    """The messages of one sentence, from `audio.start` to `audio.done`."""

    config: Config
    text: list[str] = field(default_factory=list)
    started: bool = False
    bytes_sent: int = 0
    _whole: bytearray = field(default_factory=bytearray)  # sound that is not streamed
    _at: dict[str, int] = field(default_factory=dict)
    _start: float = 0.0  # seconds of the context's sound before the sentence
    _chunks: int = 0
    _words: list[dict[str, Any]] = field(default_factory=list)

    def start(self, utterance: int, sentence: int, seconds: float) -> str:
        """Return `audio.start`; its `sentence_text` is the text that is known by then."""
        self.started = True
        self._start = seconds
        self._at = {"utterance_index": utterance, "sentence_index": sentence}
        message: dict[str, Any] = {
            "type": "audio.start",
            **self._at,
            "sentence_text": "".join(self.text),
            "format": self.config.response_format,
        }
        if self.config.stream_audio:
            message["sample_rate"] = self.config.audio.sample_rate
        if self.config.word_timestamps:
            message["word_timestamps"] = True
        return json.dumps(message)

    def sound(self, data: bytes) -> list[str | bytes]:
        """Return the sound, or nothing if it is sent whole in `rest`."""
        if not self.config.stream_audio:
            self._whole += data
            return []
        before, self.bytes_sent = self.bytes_sent, self.bytes_sent + len(data)
        if self.config.word_timestamps:
            return [self._chunk(data, _ms(before), None)]
        return [data]

    def spoken(self, span: SpokenSpan) -> None:
        """Keep the times of words for `rest`, if they are wanted."""
        if self.config.word_timestamps and span.text.strip():
            self._words += [
                {
                    "word": word.text,
                    "start_ms": ticks(word.start - self._start, 1000),
                    "end_ms": ticks(word.end - self._start, 1000),
                }
                for word in words_of(span)
            ]

    def rest(self) -> list[str | bytes]:
        """Return what follows the last sound: sound that was not streamed; the times, if wanted."""
        if self.config.word_timestamps:
            return [self._chunk(b"", 0, self._words)]
        whole = _with_lengths(self._whole)
        self._whole = bytearray()
        self.bytes_sent += len(whole)
        cuts = range(0, len(whole), MAX_FRAME_BYTES)
        return [whole[at : at + MAX_FRAME_BYTES] for at in cuts]

    def done(self, *, failed: bool) -> str:
        """Return `audio.done`; its `sentence_text`, all of it, is an addition of ours."""
        message = {
            "type": "audio.done",
            **self._at,
            "total_bytes": self.bytes_sent,
            "error": failed,
            "sentence_text": "".join(self.text),
        }
        return json.dumps(message)

    def _chunk(self, data: bytes, start_ms: int, words: list[dict[str, Any]] | None) -> str:
        message = {
            "type": "audio.chunk",
            **self._at,
            "chunk_id": self._chunks,
            "chunk_start_ms": start_ms,
            "chunk_end_ms": _ms(self.bytes_sent),
            "sample_rate": SAMPLE_RATE,
            "audio_b64": base64.b64encode(data).decode(),
            "timestamps": words,
        }
        self._chunks += 1
        return json.dumps(message)


def _ms(pcm_bytes: int) -> int:
    return round(pcm_bytes / BYTES_PER_SAMPLE / SAMPLE_RATE * 1000)


def _with_lengths(sound: bytearray) -> bytes:
    """Return a complete WAV with its lengths filled in; other formats stay as they are."""
    if sound[:4] == b"RIFF" and sound[36:40] == b"data":
        sound[4:8] = (len(sound) - 8).to_bytes(4, "little")
        sound[40:44] = (len(sound) - _WAV_HEADER_BYTES).to_bytes(4, "little")
    return bytes(sound)
