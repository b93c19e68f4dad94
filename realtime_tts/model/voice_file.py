"""Loads voices with torch: one safetensors file each, as `voices/file.py` writes it."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from realtime_tts.errors import VoiceError
from realtime_tts.model.voice import Voice
from realtime_tts.voices.file import FORMAT, MOST_BYTES, VERSION


def load_voice(path: Path) -> Voice:
    """Read a voice. Raises VoiceError for anything that is not a whole file of this format."""
    try:
        details = path.stat()
        if not stat.S_ISREG(details.st_mode):  # opening a pipe would wait for its writer
            raise VoiceError("it is no file")
        if details.st_size > MOST_BYTES:
            raise VoiceError(f"it has {details.st_size} bytes, a voice has at most {MOST_BYTES}")
        with safe_open(path, framework="pt") as file:
            return _read(file)
    except FileNotFoundError:
        raise VoiceError(f"there is no voice file {path}") from None
    except (OSError, SafetensorError) as error:
        raise VoiceError(f"{path} cannot be read as a voice: {error}") from error
    except VoiceError as error:
        raise VoiceError(f"{path} is not a voice: {error}") from error


def _read(file: Any) -> Voice:
    texts: dict[str, str] = file.metadata() or {}
    if texts.get("format") != FORMAT:
        raise VoiceError(f"it does not say that it is one (format: {FORMAT!r})")
    if texts.get("version") != VERSION:
        raise VoiceError(f"it has version {texts.get('version')!r}, this server reads {VERSION!r}")
    for key in ("name", "model"):
        if not texts.get(key):
            raise VoiceError(f"it does not say its {key}")
    embedding = _tensor(file, "speaker_embedding", torch.float32)
    if embedding is None:
        raise VoiceError("it has no speaker_embedding")
    codes = _tensor(file, "codes", torch.int16)
    return Voice(
        name=texts["name"],
        embedding=embedding,
        codes=None if codes is None else codes.long(),
        transcript=texts.get("transcript"),
        model=texts["model"],
        language=texts.get("language"),
    )


def _tensor(file: Any, name: str, dtype: torch.dtype) -> Tensor | None:
    if name not in file.keys():
        return None
    tensor: Tensor = file.get_tensor(name)
    if tensor.dtype != dtype:
        raise VoiceError(f"its {name} is {tensor.dtype}, expected {dtype}")
    return tensor.clone()  # the file is mapped, and may be replaced
