"""Markus Kuhn's stress test of UTF-8 decoders, as the sections 6.5 to 6.23 of the Autobahn suite
have it: texts, by section, and whether each is valid."""

from __future__ import annotations

GREEK = b"\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5"
"""κόσμε, its second letter in three octets."""


def _non_characters() -> list[bytes]:
    """The last two code points of each plane."""
    return [chr(plane << 16 | last).encode() for plane in range(17) for last in (0xFFFE, 0xFFFF)]


def _lonely(first: int, last: int) -> bytes:
    return b"".join(bytes([octet]) + b" " for octet in range(first, last))


_INCOMPLETE = [
    b"\xc0",
    b"\xe0\x80",
    b"\xf0\x80\x80",
    b"\xf8\x80\x80\x80",
    b"\xfc\x80\x80\x80\x80",
    b"\xdf",
    b"\xef\xbf",
    b"\xf7\xbf\xbf",
    b"\xfb\xbf\xbf\xbf",
    b"\xfd\xbf\xbf\xbf\xbf",
]
_HIGH, _LOW = (
    (b"\xed\xa0\x80", b"\xed\xad\xbf", b"\xed\xae\x80", b"\xed\xaf\xbf"),
    (
        b"\xed\xb0\x80",
        b"\xed\xbf\xbf",
    ),
)
_WHOLE = {2, 5, 7, 9, 11}  # octets of κόσμε at which a character ends
_BY_UTF8 = {
    "6.5": ["hello$world", "hello¢world", "hello€world", "hello𤭢world", GREEK.decode()],
    "6.7": ["\x00", "\x80", "\u0800", "\U00010000"],
    "6.9": ["\x7f", "\u07ff", "\uffff", "\U0010ffff"],
    "6.23": ["\ufff9", "\ufffa", "\ufffb", "\ufffc", "\ufffd", "\ufffe", "\uffff"],
}
_BY_OCTETS = {
    "6.6": [GREEK[:end] for end in range(1, 12)],
    "6.8": [b"\xf8\x88\x80\x80\x80", b"\xfc\x84\x80\x80\x80\x80"],
    "6.10": [b"\xf7\xbf\xbf\xbf", b"\xfb\xbf\xbf\xbf\xbf", b"\xfd\xbf\xbf\xbf\xbf\xbf"],
    "6.11": [
        b"\xed\x9f\xbf",
        b"\xee\x80\x80",
        b"\xef\xbf\xbd",
        b"\xf4\x8f\xbf\xbf",
        b"\xf4\x90\x80\x80",
    ],
    "6.12": [
        b"\x80",
        b"\xbf",
        *((b"\x80\xbf" * 3)[:end] for end in range(2, 7)),
        bytes(range(0x80, 0xBF)),
    ],
    "6.13": [
        _lonely(0xC0, 0xDF),
        _lonely(0xE0, 0xEF),
        _lonely(0xF0, 0xF7),
        _lonely(0xF8, 0xFB),
        _lonely(0xFC, 0xFD),
    ],
    "6.14": _INCOMPLETE,
    "6.15": [b"".join(_INCOMPLETE)],
    "6.16": [b"\xfe", b"\xff", b"\xfe\xfe\xff\xff"],
    "6.17": [
        b"\xc0\xaf",
        b"\xe0\x80\xaf",
        b"\xf0\x80\x80\xaf",
        b"\xf8\x80\x80\x80\xaf",
        b"\xfc\x80\x80\x80\x80\xaf",
    ],
    "6.18": [
        b"\xc1\xbf",
        b"\xe0\x9f\xbf",
        b"\xf0\x8f\xbf\xbf",
        b"\xf8\x87\xbf\xbf\xbf",
        b"\xfc\x83\xbf\xbf\xbf\xbf",
    ],
    "6.19": [
        b"\xc0\x80",
        b"\xe0\x80\x80",
        b"\xf0\x80\x80\x80",
        b"\xf8\x80\x80\x80\x80",
        b"\xfc\x80\x80\x80\x80\x80",
    ],
    "6.20": [*_HIGH, _LOW[0], b"\xed\xbe\x80", _LOW[1]],
    "6.21": [high + low for high in _HIGH for low in _LOW],
    "6.22": _non_characters(),
}
_ALL_VALID = {"6.22"}


def _is_valid(section: str, number: int) -> bool:
    by_number = {"6.6": number in _WHOLE, "6.11": number < 5}
    return by_number.get(section, section in _BY_UTF8 or section in _ALL_VALID)


SEQUENCES = {
    section: [(_is_valid(section, at), text) for at, text in enumerate(texts, 1)]
    for section, texts in (
        *_BY_OCTETS.items(),
        *((name, [text.encode() for text in texts]) for name, texts in _BY_UTF8.items()),
    )
}
