"""StoredRegistry: the registry where voices are kept in object storage.

The store has the voices, and a folder on this machine has a copy of each. All processes of the
machine look names up in that folder, so no look-up waits for the network, and speech continues
while the store is down.

A copy is named by its object and the object's version. Missing copies are fetched, and copies that
are not listed any more are removed. There is no state besides the files.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import logging
import os
import time
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from realtime_tts.errors import ConfigError
from realtime_tts.logs import event
from realtime_tts.outage import Outage
from realtime_tts.shared_folder import write
from realtime_tts.voices.errors import CannotStore
from realtime_tts.voices.file import SUFFIX
from realtime_tts.voices.registry import Registry
from realtime_tts.voices.store import VoiceStore

log = logging.getLogger(__name__)

UPDATE_SECONDS = 2.0
"""Seconds between two listings of the store by a machine."""
_LOCK, _UPDATED, _NEW = ".lock", ".updated", ".new"


def open_registry(where: Path | str) -> Registry:
    """Return the registry of the voices in a folder, or at `s3://BUCKET/PREFIX`.

    Connects to nothing yet. Raises ConfigError for any other kind of store.
    """
    text = str(where)
    if text and "://" not in text:
        return Registry(where)
    if not text.startswith("s3://") or text.rstrip("/") == "s3:":
        raise ConfigError(f"voices are kept in a folder or at s3://BUCKET/PREFIX, got {text!r}")
    return StoredRegistry(text, cache_folder(text))


def check_location(where: str) -> None:
    """Raise ConfigError for an unknown kind of store, or if its package is not installed."""
    registry = open_registry(where)
    if isinstance(registry, StoredRegistry):
        VoiceStore(registry.url)


def cache_folder(url: str) -> Path:
    """Return the folder of this machine's copies of the voices at `url`. Creates nothing."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    digest = hashlib.sha256(url.rstrip("/").encode()).hexdigest()[:32]
    return Path(base, "realtime-tts", "voices", digest)


class StoredRegistry(Registry):
    """The voices at `url`, through the copies in `folder`. Thread-safe.

    Several processes may share the folder; `update` may be called in one of them or in all.
    """

    def __init__(self, url: str, folder: Path) -> None:
        super().__init__(folder)
        self.url = url
        self.outage = Outage(log, "voices.store_failed", "voices.store_answers")

    @cached_property
    def store(self) -> VoiceStore:
        """The store, made at first use: engines only look names up. Raises ConfigError."""
        return VoiceStore(self.url)

    def update(self) -> None:
        """Copy changes from the store, unless a process of this machine has just done so.

        While the store does not answer, the copies stay, and one log entry says so.
        """
        self._try_to_follow(again_after=UPDATE_SECONDS / 2)

    def _try_to_follow(self, again_after: float = 0.0) -> None:
        try:
            self._follow(again_after)
        except OSError as error:
            self.outage.begin(why=str(error))
        else:
            self.outage.end(where=self.url)

    def _publish(self, unfinished: Path, name: str, over: bool = False) -> None:
        data = unfinished.read_bytes()
        if over:
            self.store.replace(name, data)
        else:
            try:
                self.store.create(name, data)
            except FileExistsError:
                self._follow()  # fetch the other server's voice, too
                raise
        self._try_to_follow()  # if that fails, it is stored nevertheless

    def _remove(self, path: Path) -> None:
        self.store.delete(_object(path))
        with _locked(self.folder / _LOCK):  # not while an older listing is being copied
            path.unlink(missing_ok=True)

    def cannot_store(self, error: OSError) -> CannotStore:
        event(log, logging.ERROR, "voices.not_stored", where=self.url, why=str(error))
        return CannotStore(
            "the server cannot reach or change its store of voices: try again in some seconds, "
            f"and if that does not help, its operator has to look at --voices-dir ({error})"
        )

    def _follow(self, again_after: float = 0.0) -> None:
        """Bring the copies up to date with the store. Raises OSError.

        Does nothing if that was done less than `again_after` seconds ago.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        # Listed under the lock, so that an older listing never undoes a newer one.
        with _locked(self.folder / _LOCK):
            # Not if it was in the future: a clock was set, or that of a file server is ahead.
            if 0 <= time.time() - _modified(self.folder / _UPDATED) < again_after:
                return
            wanted = {_copy(name, of): name for name, of in self.store.versions().items()}
            there = {path.name for path in self.folder.glob("*" + SUFFIX)}
            missing = {wanted[copy]: copy for copy in wanted.keys() - there}
            new = self.folder / _NEW
            for name, data in self.store.read(missing):
                new.unlink(missing_ok=True)  # of a fetch that was cut off
                write(new, data)  # a copy is never fetched again: it has to survive a power cut
                new.rename(self.folder / missing[name])
            for copy in there - wanted.keys():
                (self.folder / copy).unlink(missing_ok=True)
            (self.folder / _UPDATED).touch()


def _copy(name: str, version: str) -> str:
    """Return the file name of the copy of this version of an object."""
    digest = hashlib.sha256(version.encode()).hexdigest()[:16]
    return f"{name.removesuffix(SUFFIX)}.{digest}{SUFFIX}"


def _object(copy: Path) -> str:
    """Return the name of the object that this file is a copy of."""
    return copy.name.removesuffix(SUFFIX).rpartition(".")[0] + SUFFIX


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a lock that excludes all other processes and threads of this machine."""
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0
