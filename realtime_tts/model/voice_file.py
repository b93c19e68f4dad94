"""Voices on disk, with torch: one safetensors file each, as `voices/file.py` describes it."""

from __future__ import annotations

import json
import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from realtime_tts.errors import VoiceError
from realtime_tts.model.voice import Voice
from realtime_tts.voices.file import FORMAT, MOST_BYTES, VERSION


def save_voice(voice: Voice, path: Path) -> None:
    """Write a voice; whoever reads meanwhile sees the file as it was or as it will be.

    Raises VoiceError for codes the format cannot hold, OSError.
    """
    tensors = {"speaker_embedding": voice.embedding.detach().float().cpu().contiguous()}
    if voice.codes is not None:
        codes = voice.codes.cpu()
        if int(codes.min()) < 0 or int(codes.max()) >= 1 << 15:
            raise VoiceError("a reference's codes must be 0 to 32767")
        tensors["codes"] = codes.to(torch.int16).contiguous()
    texts = {"name": voice.name, "model": voice.model}
    optional = {"transcript": voice.transcript, "language": voice.language}
    texts |= {key: value for key, value in optional.items() if value is not None}
    if voice.metadata:
        texts["extra"] = json.dumps(dict(voice.metadata), ensure_ascii=False)
    written = save(tensors, {"format": FORMAT, "version": VERSION, **texts})
    if len(written) > MOST_BYTES:
        raise VoiceError(f"a voice file has at most {MOST_BYTES} bytes, this one {len(written)}")
    _replace(path, written)


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
        metadata=_extra(texts.get("extra", "{}")),
    )


def _tensor(file: Any, name: str, dtype: torch.dtype) -> Tensor | None:
    if name not in file.keys():
        return None
    tensor: Tensor = file.get_tensor(name)
    if tensor.dtype != dtype:
        raise VoiceError(f"its {name} is {tensor.dtype}, expected {dtype}")
    return tensor.clone()  # the file is mapped, and may be replaced


def _extra(text: str) -> dict[str, str]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise VoiceError(f"its extra metadata is not JSON: {error}") from None
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise VoiceError("its extra metadata is not a JSON object of strings")
    return found


def _replace(path: Path, content: bytes) -> None:
    """Write beside the target, then take its place."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(0o644)  # mkstemp's 0600 would hide it from servers of other users
        Path(name).replace(path)
    except BaseException:
        with suppress(FileNotFoundError):
            Path(name).unlink()
        raise
