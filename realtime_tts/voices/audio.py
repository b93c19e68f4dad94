"""Decodes a recording into samples, within bounds that no file can exceed.

The length and duration in a header are never trusted: samples are counted while they are decoded,
one block at a time, so memory is bounded by the limits here and not by the header.
"""

from __future__ import annotations

import io
import struct
from dataclasses import dataclass

import numpy as np
import soundfile
from numpy.typing import NDArray

from realtime_tts.voices.errors import BadAudio, UnsupportedMedia

MIN_SECONDS, MAX_SECONDS = 1.0, 60.0
MIN_RATE, MAX_RATE = 8_000, 192_000
MAX_CHANNELS = 8
SILENT_PEAK = 1e-3
"""Peak below which a recording counts as silent: -60 dBFS."""

_FORMATS = {"WAV", "WAVEX", "RF64", "FLAC", "OGG", "MP3"}
_WAV = b"RIFF", b"RF64"
"""How a WAV begins; the second one has 64 bits for its sizes."""
_BLOCK = 16_384
_COMPLETE = 0.98
"""Share of the header's number of samples that must exist; encoders round and pad a little."""
_UNKNOWN_SIZE = 0x7FFF0000
"""Size from which on that in the header of a WAV means one that was written into a pipe, where the
length is unknown: SoX says 0x7FFFF000, arecord 0x80000000, FFmpeg 0xFFFFFFFF."""
_UNKNOWN_LENGTH = (1 << 63) - 1
"""What libsndfile says for a FLAC that was written into a pipe."""


@dataclass(frozen=True, slots=True)
class Recording:
    """A recording as mono float32 samples in [-1, 1], at the file's own sample rate."""

    samples: NDArray[np.float32]
    sample_rate: int

    @property
    def seconds(self) -> float:
        return len(self.samples) / self.sample_rate


class _Stream(soundfile.SoundFile):  # type: ignore[misc]
    """A recording that is read from its beginning to its end. After each block, SoundFile seeks to
    where it is, which fails where the length is unknown."""

    def seekable(self) -> bool:
        return False


def decode(data: bytes) -> Recording:
    """Decode WAV, FLAC, OGG or MP3. Raises BadAudio, or UnsupportedMedia for anything else."""
    _check_kind(data)
    if data[:4] == b"RIFF":
        data = _until_its_end(data)
    try:
        with _Stream(io.BytesIO(data)) as file:
            _check_header(file)
            samples, promised = _read(file), file.frames
            rate = file.samplerate
    except soundfile.LibsndfileError as error:
        why = error.error_string  # without the place in memory that it was read from
        raise BadAudio(
            f"the recording cannot be decoded, it may be truncated or damaged: {why}"
        ) from None
    except MemoryError:
        raise BadAudio("the recording needs too much memory to be decoded") from None
    _check_whole(data, len(samples), promised)
    return _checked(samples, rate)


def _check_kind(data: bytes) -> None:
    """Check a file's format by its first bytes, so that libsndfile's rarely used readers never
    see an upload."""
    if not data:
        raise BadAudio("the recording is empty: 0 bytes")
    wav = data[:4] in _WAV and data[8:12] == b"WAVE"
    mp3 = data[:3] == b"ID3" or _is_mp3_frame(data[:2])
    if not (wav or mp3 or data[:4] in (b"fLaC", b"OggS")):
        raise UnsupportedMedia(
            "the recording must be WAV, FLAC, OGG or MP3; "
            f"this file begins with {data[:8].hex(' ')}, which is none of them"
        )


def _is_mp3_frame(begins: bytes) -> bool:
    """Return whether these two bytes begin a frame of MP3. AAC's say that there is no layer."""
    bits = int.from_bytes(begins, "big")
    return bits & 0xFFE0 == 0xFFE0 and bits & 0x0006 != 0


