"""PLS, the W3C's Pronunciation Lexicon Specification 1.0, read and written.

https://www.w3.org/TR/pronunciation-lexicon/. Of a lexeme its graphemes and its aliases are read;
phonemes are for models that take them, and the checkpoints here take text.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from xml.parsers import expat
from xml.sax.saxutils import escape

from realtime_tts.lexicons.errors import LexiconError
from realtime_tts.text.lexicon import Entry

NAMESPACE = "http://www.w3.org/2005/01/pronunciation-lexicon"
MEDIA_TYPES = frozenset({"application/pls+xml", "application/xml", "text/xml"})
NO_PHONEMES = (
    "the checkpoints of this server take text, and cannot speak phonemes: give an alias, the word "
    "respelled as it is said"
)
_DEEPEST = 32
_SHOWN = 5


def read_pls(data: bytes, *, case_sensitive: bool = False) -> list[Entry]:
    """Return the entries of a file, each grapheme with the alias that is preferred, or the first
    one.

    Document types and with them all entities of a file's own are refused, so that no file becomes
    more than it is. Raises LexiconError.
    """
    reader = _Reader(case_sensitive)
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = _refuse_doctype
    parser.StartElementHandler, parser.EndElementHandler = reader.start, reader.end
    parser.CharacterDataHandler = reader.text
    try:
        parser.Parse(data, True)
    except (expat.ExpatError, LookupError, ValueError) as error:
        raise LexiconError(f"not a PLS file: {error}") from None
    if reader.phonemes_only:
        words = ", ".join(map(repr, reader.phonemes_only[:_SHOWN]))
        more = len(reader.phonemes_only) - _SHOWN
        words += f" and {more} others" if more > 0 else ""
        raise LexiconError(f"lexemes with phonemes and no alias ({words}): {NO_PHONEMES}")
    return reader.entries


class _Reader:
    """Makes entries of what the parser finds."""

    def __init__(self, case_sensitive: bool) -> None:
        self.entries: list[Entry] = []
        self.phonemes_only: list[str] = []
        self._case_sensitive = case_sensitive
        self._path: list[str] = []
        self._text: list[str] = []
        self._graphemes: list[str] = []
        self._alias: tuple[bool, str] | None = None  # preferred, and its text
        self._preferred = self._has_phoneme = False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """Handle the beginning of an element."""
        local = name.rpartition(" ")[2]
        if not self._path and name != f"{NAMESPACE} lexicon":
            raise LexiconError(
                f"not a PLS file: expected the element `lexicon` of {NAMESPACE}, "
                f"found {name[:80]!r}"
            )
        self._path.append(local)
        if len(self._path) > _DEEPEST:
            raise LexiconError(f"not a PLS file: elements lie more than {_DEEPEST} deep")
        self._text = []
        if local == "lexeme":
            self._graphemes, self._alias, self._has_phoneme = [], None, False
        self._preferred = attributes.get("prefer") == "true"

    def text(self, data: str) -> None:
        """Handle text of the present element."""
        self._text.append(data)

    def end(self, name: str) -> None:
        """Handle the end of an element."""
        local = self._path.pop()
        if self._path[-1:] == ["lexeme"]:
            said = " ".join("".join(self._text).split())
            if local == "grapheme":
                self._graphemes.append(said)
            elif local == "alias" and (self._alias is None or self._preferred > self._alias[0]):
                self._alias = self._preferred, said
            elif local == "phoneme":
                self._has_phoneme = True
        elif local == "lexeme":
            self._add()
        self._text = []

    def _add(self) -> None:
        """Add the entries of a lexeme that is complete."""
        if not self._graphemes:
            raise LexiconError("a lexeme has no grapheme, the word as it is written")
        if self._alias is None:
            if not self._has_phoneme:
                raise LexiconError(f"the lexeme {self._graphemes[0][:40]!r} has no alias")
            self.phonemes_only += self._graphemes
            return
        said = self._alias[1]
        self.entries += [Entry(each, said, self._case_sensitive) for each in self._graphemes]


def _refuse_doctype(*declared: Any) -> None:
    raise LexiconError("a PLS file with a document type (<!DOCTYPE …>) is not read: take it out")


def write_pls(entries: Iterable[Entry]) -> bytes:
    """Return the entries as a file. The format does not say which are case-sensitive."""
    lexemes = "".join(
        f"  <lexeme><grapheme>{escape(each.word)}</grapheme><alias>{escape(each.say)}</alias>"
        "</lexeme>\n"
        for each in entries
    )
    head = f'<lexicon version="1.0" xmlns="{NAMESPACE}" alphabet="ipa" xml:lang="und">'
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{head}\n{lexemes}</lexicon>\n'.encode()
