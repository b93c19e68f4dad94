"""A lexicon that a client stores: JSON, or a PLS file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import msgspec
from msgspec import Meta

from realtime_tts.lexicons.errors import LexiconError, UnsupportedMedia
from realtime_tts.lexicons.file import MAX_TITLE_CHARS, checked
from realtime_tts.lexicons.pls import MEDIA_TYPES, NO_PHONEMES, read_pls
from realtime_tts.text.lexicon import Entry

MAX_BODY_BYTES = 4 << 20


class LexiconEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A word, and what to say for it. `ipa` and `phoneme` are refused: checkpoints take text."""

    word: str
    say: str | None = None
    case_sensitive: bool = False
    ipa: str | None = None
    phoneme: str | None = None


class LexiconBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The JSON of a lexicon: an object of words and what to say for them, or a list of entries."""

    entries: dict[str, str] | list[LexiconEntry]
    title: Annotated[str, Meta(min_length=1, max_length=MAX_TITLE_CHARS)] | None = None


@dataclass(frozen=True, slots=True)
class NewLexicon:
    """Checked entries, and a title for people."""

    entries: Sequence[Entry]
    title: str | None = None


def parse(body: bytes, content_type: str) -> NewLexicon:
    """Return the lexicon in a body. Raises LexiconError, LexiconTooLarge, UnsupportedMedia."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind in MEDIA_TYPES:
        return NewLexicon(checked(read_pls(body)))
    if kind == "application/json":
        return _parse_json(body)
    raise UnsupportedMedia(
        "send application/json with `entries`, or a PLS file as application/pls+xml; "
        f"found {kind[:80] or 'no Content-Type'!r}"
    )


def _parse_json(body: bytes) -> NewLexicon:
    try:
        asked = msgspec.json.decode(body, type=LexiconBody)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise LexiconError(
            'expected JSON with `entries`, {"SQL": "sequel"} or a list of '
            f'{{"word": "SQL", "say": "sequel", "case_sensitive": true}}: {error}'
        ) from None
    except RecursionError:  # a field that is not known is passed over, however deep it is
        raise LexiconError("the JSON is nested too deeply") from None
    if isinstance(asked.entries, dict):
        return NewLexicon(checked(Entry(*each) for each in asked.entries.items()), asked.title)
    return NewLexicon(checked(map(_entry, asked.entries)), asked.title)


def _entry(asked: LexiconEntry) -> Entry:
    if asked.say is None:
        why = NO_PHONEMES if asked.ipa or asked.phoneme else "`say`, what to say for it, is missing"
        raise LexiconError(f"the entry for {asked.word[:40]!r}: {why}")
    return Entry(asked.word, asked.say, asked.case_sensitive)