def _check_header(file: soundfile.SoundFile) -> None:
    if file.format not in _FORMATS:
        raise UnsupportedMedia(f"the recording must be WAV, FLAC, OGG or MP3, found {file.format}")
    if not MIN_RATE <= file.samplerate <= MAX_RATE:
        raise BadAudio(
            f"the recording's sample rate must be {MIN_RATE} to {MAX_RATE} Hz, "
            f"found {file.samplerate}: convert it, 24000 Hz is best"
        )
    if not 1 <= file.channels <= MAX_CHANNELS:
        raise BadAudio(
            f"the recording must have 1 to {MAX_CHANNELS} channels, found {file.channels}: "
            "mix it to mono"
        )


def _read(file: soundfile.SoundFile) -> NDArray[np.float32]:
    """Read all samples, mixed to mono. Raises BadAudio once they are too many or not finite, and if
    nothing is left of channels that are not silent."""
    limit = int(MAX_SECONDS * file.samplerate)
    blocks, count, loudest = [], 0, 0.0
    while True:
        block = file.read(_BLOCK, dtype="float32", always_2d=True)
        if len(block) == 0:
            break
        with np.errstate(invalid="ignore"):  # infinity in one channel, minus infinity in another
            mono = block.mean(axis=1, dtype=np.float64)
        if not (np.abs(mono) < 1e6).all():  # false for NaN, too
            raise BadAudio(
                "the recording has samples that are NaN, infinite or far beyond full scale: "
                "export it again as 16-bit PCM"
            )
        count += len(block)
        if count > limit:
            raise BadAudio(
                f"the recording is longer than {MAX_SECONDS:g} s: "
                "10 to 20 s of clean speech are enough"
            )
        blocks.append(mono.astype(np.float32))
        loudest = max(loudest, float(np.abs(block).max()))
    samples = np.concatenate(blocks) if blocks else np.zeros(0, np.float32)
    if loudest >= SILENT_PEAK > np.abs(samples).max(initial=0.0):
        raise BadAudio(
            "the recording's channels cancel each other out when they are mixed, because they are "
            "in opposite phase: send one of them alone"
        )
    return samples


def _check_whole(data: bytes, count: int, promised: int) -> None:
    cut = promised != _UNKNOWN_LENGTH and count < promised * _COMPLETE
    if data[:4] in _WAV:
        cut = cut or _wav_is_cut(data)
    elif data[:4] == b"OggS":
        last = data.rfind(b"OggS")
        cut = cut or not data[last + 5 : last + 6] or not data[last + 5] & 0x04  # end of stream
    if cut:
        raise BadAudio("the recording is truncated: its end is missing; send the whole file")


def _until_its_end(data: bytes) -> bytes:
    """Return a WAV with an unknown size of its samples, if its program wrote a zero and could not
    come back to fill it in. Where the size of the whole is right, there are no samples."""
    found = _samples_in(data)
    if found is None or found[1] or len(data) == 8 + int.from_bytes(data[4:8], "little"):
        return data
    begin, _ = found
    return data[: begin - 4] + b"\xff" * 4 + data[begin:]


def _wav_is_cut(data: bytes) -> bool:
    """Return whether a WAV ends before its chunk of samples does, which libsndfile ignores."""
    found = _samples_in(data)
    return found is None or (found[1] < _UNKNOWN_SIZE and sum(found) > len(data))


def _samples_in(data: bytes) -> tuple[int, int] | None:
    """Return where the samples of a WAV begin, and their size as its header says; None without."""
    position, large = 12, _UNKNOWN_SIZE
    while position + 8 <= len(data):
        name, size = struct.unpack_from("<4sI", data, position)
        if name == b"ds64" and position + 24 <= len(data):
            (large,) = struct.unpack_from("<Q", data, position + 16)
        if name == b"data":
            return position + 8, large if data[:4] == b"RF64" else size
        position += 8 + size + size % 2
    return None


def _checked(samples: NDArray[np.float32], rate: int) -> Recording:
    seconds = len(samples) / rate
    if seconds < MIN_SECONDS:
        raise BadAudio(
            f"the recording must be at least {MIN_SECONDS:g} s long, found {seconds:.2f} s: "
            "3 s or more of speech make a good voice"
        )
    peak = float(np.abs(samples).max())
    if peak < SILENT_PEAK:
        raise BadAudio("the recording is silent: it never gets louder than -60 dBFS")
    return Recording(samples / np.float32(peak) if peak > 1 else samples, rate)
