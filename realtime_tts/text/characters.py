"""Kinds of characters that matter for speech: emoji, invisible marks, scripts without spaces."""

from __future__ import annotations

import re


def character_class(*ranges: tuple[int, int]) -> str:
    """Return the inside of a regular expression's [...] for inclusive ranges of code points."""
    return "".join(f"{re.escape(chr(low))}-{re.escape(chr(high))}" for low, high in ranges)


EMOJI = character_class(
    (0x1F000, 0x1FAFF),  # tiles, cards, pictographs, flags' letters, skin tones
    (0x2600, 0x266C),  # weather to notes: miscellaneous symbols; behind them are ♭, ♮ and ♯
    (0x2670, 0x2767),  # crosses to hearts: miscellaneous symbols and dingbats
    (0x2794, 0x27BF),  # dingbat arrows; what lies between are numbers in circles, which are read
    (0x231A, 0x231B),  # watch, hourglass
    (0x2328, 0x2328),  # keyboard
    (0x23CF, 0x23CF),  # eject
    (0x23E9, 0x23FA),  # media buttons, clocks
    (0x25AA, 0x25AB),  # small squares
    (0x25B6, 0x25B6),  # play
    (0x25C0, 0x25C0),  # reverse
    (0x25FB, 0x25FE),  # medium squares
    (0x2B05, 0x2B07),  # heavy arrows
    (0x2B1B, 0x2B1C),  # large squares
    (0x2B50, 0x2B50),  # star
    (0x2B55, 0x2B55),  # ring
    (0x20E3, 0x20E3),  # the key around a keycap's digit, which is read
)
"""Emoji, as the inside of a character class.

Signs with a reading (arrows, © and ™, mathematics) are not in it.
"""

INVISIBLE = character_class(
    (0x00AD, 0x00AD),  # soft hyphen
    (0x200B, 0x200B),  # zero-width space
    (0x200E, 0x200F),  # direction marks
    (0x202A, 0x202E),  # direction embeddings and overrides
    (0x2060, 0x2064),  # word joiner, invisible operators
    (0x2066, 0x2069),  # direction isolates
    (0xFE00, 0xFE0F),  # variation selectors: text or emoji style
    (0xFEFF, 0xFEFF),  # byte order mark
    (0xFFF9, 0xFFFB),  # interlinear annotation
    (0xE0000, 0xE0FFF),  # tags (flags of regions), ideographic variation selectors
)
"""Invisible characters, as the inside of a character class.

The joiners U+200C and U+200D are not in it: some scripts need them.
"""

ZERO_WIDTH_JOINER = "\u200d"

SENTENCE_ENDS = frozenset(".!?…。！？।؟\n")
OPENERS, CLOSERS = "([{“‘«「『（［｛〈《【〔｢", ")]}”’»」』）］｝〉》】〕｣"
"""Brackets and quotation marks; those that look alike on both sides are not in it."""
PAUSES = frozenset(",;:、，；：،—–")
"""Marks behind which a speaker pauses for a moment."""
MARKS = "".join(sorted((SENTENCE_ENDS | PAUSES) - {"\n"}))
"""Both, without the newline: the inside of a character class."""

NO_SPACES = character_class(
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Burmese
    (0x1780, 0x17FF),  # Khmer
    (0x2E80, 0x312F),  # radicals, ideographic punctuation, kana, bopomofo
    (0x31A0, 0x9FFF),  # bopomofo and kana extensions, ideographs
    (0xF900, 0xFAFF),  # compatibility ideographs
    (0xFF00, 0xFFEF),  # full-width forms
    (0x20000, 0x3FFFF),  # ideographs of the other planes
)
"""Scripts without spaces between words, and their punctuation: the inside of a character class."""

JOINED = (
    "ーぁぃぅぇぉっゃゅょゎんァィゥェォッャュョヮンヵヶ々ゝゞヽヾ゛゜ｰｧｨｩｪｫｯｬｭｮﾝﾞﾟ"  # kana
    "\u0e33\u0eb3"  # Thai and Lao am
)
"""Letters of such scripts that are one syllable with the letter before them."""

HANGUL = character_class((0x1100, 0x11FF), (0x3130, 0x318F), (0xAC00, 0xD7AF))
"""Korean letters: the inside of a character class. Particles are written directly behind a word."""

_HANGUL = re.compile(f"[{HANGUL}]")
_NO_SPACES = re.compile(f"[{NO_SPACES}]")
EMOJI_PATTERN = re.compile(f"[{EMOJI}]")
INVISIBLE_PATTERN = re.compile(f"[{INVISIBLE}]")


def writes_without_spaces(char: str) -> bool:
    """Return whether a character is of a script without spaces, or its punctuation."""
    return char >= "\u0e00" and _NO_SPACES.match(char) is not None


def is_hangul(char: str) -> bool:
    """Return whether a character is a Korean letter."""
    return char >= "\u1100" and _HANGUL.match(char) is not None


def is_word_character(char: str) -> bool:
    """Return whether a character is a letter or digit of a script with spaces. False for '', and
    for the marks of ordinals: nº1."""
    return char.isalnum() and char not in "ºª" and not writes_without_spaces(char)
