"""Downloads a checkpoint from the Hub."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from huggingface_hub import snapshot_download
from huggingface_hub.utils import tqdm  # type: ignore[attr-defined]

from realtime_tts.errors import CheckpointError


def download(name: str, patterns: Sequence[str], progress: Callable[[str, int, int], None]) -> Path:
    """Return the folder of the checkpoint with this Hub id: the files of these patterns.

    Raises CheckpointError.
    """
    try:
        path = snapshot_download(
            name,
            allow_patterns=list(patterns),
            tqdm_class=_progress_bar(f"download {name}", progress),
        )
    except Exception as error:  # the client's own, and those of all that it is built on
        raise CheckpointError(
            f"{name!r} is not a local folder and could not be downloaded from the Hub: {error}"
        ) from error
    return Path(path)


def _progress_bar(what: str, progress: Callable[[str, int, int], None]) -> type[Any]:
    """Return the class of a silent progress bar, as the Hub client wants one, that calls
    `progress`.

    Depending on its version the client makes bars that count bytes received, bytes written and
    files. Bytes are what takes time; files are reported only while there is no bar for bytes.
    """
    most: dict[str, int] = {}  # unit -> furthest of its bars

    class Bar(tqdm):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            self._unit = str(kwargs.get("unit", "files"))
            most.setdefault(self._unit, 0)
            super().__init__(*args, **{**kwargs, "disable": True})  # type: ignore[no-untyped-call]

        def update(self, n: float | None = 1) -> bool | None:
            self.n += n or 0  # a disabled bar does not count by itself
            most[self._unit] = max(most[self._unit], int(self.n))
            if self.total and (self._unit == "B" or "B" not in most):
                progress(what, most[self._unit], int(self.total))
            return None

    return Bar
