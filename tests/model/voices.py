"""Voices of torch, written as the server writes those that it has made."""

from pathlib import Path

from realtime_tts.model import Voice
from realtime_tts.voices.file import write_voice


def save_voice(voice: Voice, path: Path) -> None:
    codes = None if voice.codes is None else voice.codes.numpy()
    write_voice(
        path,
        voice.embedding.numpy(),
        name=voice.name,
        model=voice.model,
        codes=codes,
        language=voice.language,
        transcript=voice.transcript,
    )
