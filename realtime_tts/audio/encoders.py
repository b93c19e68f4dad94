"""Encoders turn the engine's PCM of one stream into bytes of another format.

An encoder is made for an `AudioFormat`: it has the stages that the stream asks for, a resampler if
the rate is another, and a body that turns samples into the format's bytes. It lives as long as its
stream, and its bytes do not depend on the pieces in which the sound arrives.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import soxr
from numpy.typing import NDArray

from realtime_tts.audio import codecs, g711
from realtime_tts.audio.formats import ENCODINGS, ENGINE_RATE, AudioFormat, audio_format
from realtime_tts.audio.pcm import BYTES_PER_SAMPLE, from_s16le, to_s16le
from realtime_tts.audio.stages import NO_STAGES, Chain
from realtime_tts.audio.wav import wav_header
from realtime_tts.errors import RequestError
from realtime_tts.extras import install


class Encoder:
    """Encodes one stream: `encode` takes whole samples (s16le, 24 kHz, mono) and returns what can
    be sent, maybe nothing.

    `finish` returns the rest; only `close` may follow it. Call `close` in any case. Raises
    RequestError if this installation lacks what the format needs. `chain`: the stages that the
    sound passes first.
    """

    def __init__(self, audio_format: AudioFormat, chain: Chain = NO_STAGES) -> None:
        require(audio_format)
        self.format = audio_format
        self._chain = chain
        self._body = _body(audio_format)
        rate = audio_format.sample_rate
        self._resampler = None if rate == ENGINE_RATE else Resampler(ENGINE_RATE, rate)
        self._taken = 0
        self._finished = False

    @property
    def given_samples(self) -> int:
        """Samples taken that are in the bytes returned so far; at the end it is all of them.

        For a compressed format this is right within 60 ms, for others exact.
        """
        if self._finished:
            return self._taken
        given = self._body.position * ENGINE_RATE // self.format.sample_rate
        return min(given, self._taken)

    def encode(self, pcm: bytes) -> bytes:
        assert len(pcm) % BYTES_PER_SAMPLE == 0, f"half a sample: {len(pcm)} bytes"
        self._taken += len(pcm) // BYTES_PER_SAMPLE
        return self._encode(self._chain.push(pcm))

    def finish(self) -> bytes:
        self._finished = True
        rest = self._chain.finish()
        encoded = self._encode(rest) if rest else b""
        if self._resampler is not None:
            encoded += self._encode_floats(self._resampler.finish())
        return encoded + self._body.finish()

    def close(self) -> None:
        """Drop what the encoder holds. Idempotent."""
        self._body.close()

    def _encode(self, pcm: bytes) -> bytes:
        if self._resampler is None:
            return self._body.encode(pcm)
        return self._encode_floats(self._resampler.push(from_s16le(pcm)))

    def _encode_floats(self, samples: NDArray[np.float32]) -> bytes:
        if isinstance(self._body, _FloatBody):
            return self._body.encode_floats(samples)
        return self._body.encode(to_s16le(samples))


class Resampler:
    """Changes the sample rate of one stream. Feed with `push`, then `finish` once.

    soxr's polyphase filter ("HQ", 20 bits) carries its state from piece to piece, so that pieces
    give exactly what the whole gives. Each sample needs some later sound: of the first 80 ms, from
    61 to 69 leave at once, and the rest follows with later pieces. What comes out is aligned with
    what went in: nothing is delayed, only held. Of n samples in, round(n * to_rate / from_rate)
    come out.
    """

    def __init__(self, from_rate: int, to_rate: int) -> None:
        # Floats: for integers soxr dithers with a seed of its own, and no two runs are alike.
        self._stream = soxr.ResampleStream(from_rate, to_rate, 1, dtype="float32", quality="HQ")

    def push(self, samples: NDArray[np.float32]) -> NDArray[np.float32]:
        """Take `samples` [n]; return the sound at the new rate that is ready."""
        out: NDArray[np.float32] = self._stream.resample_chunk(samples)
        return out

    def finish(self) -> NDArray[np.float32]:
        """Return the rest of the sound at the new rate."""
        out: NDArray[np.float32] = self._stream.resample_chunk(
            np.zeros(0, dtype=np.float32), last=True
        )
        return out


def available() -> tuple[str, ...]:
    """Return the encodings that this installation can make."""
    formats = (audio_format(encoding) for encoding in ENCODINGS)
    return tuple(each.encoding for each in formats if not each.needs_codec or codecs.av is not None)


def require(audio_format: AudioFormat) -> None:
    """Raise RequestError, which says what to install, if this installation cannot make it."""
    if audio_format.needs_codec and codecs.av is None:
        raise RequestError(
            f"this server cannot make {audio_format.encoding}: it has {', '.join(available())}; "
            f"for the others install the extra `codecs` beside the server: {install('codecs')}"
        )


class _SampleBody:
    """Converts samples to bytes one by one, perhaps behind a WAV header; used like `CodecBody`."""

    def __init__(self, audio_format: AudioFormat) -> None:
        self._header = wav_header(audio_format) if audio_format.container == "wav" else b""
        self._convert = _CONVERSIONS[audio_format.encoding]
        self.position = 0

    def encode(self, pcm: bytes) -> bytes:
        self.position += len(pcm) // BYTES_PER_SAMPLE
        return self._headed(self._convert(pcm))

    def finish(self) -> bytes:
        return self._headed(b"")

    def close(self) -> None:
        pass

    def _headed(self, data: bytes) -> bytes:
        header, self._header = self._header, b""
        return header + data if header else data


class _FloatBody(_SampleBody):
    """Converts samples to floats in [-1, 1], after resampling without rounding to 16 bits first."""

    def encode_floats(self, samples: NDArray[np.float32]) -> bytes:
        self.position += len(samples)
        return self._headed(np.clip(samples, -1.0, 1.0).astype("<f4").tobytes())


_CONVERSIONS: dict[str, Callable[[bytes], bytes]] = {
    "pcm_s16le": lambda pcm: pcm,
    "pcm_f32le": lambda pcm: from_s16le(pcm).astype("<f4").tobytes(),
    "pcm_mulaw": g711.mulaw,
    "pcm_alaw": g711.alaw,
}


def _body(audio_format: AudioFormat) -> codecs.CodecBody | _SampleBody:
    if audio_format.needs_codec:
        return codecs.CodecBody(audio_format)
    return (_FloatBody if audio_format.encoding == "pcm_f32le" else _SampleBody)(audio_format)
