"""LexiconLibrary: the stored lexicons as a server uses them, those that turns speak with in memory.

Files are read, and words prepared, in threads. Everything else is on the event loop.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from weakref import WeakValueDictionary

from realtime_tts.lexicons.errors import LexiconError, UnknownLexicon
from realtime_tts.lexicons.file import read_entries
from realtime_tts.lexicons.folder import LexiconFolder, Version, readable
from realtime_tts.text.lexicon import Entry, Found, WordList

log = logging.getLogger(__name__)

_MOST_ENTRIES = 200_000
"""Entries in memory beyond those that turns speak with: about 50 MB."""
_LEAST_ENTRIES = 200
"""What a lexicon counts for at least: one of a single word takes memory, too, and there may be one
for each call."""
_REST_SECONDS = 0.0002


class StoredLexicon:
    """One version of a lexicon: the words of a turn once it is `ready`, shared by all turns."""

    def __init__(self, ref: str, version: Version | None) -> None:
        self.ref, self.version = ref, version
        self.failure: LexiconError | None = None
        """Why the lexicon has no words, and never will."""
        self._words: WordList | None = None
        self._waiting: list[Callable[[], None]] = []

    @property
    def ready(self) -> bool:
        """Whether the lexicon can find words, or has failed."""
        return self._words is not None or self.failure is not None

    def when_ready(self, call: Callable[[], None]) -> None:
        """Call `call` once the lexicon is ready, which it is not yet."""
        self._waiting.append(call)

    def settle(self, words: WordList | LexiconError) -> None:
        """Mark the lexicon as loaded, or as failed if `words` is an error; call who waits."""
        if isinstance(words, WordList):
            self._words = words
        else:
            self.failure = words
        waiting, self._waiting = self._waiting, []
        for call in waiting:
            call()

    @property
    def entries(self) -> int:
        """Number of entries in memory."""
        return 0 if self._words is None else len(self._words)

    @property
    def growth(self) -> int:
        """See `Words`."""
        return 1 if self._words is None else self._words.growth

    def __contains__(self, word: str) -> bool:
        return self._words is not None and word in self._words

    def find(self, text: str, at: int, ended: bool) -> Found:
        """See `Words`."""
        assert self._words is not None, "the text waits until it is ready"
        return self._words.find(text, at, ended)


class LexiconLibrary:
    """The stored lexicons of one server."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = LexiconFolder(folder)
        self._live: WeakValueDictionary[str, StoredLexicon] = WeakValueDictionary()
        self._kept: OrderedDict[str, StoredLexicon] = OrderedDict()  # the most recently used last
        self._reading: set[asyncio.Task[None]] = set()

    def pinned(self, refs: Sequence[str]) -> list[str]:
        """Return these lexicons, each as `name@version`: the newest one where none is named. Begins
        to read those that are not in memory. Raises UnknownLexicon."""
        versions = [self.folder.get(ref) for ref in refs]
        for version in versions:
            self._read(version)
        return list(dict.fromkeys(version.ref for version in versions))

    def stored(self, refs: Sequence[str]) -> list[StoredLexicon]:
        """Return those that were `pinned`. One gone from memory and folder since has failed."""
        return [self._stored(ref) for ref in refs]

    def _stored(self, ref: str) -> StoredLexicon:
        if (found := self._live.get(ref)) is not None:
            return found
        try:
            return self._read(self.folder.get(ref))
        except LexiconError as error:
            gone = StoredLexicon(ref, None)
            gone.settle(error)
            return gone

    def _read(self, version: Version) -> StoredLexicon:
        """Return the lexicon of a version, in memory or on its way there."""
        lexicon = self._live.get(version.ref)
        if lexicon is None or lexicon.version != version:
            lexicon = self._live[version.ref] = StoredLexicon(version.ref, version)
            task = asyncio.create_task(self._prepare(lexicon, version), name="lexicon")
            self._reading.add(task)
            task.add_done_callback(self._reading.discard)
        self._kept[version.ref] = lexicon
        self._kept.move_to_end(version.ref)
        return lexicon

    async def _prepare(self, lexicon: StoredLexicon, version: Version) -> None:
        words: WordList | LexiconError
        try:
            words = await asyncio.to_thread(_words_of, version)
        except Exception as error:
            words = error if isinstance(error, UnknownLexicon) else _fault(version)
            if self._live.get(version.ref) is lexicon:  # the next turn tries again
                del self._live[version.ref]
                self._kept.pop(version.ref, None)
        lexicon.settle(words)
        while len(self._kept) > 1 and self._entries > _MOST_ENTRIES:
            self._kept.popitem(last=False)

    @property
    def _entries(self) -> int:
        return sum(max(_LEAST_ENTRIES, lexicon.entries) for lexicon in self._kept.values())


def _fault(version: Version) -> UnknownLexicon:
    """Log an unexpected exception, and return the error for the turns."""
    log.exception("lexicon.fault", extra={"fields": {"file": version.path.name}})
    return UnknownLexicon(
        f"the lexicon {version.ref} cannot be used: a fault of the server, whose log says more"
    )


def _words_of(version: Version) -> WordList:
    with readable(version):
        return WordList(_gently(read_entries(version.path)))


def _gently(parts: Iterable[list[Entry]]) -> Iterator[Entry]:
    """Yield one entry after another, with rests: a thread that always runs would have the event
    loop wait for Python's lock, 5 ms each time."""
    for part in parts:
        yield from part
        time.sleep(_REST_SECONDS)
