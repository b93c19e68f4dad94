"""The folder of stored lexicons, shared by several servers: a file for each version.

A version never changes. Files appear and go in one step (link, unlink), so that half a file is
never seen, and the folder is listed again when it has changed.
"""

from __future__ import annotations

import logging
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import TypeVar

from realtime_tts.configuration.stamps import Stamp, stamp
from realtime_tts.lexicons.errors import (
    CannotStore,
    LexiconError,
    Overtaken,
    TooManyLexicons,
    UnknownLexicon,
)
from realtime_tts.lexicons.file import (
    CorruptLexiconError,
    Header,
    encode,
    read_entries,
    read_header,
)
from realtime_tts.logs import event
from realtime_tts.shared_folder import (
    NAME,
    Listing,
    discard,
    link,
    unfinished_in,
    write,
    wrong_name,
)
from realtime_tts.text.lexicon import Entry

log = logging.getLogger(__name__)

T = TypeVar("T")

MAX_LEXICONS = 1_000
MAX_VERSIONS = 100
"""The most versions of one lexicon."""
_FILE = re.compile(rf"(?P<name>{NAME.pattern})@(?P<number>[1-9][0-9]{{0,8}})\.lexicon")


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a lexicon. Equal to another only if it is the same file."""

    name: str
    number: int
    path: Path
    identity: Stamp

    @property
    def ref(self) -> str:
        """The version as `name@number`."""
        return f"{self.name}@{self.number}"


class LexiconFolder:
    """The lexicons in one folder, which need not exist until one is stored. Thread-safe."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        self._lock = threading.Lock()
        self._versions: dict[str, list[Version]] = {}  # by name, the oldest first
        self._listing = Listing(self.folder, self._unreadable)

    def names(self) -> list[str]:
        """Return the names of all lexicons, sorted."""
        return sorted(self._listed())

    def described(
        self, names: Iterable[str], describe: Callable[[LexiconFolder, Version], T]
    ) -> list[T]:
        """Return what `describe` makes of the newest version of each of these lexicons."""
        found = []
        for name in names:
            with suppress(UnknownLexicon):  # just deleted, or damaged, which is logged
                found.append(describe(self, self.get(name)))
        return found

    def versions(self, name: str) -> list[Version]:
        """Return a lexicon's versions, the oldest first. Raises UnknownLexicon."""
        found = self._listed().get(name)
        if not found:
            raise UnknownLexicon(
                f"no lexicon {name[:80]!r}; GET /v1/lexicons lists those there are"
            )
        return found

    def get(self, ref: str) -> Version:
        """Return the version `name@number`, or the newest one of `name`. Raises UnknownLexicon."""
        name, at, number = ref.partition("@")
        found = self.versions(name)
        if not at:
            return found[-1]
        for version in found:
            if str(version.number) == number:
                return version
        there_are = ", ".join(str(version.number) for version in found[-10:])
        raise UnknownLexicon(
            f"the lexicon {name!r} has no version {number[:20]!r}; it has {there_are}"
        )

    def header(self, version: Version) -> Header:
        """Return what is known of a version. Raises UnknownLexicon if it is not readable."""
        with readable(version):
            return read_header(version.path)

    def entries(self, version: Version) -> list[Entry]:
        """Return all entries of a version. Raises UnknownLexicon if it cannot be read any more."""
        with readable(version):
            return list(chain.from_iterable(read_entries(version.path)))

    def put(
        self,
        name: str,
        entries: Sequence[Entry],
        title: str | None = None,
        *,
        after: int | None = None,
    ) -> Version:
        """Store the next version of a lexicon, or the first. `entries` are checked already.
        `after`: the number of the version that it must follow, 0 if it must be the first.

        Raises LexiconError for what is no name, TooManyLexicons, CannotStore; Overtaken if the
        newest version is not the one with the number `after`.
        """
        check_name(name)
        listed = self._listed()
        if name not in listed and len(listed) >= MAX_LEXICONS:
            raise TooManyLexicons(
                f"{MAX_LEXICONS} lexicons are stored; delete one that is not used"
            )
        if len(listed.get(name, ())) >= MAX_VERSIONS:
            raise TooManyLexicons(
                f"the lexicon {name!r} has {MAX_VERSIONS} versions: delete old ones, such as "
                f"{listed[name][0].ref}"
            )
        created = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        data = encode(Header(title=title, created=created, entries=len(entries)), entries)
        newest = listed[name][-1].number if name in listed else 0
        if after not in (None, newest):
            raise _overtaken(name)
        try:
            number = self._publish(name, newest + 1, data, exactly=after is not None)
        except OSError as error:
            raise self._cannot_store(error) from None
        ref = f"{name}@{number}"
        event(log, logging.INFO, "lexicon.stored", lexicon=ref, entries=len(entries))
        return self.get(ref)

    def delete(self, ref: str) -> None:
        """Remove a lexicon, or one version of it; turns that speak with it go on. Raises
        UnknownLexicon, CannotStore."""
        versions = [self.get(ref)] if "@" in ref else self.versions(ref)
        try:
            for version in versions:
                version.path.unlink(missing_ok=True)
        except OSError as error:
            raise self._cannot_store(error) from None
        event(log, logging.INFO, "lexicon.deleted", lexicon=ref)

    # Files.

    def _publish(self, name: str, number: int, data: bytes, *, exactly: bool) -> int:
        """Make a version appear in one step. Return its number, in a race a higher one; or raise
        Overtaken, if it must be `exactly` this one."""
        unfinished = unfinished_in(self.folder)
        try:
            write(unfinished, data)
            while True:
                try:
                    link(unfinished, self.folder / f"{name}@{number}.lexicon")
                    return number
                except FileExistsError:
                    if exactly:
                        raise _overtaken(name) from None
                    number += 1
        finally:
            discard(unfinished)

    def _cannot_store(self, error: OSError) -> CannotStore:
        event(log, logging.ERROR, "lexicons.not_stored", folder=str(self.folder), why=str(error))
        return CannotStore(
            f"the server cannot write its folder of lexicons ({error.strerror or error}): "
            "its operator has to look at --voices-dir"
        )

    # The list.

    def _listed(self) -> dict[str, list[Version]]:
        with self._lock:
            self._refresh()
            return self._versions

    def _refresh(self) -> None:
        entries = self._listing.entries(known=bool(self._versions))
        if entries is None:
            return
        found = [version for entry in entries if (version := _version(entry)) is not None]
        versions: dict[str, list[Version]] = {}
        for version in sorted(found, key=lambda version: version.number):
            versions.setdefault(version.name, []).append(version)
        self._versions = versions
        self._listing.listed()

    def _unreadable(self, why: OSError) -> None:
        event(log, logging.WARNING, "lexicons.unreadable", folder=str(self.folder), why=why)


def _overtaken(name: str) -> Overtaken:
    return Overtaken(f"another version of the lexicon {name!r} was stored first; try again")


def check_name(name: str) -> str:
    """Return `name`. Raises LexiconError if it cannot name a lexicon."""
    if not NAME.fullmatch(name):
        raise LexiconError(wrong_name("a lexicon's", name))
    return name


@contextmanager
def readable(version: Version) -> Iterator[None]:
    """Raise UnknownLexicon for a file that cannot be read any more in this block."""
    try:
        yield
    except (OSError, CorruptLexiconError) as error:
        event(log, logging.WARNING, "lexicon.unreadable", file=version.path.name, why=str(error))
        # Without the path that an OSError names: it is a client that reads this.
        why = getattr(error, "strerror", None) or error
        raise UnknownLexicon(f"the lexicon {version.ref} cannot be read any more: {why}") from None


def _version(entry: os.DirEntry[str]) -> Version | None:
    match = _FILE.fullmatch(entry.name)
    if match is None or (identity := stamp(entry)) is None:  # removed since it was listed
        return None
    return Version(match["name"], int(match["number"]), Path(entry.path), identity)
