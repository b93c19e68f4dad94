"""Unicode normalisation form C of a text that arrives in pieces.

A later combining mark can change the last character (`e` + U+0301 is `é`) and can move in front of
earlier marks, so the end of the text is held until nothing that may follow can touch it. What is
released never changes: the concatenation of all releases is the NFC of the whole text.

The facts used are those of UAX #15: normalisation never looks across a *boundary*, a character
whose canonical decomposition starts with a starter (combining class 0) that is not the second half
of any composite; and only the last starter before a mark can compose with it.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from itertools import chain

from tokenizers import normalizers

_NFC = normalizers.NFC()
_LONGEST_RETRY = 4  # a longer tail is a run of marks, not worth normalising for every delta
# Where canonical composites live; between and above are only ideographs, Hangul and singletons.
_WITH_COMPOSITES = (range(0xC0, 0x3400), range(0xF900, 0x20000))
_HANGUL_L = range(0x1100, 0x1113)
_HANGUL_V_AND_T = (range(0x1161, 0x1176), range(0x11A8, 0x11C3))
_HANGUL_SYLLABLES = range(0xAC00, 0xD7A4)
_HANGUL_T_COUNT = 28  # syllables without a final consonant are every 28th


def nfc(text: str) -> str:
    """Bring text into normalisation form C, as the tokenizer library computes it."""
    return text if text.isascii() else str(_NFC.normalize_str(text))


def _composites() -> dict[str, tuple[str, str]]:
    """List every canonical composite that NFC makes, Hangul apart, with its two halves."""
    composites = {}
    for char in map(chr, chain(*_WITH_COMPOSITES)):
        decomposition = unicodedata.decomposition(char)
        if " " not in decomposition or decomposition.startswith("<"):
            continue
        first, second = (chr(int(half, 16)) for half in decomposition.split())
        if unicodedata.normalize("NFC", first + second) == char:
            composites[char] = first, second
    return composites


_COMPOSITES = _composites()
_FIRSTS = frozenset(first for first, _ in _COMPOSITES.values())
_SECONDS = frozenset(second for _, second in _COMPOSITES.values())
_WITH_BASE: dict[str, set[str]] = {}  # first character of a decomposition -> its composites
for _composite in _COMPOSITES:
    _WITH_BASE.setdefault(unicodedata.normalize("NFD", _composite)[0], set()).add(_composite)


@lru_cache(maxsize=16384)
def is_boundary(char: str) -> bool:
    """Return whether no text before `char` can take part in its normalisation."""
    if char.isascii():
        return True
    first = unicodedata.normalize("NFD", char)[0]
    if unicodedata.combining(first) or first in _SECONDS:
        return False
    return not any(ord(first) in jamo for jamo in _HANGUL_V_AND_T)


@lru_cache(maxsize=16384)
def is_inert(char: str) -> bool:
    """Return whether no text after `char` can change it: a starter with which nothing composes."""
    decomposed = unicodedata.normalize("NFD", char)
    if any(unicodedata.combining(part) for part in decomposed):
        return False
    last = unicodedata.normalize("NFC", char)[-1]
    if ord(last) in _HANGUL_SYLLABLES:
        return (ord(last) - _HANGUL_SYLLABLES.start) % _HANGUL_T_COUNT != 0
    return last not in _FIRSTS and ord(last) not in _HANGUL_L


@lru_cache(maxsize=4096)
def first_bytes(char: str) -> frozenset[int]:
    """Return the first UTF-8 bytes that the normal form of `char`, a boundary, and more can have.

    They are those of the character itself and of all composites with the same base.
    """
    base = unicodedata.normalize("NFD", char)[0]
    normal = nfc(char)[0]
    become = {normal, *_WITH_BASE.get(base, ())}
    if ord(normal) in _HANGUL_L:
        become |= set(map(chr, _HANGUL_SYLLABLES))
    elif ord(normal) in _HANGUL_SYLLABLES:
        become.add(chr(ord(normal) + _HANGUL_T_COUNT - 1))
    return frozenset(other.encode()[0] for other in become)


class NfcBuffer:
    """Normalises text as it arrives: nothing later can change what `feed` and `flush` returned.

    `tail` is the held text, not normalised: at most one starter and the marks after it. Marks that
    follow a settled starter wait for the next boundary, even where a longer proof could free them.
    """

    def __init__(self) -> None:
        self.tail = ""

    def feed(self, text: str) -> str:
        cut = len(text) - 1
        while cut >= 0 and not is_boundary(text[cut]):
            cut -= 1
        if cut < 0:
            settled, self.tail = "", self.tail + text
        else:
            settled, self.tail = nfc(self.tail + text[:cut]), text[cut:]
        return settled + self._settle_tail()

    def flush(self) -> str:
        """Release everything, as if the text ended here."""
        tail, self.tail = self.tail, ""
        return nfc(tail)

    def _settle_tail(self) -> str:
        tail = self.tail
        if not tail or len(tail) > _LONGEST_RETRY:
            return ""
        normal = nfc(tail)
        if is_inert(normal[-1]) and not any(map(unicodedata.combining, normal)):
            self.tail = ""
            return normal
        if is_inert(tail[0]):
            self.tail = tail[1:]
            return nfc(tail[0])
        return ""
