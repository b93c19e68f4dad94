"""A voice: what a Base checkpoint keeps of one or several recordings.

The speaker embedding is enough to speak in it. With the recording's codes and transcript the model
is also shown how the speaker talks (in-context cloning). `voice_file.py` stores voices,
`voice_encoder.py` makes them from recordings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from realtime_tts.errors import VoiceError


@dataclass(frozen=True, eq=False)
class Voice:
    """A voice that a Base checkpoint can speak. Raises VoiceError.

    embedding [H] float32. codes [m, 16] int64 and transcript: both for in-context cloning, or
    neither. `model`: the family of checkpoints that can speak it (`ModelConfig.family`).
    `language`: the one it was recorded in, if known. Equal only to itself, because prepared prompts
    are cached by identity.
    """

    name: str
    embedding: Tensor
    codes: Tensor | None
    transcript: str | None
    model: str
    language: str | None = None

    def __post_init__(self) -> None:
        embedding, codes = self.embedding, self.codes
        if embedding.dim() != 1 or not len(embedding) or not embedding.is_floating_point():
            raise VoiceError(
                "a speaker embedding is one row of floating-point numbers, got "
                f"{list(embedding.shape)} of {embedding.dtype}"
            )
        if not bool(embedding.isfinite().all()):
            raise VoiceError("the speaker embedding has numbers that are NaN or infinite")
        if codes is None:
            return
        if codes.dim() != 2 or not codes.numel() or codes.is_floating_point():
            raise VoiceError(
                f"a reference's codes are integers [frames, codebooks], got {list(codes.shape)} "
                f"of {codes.dtype}"
            )
        if not self.transcript or not self.transcript.strip():
            raise VoiceError("a voice with a recording's codes needs the recording's transcript")


class VoiceLookup(Protocol):
    """Looks up voices by name for an engine; they may come and go while it runs."""

    def __call__(self, name: str, /) -> Voice | None:
        """Return the voice of that name (lower case), or None.

        This must be quick: it is called in the engine's loop. It must return the same object as
        long as the voice is the same, because what an engine prepares for a voice is cached by
        identity.
        """
