"""The folder of registered voices, shared by several servers and their engines.

Every look-up goes through an index of the files' metadata; an id is never part of a path. Files
appear and disappear in one step (link, rename, unlink), so that nobody ever reads half a file, and
the index is made again when the folder has changed.
"""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import threading
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from realtime_tts.configuration.stamps import Stamp, stamp
from realtime_tts.logs import event
from realtime_tts.shared_folder import Listing, discard, link, unfinished_in
from realtime_tts.voices.errors import CannotStore, UnknownVoice, VoiceExists, not_written
from realtime_tts.voices.file import (
    SUFFIX,
    CorruptVoiceError,
    VoiceRecord,
    check_id,
    read_embedding,
    read_record,
)

log = logging.getLogger(__name__)


def default_folder() -> Path:
    """Return the default folder of voices, in the user's data folder. Creates nothing."""
    base = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(base, "realtime-tts", "voices")


class Registry:
    """The voices in one folder, which need not exist until one is added. Thread-safe."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        self._lock = threading.Lock()
        self._index: dict[str, VoiceRecord] = {}
        self._seen: dict[str, tuple[Stamp, VoiceRecord | None]] = {}
        self._listing = Listing(self.folder, self._unreadable)

    def voices(self) -> list[VoiceRecord]:
        """List all registered voices, sorted by id."""
        with self._lock:
            self._refresh()
            return sorted(self._index.values(), key=lambda record: record.id)

    def find(self, id: str) -> VoiceRecord | None:
        """Return the voice with this id, or None. `id` may be any string."""
        with self._lock:
            self._refresh()
            return self._index.get(id)

    def has(self, id: str) -> bool:
        """Return whether a voice has this id."""
        return self.find(id) is not None

    def get(self, id: str) -> VoiceRecord:
        """Return the voice with this id. Raises UnknownVoice if there is none."""
        found = self.find(id)
        if found is None:
            raise UnknownVoice(
                f"no registered voice {id[:80]!r}; GET /v1/voices lists those there are"
            )
        return found

    def embedding(self, id: str) -> NDArray[np.float32]:
        """Read a voice's speaker embedding [H].

        Raises UnknownVoice, also if it has just been removed.
        """
        record = self.get(id)
        try:
            return read_embedding(record.path)
        except (OSError, CorruptVoiceError) as error:
            event(log, logging.WARNING, "voice.unreadable", file=record.path.name, why=str(error))
            # Without the path that safetensors names: it is a client that reads this.
            why = error if isinstance(error, CorruptVoiceError) else "its file cannot be opened"
            raise UnknownVoice(f"voice {id!r} cannot be read any more: {why}") from None

    def unfinished(self) -> Path:
        """Choose where to write the file of a voice before it is added. Raises CannotStore."""
        try:
            return unfinished_in(self.folder)
        except OSError as error:
            raise self.cannot_store(error) from None

    def check_free(self, id: str) -> None:
        """Raise BadVoiceRequest if `id` cannot name a voice, or VoiceExists if it is taken."""
        if self.find(check_id(id)) is not None:
            raise VoiceExists(
                f"there is a voice {id!r} already: delete it first, or choose another name"
            )

    def add(self, unfinished: Path) -> VoiceRecord:
        """Register the finished file at `unfinished`, which is moved or removed.

        Raises BadVoiceRequest, VoiceExists, CannotStore, or CorruptVoiceError if the file is not
        a voice.
        """
        try:
            record = read_record(unfinished)
            self.check_free(record.id)
            # Named by a digest, so that no name a client chose is ever part of a file name.
            name = hashlib.sha256(record.id.encode()).hexdigest()[:32] + SUFFIX
            try:
                self._publish(unfinished, name)
            except FileExistsError:
                self.check_free(record.id)  # another server was faster
                self._publish(unfinished, name, over=True)  # or the file there is corrupt
        except OSError as error:
            raise self.cannot_store(error) from None
        finally:
            discard(unfinished)
        event(log, logging.INFO, "voice.added", voice=record.id, in_context=record.in_context)
        return self.find(record.id) or record  # nothing lists it, if a store does not answer now

    def delete(self, id: str) -> None:
        """Remove a voice; turns that use it continue. Raises UnknownVoice, CannotStore."""
        record = self.get(id)
        try:
            self._remove(record.path)
        except OSError as error:
            raise self.cannot_store(error) from None
        event(log, logging.INFO, "voice.deleted", voice=id)

    def update(self) -> None:
        """Load changes by other machines. Nothing to do for a folder: each look-up sees them."""

    def cannot_store(self, error: OSError) -> CannotStore:
        """Log why a voice cannot be stored or removed, and return what to tell the client."""
        event(log, logging.ERROR, "voices.not_stored", where=str(self.folder), why=str(error))
        return not_written(error)

    # Where voices are kept.

    def _publish(self, unfinished: Path, name: str, over: bool = False) -> None:
        """Make a finished file appear under `name` in one step. `over`: replace a file that has
        the name, if it is corrupt. Raises FileExistsError, OSError."""
        place = self.folder / name
        if not over:
            link(unfinished, place)
        elif _read(place) is None:
            os.replace(unfinished, place)
        else:
            raise FileExistsError(errno.EEXIST, "there is another voice's file in its place")

    def _remove(self, path: Path) -> None:
        path.unlink(missing_ok=True)

    # The index.

    def _refresh(self) -> None:
        entries = self._listing.entries(known=bool(self._index))
        if entries is not None:
            found = [entry for entry in entries if entry.name.endswith(SUFFIX)]
            self._index, whole = self._scan(found)
            self._listing.listed(whole)

    def _unreadable(self, why: OSError) -> None:
        event(log, logging.WARNING, "voices.unreadable", folder=str(self.folder), why=why)

    def _scan(self, entries: list[os.DirEntry[str]]) -> tuple[dict[str, VoiceRecord], bool]:
        """Return the index, and whether it has all files; if not, the next look-up tries again."""
        whole = True
        index: dict[str, VoiceRecord] = {}
        seen: dict[str, tuple[Stamp, VoiceRecord | None]] = {}
        for entry in sorted(entries, key=lambda entry: entry.name):
            if (identity := stamp(entry)) is None:
                continue  # removed since the folder was listed
            known = self._seen.get(entry.name)
            if known is not None and known[0] == identity:
                fresh, record = False, known[1]
            else:
                path = Path(entry.path)
                try:
                    fresh, record = True, _read(path)
                except OSError as error:  # too many open files, for example: not the file's fault
                    _skipped(path, str(error))
                    whole = whole and isinstance(error, PermissionError)  # that stays as it is
                    continue
            seen[entry.name] = (identity, record)
            if record is not None and index.setdefault(record.id, record) is not record and fresh:
                _skipped(record.path, f"the voice {record.id} is in another file, too")
        self._seen = seen
        return index, whole


def _read(path: Path) -> VoiceRecord | None:
    """Read a file's metadata, or log that it is corrupt and return None. Raises OSError."""
    try:
        return read_record(path)
    except CorruptVoiceError as error:
        _skipped(path, str(error))
        return None


def _skipped(path: Path, why: str) -> None:
    event(log, logging.WARNING, "voice.skipped", file=path.name, why=why)
