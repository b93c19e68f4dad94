"""What a client of vLLM-Omni's speech socket is told about one sentence: its frames."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from typing import Any

from realtime_tts.audio.pcm import BYTES_PER_SAMPLE
from realtime_tts.dialects.timing import words_of
from realtime_tts.dialects.vllm_omni_request import Config
from realtime_tts.protocol.messages import SAMPLE_RATE
from realtime_tts.server.speech import SpokenSpan

MAX_FRAME_BYTES = 1 << 20
"""Of one binary frame: Python clients take no larger one, unless they are told to."""

_WAV_HEADER_BYTES = 44


@dataclass(slots=True)
class Sentence:
    """From `audio.start` to `audio.done`."""

    config: Config
    text: list[str] = field(default_factory=list)
    started: bool = False
    bytes_sent: int = 0
    _whole: bytearray = field(default_factory=bytearray)  # where the sound is not streamed
    _at: dict[str, int] = field(default_factory=dict)
    _start: float = 0.0  # seconds of the context's sound before it
    _chunks: int = 0
    _words: list[dict[str, Any]] = field(default_factory=list)

    def start(self, utterance: int, sentence: int, seconds: float) -> str:
        """`sentence_text` is all the text where it was complete before, else what there is."""
        self.started = True
        self._start = seconds
        self._at = {"utterance_index": utterance, "sentence_index": sentence}
        message: dict[str, Any] = {
            "type": "audio.start", **self._at, "sentence_text": "".join(self.text),
            "format": self.config.response_format,
        }  # fmt: skip
        if self.config.stream_audio:
            message["sample_rate"] = self.config.sample_rate
        if self.config.word_timestamps:
            message["word_timestamps"] = True
        return json.dumps(message)

    def sound(self, data: bytes) -> list[str | bytes]:
        """Sound, or nothing where it is sent whole in `rest`."""
        if not self.config.stream_audio:
            self._whole += data
            return []
        before, self.bytes_sent = self.bytes_sent, self.bytes_sent + len(data)
        if self.config.word_timestamps:
            return [self._chunk(data, _ms(before), None)]
        return [data]

    def spoken(self, span: SpokenSpan) -> None:
        """Keeps the times of words, if they are wanted; `rest` has them."""
        if self.config.word_timestamps and span.text.strip():
            self._words += [
                {
                    "word": word.text,
                    "start_ms": round((word.start - self._start) * 1000),
                    "end_ms": round((word.end - self._start) * 1000),
                }
                for word in words_of(span)
            ]

    def rest(self) -> list[str | bytes]:
        """After the last sound: the sound, where it was not streamed; the times, if wanted."""
        if self.config.word_timestamps:
            return [self._chunk(b"", 0, self._words)]
        whole = _with_lengths(self._whole)
        self._whole = bytearray()
        self.bytes_sent += len(whole)
        cuts = range(0, len(whole), MAX_FRAME_BYTES)
        return [whole[at : at + MAX_FRAME_BYTES] for at in cuts]

    def done(self, *, failed: bool) -> str:
        """`sentence_text`, all of it, is ours."""
        message = {
            "type": "audio.done", **self._at, "total_bytes": self.bytes_sent, "error": failed,
            "sentence_text": "".join(self.text),
        }  # fmt: skip
        return json.dumps(message)

    def _chunk(self, data: bytes, start_ms: int, words: list[dict[str, Any]] | None) -> str:
        message = {
            "type": "audio.chunk", **self._at, "chunk_id": self._chunks,
            "chunk_start_ms": start_ms, "chunk_end_ms": _ms(self.bytes_sent),
            "sample_rate": SAMPLE_RATE, "audio_b64": base64.b64encode(data).decode(),
            "timestamps": words,
        }  # fmt: skip
        self._chunks += 1
        return json.dumps(message)


def _ms(pcm_bytes: int) -> int:
    return round(pcm_bytes / BYTES_PER_SAMPLE / SAMPLE_RATE * 1000)


def _with_lengths(sound: bytearray) -> bytes:
    """A WAV that is complete can say how long it is; others are as they were."""
    if sound[:4] == b"RIFF" and sound[36:40] == b"data":
        sound[4:8] = (len(sound) - 8).to_bytes(4, "little")
        sound[40:44] = (len(sound) - _WAV_HEADER_BYTES).to_bytes(4, "little")
    return bytes(sound)
