"""The bytes around the samples of a WAV file or stream."""

from __future__ import annotations

import struct

from realtime_tts.audio.formats import SYNTHETIC, AudioFormat

_TAGS = {"pcm_s16le": 1, "pcm_f32le": 3, "pcm_alaw": 6, "pcm_mulaw": 7}
_UNKNOWN = 0xFFFFFFFF
_LONGEST = _UNKNOWN - 256  # leaves room for the header, and for what stands behind the samples


def _info(comment: str) -> bytes:
    text = comment.encode("ascii") + b"\0"
    chunk = struct.pack("<4sI", b"ICMT", len(text)) + text + bytes(len(text) % 2)
    return struct.pack("<4sI", b"LIST", 4 + len(chunk)) + b"INFO" + chunk


WAV_END = _info(SYNTHETIC)
"""The bytes behind the samples of a file, and their padding. Before them they would confuse
programs that skip 44 bytes without looking at them, and a stream has no end."""


def wav_header(
    audio_format: AudioFormat, data_bytes: int | None = None, end_bytes: int = 0
) -> bytes:
    """Return the header for `data_bytes` bytes of samples; its length depends on the format only.
    `end_bytes`: the bytes behind the samples and their padding.

    None: not known yet. Players take 0xFFFFFFFF as "until the end", and that is how streams of WAV
    are sent; more than 4 GiB, which the header cannot hold, gets it as well. Formats other than
    integer PCM have a longer `fmt ` and a `fact`. An odd number of bytes must be padded.
    """
    width = audio_format.sample_bytes
    assert width is not None, "only samples go into WAV here"
    length = None if data_bytes is None or data_bytes > _LONGEST else data_bytes
    tag, rate = _TAGS[audio_format.encoding], audio_format.sample_rate
    fmt = struct.pack("<HHIIHH", tag, 1, rate, rate * width, width, 8 * width)
    fact = b""
    if audio_format.encoding != "pcm_s16le":
        fmt += struct.pack("<H", 0)
        samples = _UNKNOWN if length is None else length // width
        fact = struct.pack("<4sII", b"fact", 4, samples)
    body = b"WAVE" + struct.pack("<4sI", b"fmt ", len(fmt)) + fmt + fact
    size = _UNKNOWN if length is None else len(body) + 8 + length + length % 2 + end_bytes
    data = _UNKNOWN if length is None else length
    return struct.pack("<4sI", b"RIFF", size) + body + struct.pack("<4sI", b"data", data)
