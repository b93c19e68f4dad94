"""Makes voices from recordings, with only the two encoders of a Base checkpoint."""

from __future__ import annotations

from math import ceil
from pathlib import Path
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray

from realtime_tts.errors import CheckpointError, ConfigError, VoiceError
from realtime_tts.extras import install
from realtime_tts.model.config import SAMPLE_RATE, Variant
from realtime_tts.model.config_files import read_config
from realtime_tts.model.encoder_config import read_speaker_encoder, read_speech_encoder
from realtime_tts.model.speaker_encoder import SpeakerEncoder
from realtime_tts.model.speech_encoder import SpeechEncoder
from realtime_tts.model.voice import Voice
from realtime_tts.model.weights import Weights

LEAST_SECONDS = 0.5
MOST_SECONDS = 60.0
RATES = (4_000, 384_000)
_QUIET = 1e-4


class VoiceEncoder:
    """Speaker and speech encoder, in float32. Use from one thread at a time."""

    def __init__(self, speaker: SpeakerEncoder, speech: SpeechEncoder, family: str) -> None:
        self.family = family
        self._speaker, self._speech = speaker, speech

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Load the encoders from a Base checkpoint's folder; the other parts are not read.

        Raises CheckpointError.
        """
        config, place = read_config(folder), torch.device("cpu")
        if config.variant is not Variant.BASE:
            raise CheckpointError(
                f"{folder} is a {config.variant} checkpoint, which has no speaker encoder: voices "
                "are cloned with a Base checkpoint, like Qwen/Qwen3-TTS-12Hz-1.7B-Base"
            )
        with Weights(folder, device=place, dtype=torch.float32, ignored=("talker.",)) as weights:
            speaker = SpeakerEncoder(read_speaker_encoder(folder), weights)
            weights.finish()
        tokenizer = folder / "speech_tokenizer"
        with Weights(
            tokenizer, device=place, dtype=torch.float32, ignored=("decoder.",)
        ) as weights:
            speech = SpeechEncoder(read_speech_encoder(folder), weights)
            weights.finish()
        width, hidden = speaker.config.width, config.talker.transformer.hidden
        if width != hidden:
            raise CheckpointError(
                f"{folder}: speaker embeddings have {width} numbers, the talker takes {hidden}"
            )
        codebooks, groups = speech.config.codebooks, config.talker.code_groups
        if codebooks != groups:
            raise CheckpointError(
                f"{tokenizer}: encoder_valid_num_quantizers should be {groups}, found {codebooks}"
            )
        return cls(speaker, speech, config.family)

    def encode(
        self,
        samples: NDArray[np.float32],
        sample_rate: int,
        *,
        transcript: str | None,
        silence: float = 0.0,
        name: str = "",
        language: str | None = None,
    ) -> Voice:
        """Return the voice of a recording: samples [n] float32, one channel, in [-1, 1].

        With a transcript, the exact words of the recording, the voice gets codes, of the recording
        and `silence` seconds after it; the embedding is of the recording alone. Rates other than 24
        kHz are resampled (`resampled`). Raises VoiceError for a recording of which no voice can be
        made.
        """
        _check(samples, sample_rate, silence)
        at_rate = resampled(samples.astype(np.float32, copy=False), sample_rate)
        sound = torch.from_numpy(np.ascontiguousarray(at_rate))
        said = (transcript or "").strip() or None
        codes = None
        if said is not None:
            quiet = sound.new_zeros(round(silence * SAMPLE_RATE))
            codes = self._speech.encode(torch.cat((sound, quiet)))
        return Voice(
            name=name,
            embedding=self._speaker.embed(sound),
            codes=codes,
            transcript=said,
            model=self.family,
            language=language,
        )


def _check(samples: NDArray[np.float32], rate: int, silence: float) -> None:
    """Raise VoiceError, saying what is wrong with a recording."""
    low, high = RATES
    if not low <= rate <= high:
        raise VoiceError(f"the sample rate must be {low} to {high} Hz, got {rate}")
    if samples.ndim != 1:
        raise VoiceError(f"the recording must have one channel, got an array {samples.shape}")
    seconds = len(samples) / rate
    if not LEAST_SECONDS <= seconds <= MOST_SECONDS:
        raise VoiceError(
            f"the recording must have {LEAST_SECONDS:g} to {MOST_SECONDS:g} seconds, got "
            f"{seconds:.2f}; a few seconds of one person speaking are best"
        )
    if not np.isfinite(samples).all():
        raise VoiceError("the recording has samples that are NaN or infinite")
    if np.abs(samples).max() < _QUIET:
        raise VoiceError("the recording is silent")
    if not 0 <= silence <= 5:
        raise VoiceError(f"0 to 5 seconds of silence can be appended, got {silence}")


def resampled(samples: NDArray[np.float32], rate: int) -> NDArray[np.float32]:
    """Resample samples [n] at `rate` Hz -> [ceil(n * 24,000 / rate)] at 24 kHz.

    soxr's HQ filter is called as by `librosa.resample`, which the official package uses.

    Raises ConfigError if soxr, which only this needs, is not installed.
    """
    if rate == SAMPLE_RATE:
        return samples
    try:
        import soxr
    except ImportError:
        raise ConfigError(
            f"a recording at {rate} Hz has to be resampled, which needs soxr: {install('server')}"
        ) from None
    length = ceil(len(samples) * SAMPLE_RATE / rate)
    found: NDArray[np.float32] = soxr.resample(samples, rate, SAMPLE_RATE, quality="HQ")[:length]
    return np.pad(found, (0, length - len(found)))
