"""Token ids of a text that arrives in pieces.

Whatever way a text is cut, the ids released are those of the whole text, and an id is released as
soon as no later text can change it. Three stages hold back what is not yet certain: `NfcBuffer`
(the last character may still take an accent), `PreTokenBuffer` (the last pre-token may grow) and
`OpenPreToken` (merges inside it may still change). Two things wait longer than a closer look could
prove necessary, by one delta as a rule: a run of white space at the end, and the accents after the
last letter.
"""

from __future__ import annotations

import unicodedata
from functools import cache, lru_cache

from realtime_tts.text.nfc import NfcBuffer, first_bytes
from realtime_tts.text.pretokens import CharClass, PreTokenBuffer, char_class
from realtime_tts.text.stable_bpe import ALPHABET, CONTINUATION_BYTES, OpenPreToken, to_alphabet
from realtime_tts.text.tokenizer import Qwen2Tokenizer


@cache
def _bytes_not_joining(joining: frozenset[CharClass]) -> frozenset[str]:
    """Find the bytes that begin no character of these classes; any non-ASCII character may be
    one."""
    ascii_bytes = (ALPHABET[code] for code in range(128) if char_class(chr(code)) not in joining)
    return CONTINUATION_BYTES.union(ascii_bytes)


@lru_cache(maxsize=4096)
def _bytes_not_beginning(char: str) -> frozenset[str]:
    """Find the bytes that cannot come next if `char`, whose accents may still follow, does."""
    if unicodedata.combining(char):
        return CONTINUATION_BYTES
    possible = first_bytes(char)
    return frozenset(ALPHABET[byte] for byte in range(256) if byte not in possible)


class IncrementalTokenizer:
    """Turns text into token ids as it arrives: `feed` it, without lone surrogates, in any pieces,
    and `flush` at the end of a segment."""

    def __init__(self, tokenizer: Qwen2Tokenizer) -> None:
        self._vocabulary = tokenizer.vocabulary
        self._nfc = NfcBuffer()
        self._pretokens = PreTokenBuffer()
        self._open = OpenPreToken(self._vocabulary)
        self._taken = 0  # characters of the open pre-token that `_open` has

    @property
    def steps(self) -> int:
        """Steps taken inside open pre-tokens, which grow with the text, not with its square."""
        return self._open.steps

    @property
    def held_characters(self) -> int:
        """Characters of normalised text that have not become ids."""
        fresh = len(self._pretokens.open) - self._taken
        return len(self._nfc.tail) + fresh + self._open.held_characters

    def feed(self, text: str) -> list[int]:
        """Add text; return the ids that became certain."""
        closed = self._pretokens.feed(self._nfc.feed(text))
        if self._nfc.tail:
            # Composition does not change the class, so the composed character closes the same
            # pre-tokens.
            closed += self._pretokens.expect(char_class(self._nfc.tail[0]))
        ids = self._close(closed)
        if not self._pretokens.is_white:
            fresh, self._taken = self._pretokens.open[self._taken :], len(self._pretokens.open)
            ids += self._open.feed(to_alphabet(fresh), self._impossible_bytes())
        return ids

    def _impossible_bytes(self) -> frozenset[str]:
        if self._nfc.tail:
            return _bytes_not_beginning(self._nfc.tail[0])
        return _bytes_not_joining(self._pretokens.joining)

    def flush(self) -> list[int]:
        """Return the remaining ids, as if the text ended here. Later text starts afresh."""
        return self._close(self._pretokens.feed(self._nfc.flush()) + self._pretokens.flush())

    def cut(self) -> list[int]:
        """Return the ids that `flush` would, without those of white space at the end of the
        text."""
        ids = self._close(self._pretokens.feed(self._nfc.flush()))
        white = self._pretokens.is_white
        rest = self._pretokens.flush()
        return ids if white else ids + self._close(rest)

    def _close(self, pretokens: list[str]) -> list[int]:
        ids: list[int] = []
        if self._taken and pretokens:
            ids = self._open.close(to_alphabet(pretokens[0][self._taken :]))
            pretokens, self._taken = pretokens[1:], 0
        return ids + self._vocabulary.encode_whole(pretokens)
