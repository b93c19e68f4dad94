"""One voice as one safetensors file, read and written without torch.

Tensors: `speaker_embedding` float32 [H], and for a voice that is used in context `codes` int16
[frames, 16]. Metadata, all strings: `format`, `version`, `name`, `model` (the family of checkpoints
that can speak it); where known `language` and `transcript`; `extra`, a JSON object of strings,
where `created` (ISO 8601, UTC) is written here. `realtime_tts/model/voice_file.py` reads the same
format.
"""

from __future__ import annotations

import json
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from realtime_tts.errors import VoiceError
from realtime_tts.shared_folder import NAME, write, wrong_name
from realtime_tts.voices.errors import BadVoiceRequest

FORMAT = "realtime-tts voice"
VERSION = "1"
_EMBEDDING = "speaker_embedding"
SUFFIX = ".safetensors"
MAX_DIMENSIONS = 8_192
MOST_BYTES = 1 << 20
"""Largest size of a voice file. A minute of codes takes 24 kB, and an embedding 8 kB."""


class CorruptVoiceError(ValueError):
    """The file is not a voice; the message says why."""


@dataclass(frozen=True, slots=True)
class VoiceRecord:
    """The metadata of a registered voice, read without loading it. `id` is the file's `name`.

    `model`: the family of checkpoints that can speak it. `in_context`: the file has codes and a
    transcript, so the voice keeps the recording's way of speaking; otherwise only its embedding is
    used. `dimensions`: length of the embedding. `created`: ISO 8601. `written`: when the file was
    changed, in ns since 1970; tells the voice from one of the same name that was deleted.
    """

    id: str
    model: str
    dimensions: int
    in_context: bool
    language: str | None
    transcript: str | None
    created: str | None
    path: Path
    written: int


def check_id(id: str) -> str:
    """Return `id` unchanged. Raises BadVoiceRequest if it cannot name a voice."""
    if not NAME.fullmatch(id):
        raise BadVoiceRequest(wrong_name("a voice's", id))
    return id


def read_record(path: Path) -> VoiceRecord:
    """Read a file's metadata. Raises CorruptVoiceError, or OSError if the file is gone."""
    details = path.stat()
    if not stat.S_ISREG(details.st_mode):  # opening a named pipe would wait for its writer
        raise CorruptVoiceError("not a file")
    if details.st_size > MOST_BYTES:
        raise CorruptVoiceError(f"{details.st_size} bytes; a voice has {MOST_BYTES} at most")
    try:
        with safe_open(path, "numpy") as file:
            metadata = file.metadata() or {}
            views = {name: file.get_slice(name) for name in file.keys()}
            shapes = {name: tuple(view.get_shape()) for name, view in views.items()}
            dtype = views[_EMBEDDING].get_dtype() if _EMBEDDING in views else "F32"
    except SafetensorError as error:
        raise CorruptVoiceError(f"not a safetensors file: {error}") from None
    if dtype != "F32":
        raise CorruptVoiceError(f"its {_EMBEDDING} is {dtype}, expected F32")
    return _record(path, metadata, shapes, details.st_mtime_ns)


def _record(
    path: Path, metadata: Mapping[str, str], shapes: Mapping[str, tuple[int, ...]], written: int
) -> VoiceRecord:
    name, embedding = metadata.get("name", ""), shapes.get(_EMBEDDING, ())
    if (metadata.get("format"), metadata.get("version")) != (FORMAT, VERSION):
        raise CorruptVoiceError(f"it does not say that it is a {FORMAT!r} of version {VERSION}")
    if not NAME.fullmatch(name):
        raise CorruptVoiceError(f"its name {name[:80]!r} is not that of a voice")
    if len(embedding) != 1 or not 0 < embedding[0] <= MAX_DIMENSIONS:
        raise CorruptVoiceError(f"no {_EMBEDDING} of one dimension, found shape {embedding}")
    return VoiceRecord(
        id=name,
        model=metadata.get("model", ""),
        dimensions=embedding[0],
        in_context="codes" in shapes and bool(metadata.get("transcript")),
        language=metadata.get("language") or None,
        transcript=metadata.get("transcript") or None,
        created=_created(metadata.get("extra", "{}")),
        path=path,
        written=written,
    )


def _created(extra: str) -> str | None:
    try:
        found = json.loads(extra)
    except (ValueError, RecursionError):
        raise CorruptVoiceError("its extra metadata is not JSON") from None
    created = found.get("created") if isinstance(found, dict) else None
    return created if isinstance(created, str) else None


def read_embedding(path: Path) -> NDArray[np.float32]:
    """Read the speaker embedding [H]. Raises CorruptVoiceError, or OSError if the file is gone."""
    try:
        with safe_open(path, "numpy") as file:
            found = np.asarray(file.get_tensor(_EMBEDDING))
    except SafetensorError as error:
        raise CorruptVoiceError(f"not a safetensors file: {error}") from None
    if not np.isfinite(found).all():
        raise CorruptVoiceError(f"its {_EMBEDDING} is not finite")
    return found


def write_voice(
    path: Path,
    embedding: NDArray[np.float32],
    *,
    name: str,
    model: str,
    codes: NDArray[np.integer[Any]] | None = None,
    language: str | None = None,
    transcript: str | None = None,
) -> None:
    """Write a voice file at `path`, which nobody reads yet: embedding [H], codes [frames, 16].

    Raises OSError, or VoiceError for codes out of range and for a file that would be too large.
    """
    tensors: dict[str, NDArray[np.float32] | NDArray[np.int16]] = {_EMBEDDING: embedding}
    if codes is not None:
        if codes.min() < 0 or codes.max() >= 1 << 15:
            raise VoiceError("a reference's codes must be 0 to 32767")
        tensors["codes"] = codes.astype(np.int16)
    extra = json.dumps({"created": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")})
    metadata = {"format": FORMAT, "version": VERSION, "name": name, "model": model, "extra": extra}
    metadata |= {"language": language} if language else {}
    metadata |= {"transcript": transcript} if transcript else {}
    written = save(tensors, metadata)
    if len(written) > MOST_BYTES:
        raise VoiceError(f"a voice file has at most {MOST_BYTES} bytes, this one {len(written)}")
    write(path, written)
