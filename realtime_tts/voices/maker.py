"""What the worker needs of a model, and a stand-in for servers that have none."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import numpy as np

from realtime_tts.voices.audio import Recording
from realtime_tts.voices.file import write_voice
from realtime_tts.voices.form import NewVoice

_BANDS = 64
SILENCE_SECONDS = 0.5
"""Appended to a recording unless the client says no: its last phoneme would bleed into speech."""


class VoiceMaker(Protocol):
    """Encodes recordings with one checkpoint. Lives in the worker, and may take its time."""

    def make(self, wanted: NewVoice, recording: Recording, path: Path) -> None:
        """Write the voice as a file (see file.py) at `path`.

        With `wanted.text` it has codes as well. Raises RealtimeTTSError for a recording that it
        cannot encode.
        """


class FakeVoiceMaker:
    """Takes the place of an encoder beside the fake engine: its embedding is a coarse spectrum.

    It is no speaker encoder, and nothing that was trained is in it.
    """

    def make(self, wanted: NewVoice, recording: Recording, path: Path) -> None:
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
    """The loader of the fake, as the worker wants one."""
    return FakeVoiceMaker()
