"""A version of a lexicon as a file: a line of JSON that describes it (`Header`), and lines with a
few hundred entries each (lists of `Entry`), so that it need not be read all at once."""

from __future__ import annotations

import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import msgspec

from realtime_tts.lexicons.errors import LexiconError, LexiconTooLarge
from realtime_tts.protocol.settings import Limits
from realtime_tts.text.lexicon import Entry as Entry
from realtime_tts.text.lexicon import folded

FORMAT = "realtime-tts lexicon 1"
MAX_ENTRIES = 20_000
MAX_CHARS = Limits().max_lexicon_chars
"""The most characters of a word, or of what replaces it."""
MAX_TITLE_CHARS = 256
_MAX_HEADER_BYTES = 4_096
_ENTRIES_OF_A_LINE = 250
_MOST_LINE_BYTES = 1 << 20
"""Bytes of the longest line read: 250 entries of the longest words in the widest characters have a
quarter of that."""


class CorruptLexiconError(ValueError):
    """The file is not a lexicon; the message says why."""


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a version without its entries. `title`: its name for people, if it has one;
    `created`: ISO 8601, UTC; `entries`: how many there are."""

    format: str = FORMAT
    title: str | None = None
    created: str
    entries: int


def checked(entries: Iterable[Entry]) -> list[Entry]:
    """Return the entries in alphabetical order, without any whose word came before. Raises
    LexiconError, LexiconTooLarge."""
    found: dict[tuple[str, bool], Entry] = {}
    for number, entry in enumerate(entries, 1):
        _check(entry.word, f"the word of entry {number}")
        _check(entry.say, f"what entry {number} says")
        if " ".join(entry.word.split()) != entry.word:
            raise LexiconError(
                f"the word of entry {number} may have single spaces between its parts and no "
                f"others, found {entry.word!r}"
            )
        if number > MAX_ENTRIES:
            raise LexiconTooLarge(
                f"a lexicon has at most {MAX_ENTRIES} entries: part it, and name several"
            )
        found.setdefault((entry.word, entry.case_sensitive), entry)
    if not found:
        raise LexiconError("a lexicon has at least one entry, found none")
    return sorted(found.values(), key=lambda entry: folded(entry.word))


def _check(text: str, what: str) -> None:
    if not 0 < len(text) <= MAX_CHARS:
        raise LexiconError(f"{what} must have 1 to {MAX_CHARS} characters, found {len(text)}")
    if not text.isprintable() or text.isspace():
        raise LexiconError(f"{what} must be printable characters, found {ascii(text)}")


def encode(header: Header, entries: Sequence[Entry]) -> bytes:
    """Return the file's bytes."""
    parts = range(0, len(entries), _ENTRIES_OF_A_LINE)
    lines = (msgspec.json.encode(entries[at : at + _ENTRIES_OF_A_LINE]) for at in parts)
    return b"\n".join([msgspec.json.encode(header), *lines, b""])


def read_header(path: Path) -> Header:
    """Read a file's header. Raises CorruptLexiconError; OSError if the file is gone."""
    with _opened(path) as file:
        return _header(file.readline(_MAX_HEADER_BYTES))


def read_entries(path: Path) -> Iterator[list[Entry]]:
    """Yield the entries, a few hundred at a time. Raises CorruptLexiconError; OSError if the file
    is gone."""
    with _opened(path) as file:
        left = _header(file.readline(_MAX_HEADER_BYTES)).entries
        while line := file.readline(_MOST_LINE_BYTES):
            try:
                entries = msgspec.json.decode(line, type=list[Entry])
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise CorruptLexiconError(f"its entries cannot be read: {error}") from None
            left -= len(entries)
            yield entries
    if left:
        raise CorruptLexiconError(
            f"its entries are not those of its first line: {left} are missing"
        )


def _opened(path: Path) -> BinaryIO:
    if not stat.S_ISREG(path.stat().st_mode):  # opening a pipe would wait for its writer
        raise CorruptLexiconError("not a file")
    return path.open("rb")


def _header(line: bytes) -> Header:
    try:
        header = msgspec.json.decode(line, type=Header)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CorruptLexiconError(f"its first line is no header: {error}") from None
    if header.format != FORMAT:
        raise CorruptLexiconError(f"it does not say that it is a {FORMAT!r}")
    return header
