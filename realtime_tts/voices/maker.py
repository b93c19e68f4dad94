"""The encoder that the worker calls, and a stand-in for servers without a model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from realtime_tts.voices.audio import Recording
from realtime_tts.voices.file import write_voice
from realtime_tts.voices.form import NewVoice

_BANDS = 64
SILENCE_SECONDS = 0.5
"""Silence appended to a recording unless the request forbids it, so that the last phoneme of the
recording does not bleed into the speech."""


VoiceMaker = Callable[[NewVoice, Recording, Path], None]
"""Encodes a recording with one checkpoint, and writes the voice as a file (see file.py) at a path.
It runs in the worker, where it may block.

If the wanted voice has a text, the file has codes as well. Raises RealtimeTTSError for a recording
that cannot be encoded."""


def make_fake(wanted: NewVoice, recording: Recording, path: Path) -> None:
    """Encode as the fake engine does: the embedding is a coarse spectrum, and nothing is trained.
    A `VoiceMaker`."""
    power = np.abs(np.fft.rfft(recording.samples, 2 * 4_096)[1:]) ** 2
    bands = np.log1p(power.reshape(_BANDS, -1).sum(axis=1)).astype(np.float32)
    silence = SILENCE_SECONDS if wanted.append_silence else 0.0
    frames = round((recording.seconds + silence) * 12.5)
    codes = np.zeros((frames, 16), np.int16) if wanted.text else None
    write_voice(
        path,
        bands / np.float32(np.linalg.norm(bands) + 1e-6),
        name=wanted.name,
        model="fake",
        codes=codes,
        language=wanted.language,
        transcript=wanted.text,
    )


def load_fake() -> VoiceMaker:
    """Return the fake encoder; the worker unpickles and calls this function."""
    return make_fake
