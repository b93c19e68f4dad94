"""The encoder of a Base checkpoint, as the voice worker wants it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from realtime_tts.errors import CheckpointError
from realtime_tts.voices.audio import Recording
from realtime_tts.voices.file import now
from realtime_tts.voices.form import NewVoice
from realtime_tts.voices.maker import SILENCE_SECONDS, VoiceMaker

if TYPE_CHECKING:
    from realtime_tts.model.voice_encoder import VoiceEncoder


class ModelVoiceMaker:
    """A `VoiceMaker` over the model's `VoiceEncoder`."""

    def __init__(self, encoder: VoiceEncoder) -> None:
        self._encoder = encoder

    def make(self, wanted: NewVoice, recording: Recording, path: Path) -> None:
        from realtime_tts.model.voice_file import save_voice

        voice = self._encoder.encode(
            recording.samples,
            recording.sample_rate,
            transcript=wanted.text,
            silence=SILENCE_SECONDS if wanted.append_silence else 0.0,
            name=wanted.name,
            language=wanted.language,
        )
        save_voice(replace(voice, metadata={"created": now()}), path)


def load_voice_maker(*checkpoints: str) -> VoiceMaker:
    """Load the encoders of the first of these that is a Base checkpoint, in one CPU thread.

    Raises CheckpointError.
    """
    import torch

    from realtime_tts.model import find_checkpoint
    from realtime_tts.model.voice_encoder import VoiceEncoder

    torch.set_num_threads(1)
    reasons = []
    for checkpoint in checkpoints:
        try:
            return ModelVoiceMaker(VoiceEncoder.load(Path(find_checkpoint(checkpoint))))
        except CheckpointError as error:  # another variant, which has no encoders
            reasons.append(str(error))
    raise CheckpointError("; ".join(reasons))
