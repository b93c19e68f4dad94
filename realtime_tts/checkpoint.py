"""Finds a checkpoint: a local folder as it is, a Hub id by downloading it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path

from realtime_tts.errors import CheckpointError

Progress = Callable[[str, int, int], None]
"""Called with (what, done, total) while something takes longer than a second."""

FILES = (
    "*.json",
    "*.safetensors",
    "merges.txt",
    "speech_tokenizer/*.json",
    "speech_tokenizer/*.safetensors",
)
"""Patterns of the files to download: never pickled weights, never code."""

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")


def ignore_progress(what: str, done: int, total: int) -> None:
    """Ignore all progress."""


def find_checkpoint(source: str | Path, progress: Progress = ignore_progress) -> Path:
    """Return the folder of a checkpoint, downloaded first if `source` is a Hub id ("owner/name").

    A folder of that name wins. Raises CheckpointError.
    """
    name = str(source)
    folder = Path(os.path.expanduser(source))  # as it is if there is no such home
    try:
        if name and folder.is_dir():  # an empty name would be the present folder
            return folder
    except OSError as error:
        raise CheckpointError(f"{name!r} cannot be opened: {error.strerror}") from None
    if not _HUB_ID.fullmatch(name):
        raise CheckpointError(f"{name!r} is neither a folder nor a Hub id like 'Qwen/Qwen3-TTS'")
    from realtime_tts.hub import download  # 0.15 s, which a folder does without

    return download(name, FILES, progress)


def expect_checkpoint(folder: Path) -> None:
    """Raise CheckpointError for a folder without a checkpoint, before any large import."""
    if not (folder / "config.json").exists():
        raise missing(folder / "config.json")


def missing(path: Path) -> CheckpointError:
    """Return the error for a missing file that every checkpoint has."""
    return CheckpointError(f"{path} is missing: is {path.parent} a Qwen3-TTS checkpoint folder?")


_SAMPLES, _SAMPLE_BYTES = 16, 4_096
"""Samples that are read of a file of weights, and their bytes: training changes all of them."""


def fingerprint(folder: Path) -> str:
    """Return a hash that tells checkpoints apart, of the settings and of some of the weights."""
    found = blake2b(digest_size=8)
    for path in sorted(path for pattern in FILES for path in folder.glob(pattern)):
        size = path.stat().st_size
        found.update(f"{path.relative_to(folder)}:{size};".encode())
        with path.open("rb") as file:
            for number in range(_SAMPLES):
                file.seek(size * number // _SAMPLES)
                found.update(file.read(_SAMPLE_BYTES))
    return found.hexdigest()
