"""Registered voices for an engine: loaded once, and loaded again when their file is replaced."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from realtime_tts.logs import event
from realtime_tts.recent import Recent
from realtime_tts.voices.registry import Registry

log = logging.getLogger(__name__)

V = TypeVar("V")
_KEPT = 256


class LoadedVoices(Generic[V]):
    """A cache of loaded voices. Calling it with a name returns what `load` made of the voice's
    file, or None if there is no such voice or it cannot be loaded.

    Thread-safe, because the server's thread uses an in-process engine's voices, too. The 256 voices
    used last are kept, of at most 100 kB each.
    """

    def __init__(self, registry: Registry, load: Callable[[Path], V]) -> None:
        self._registry = registry
        self._load = load
        self._lock = threading.Lock()
        self._loaded: Recent[str, tuple[object, V]] = Recent(_KEPT)

    def __call__(self, name: str, /) -> V | None:
        with self._lock:
            return self._found(name.lower())

    def _found(self, name: str) -> V | None:
        record = self._registry.find(name)
        if record is None:
            self._loaded.pop(name, None)
            return None
        found = self._loaded.get(record.id)
        # The registry makes a new record for a new file: the same record means the same file.
        if found is None or found[0] is not record:
            try:
                found = (record, self._load(record.path))
            except Exception as error:
                # One unreadable file must not end the engine that speaks for everybody else.
                event(log, logging.WARNING, "voice.not_loaded", voice=record.id, why=str(error))
                return None
        self._loaded[record.id] = found
        return found[1]
