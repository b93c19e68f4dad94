"""Which words are addresses of the web and mail, files, or releases: acme.io, main.py, 2.0-rc.1."""

from __future__ import annotations

import re

_TOP = "com org net edu gov mil int info biz dev app io ai co uk us ca de fr es eu it nl ch jp cn au tv me ly xyz online site tech blog shop store cloud gg fm sh"  # noqa: E501
_FILES = "py js ts tsx jsx json md txt csv pdf html htm css xml yaml yml toml ini cfg log zip tar gz png jpg jpeg gif svg mp3 mp4 wav doc docx xls xlsx ppt pptx sh bat exe rs go java rb php sql ipynb lock env"  # noqa: E501
_SAID_AS_WORDS = frozenset("co me so in at it us".split())
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_ADDRESS = re.compile(
    rf"(?:https?://)?(?:[\w.+-]+@{_LABEL}(?:\.{_LABEL})+|(?:{_LABEL}\.)+(?:{'|'.join(_TOP.split())})(?![\w-])"
    rf"(?::\d+)?(?:/[\w./#?=&%-]*)?|localhost(?::\d+)?(?:/\S*)?)\Z"
)
_RELEASE = re.compile(r"v?\d+(?:\.\d+)+-[a-z]+\.\d+(?:\.\d+)*\Z")
_FILE = re.compile(rf"[\w./~-]*\w\.(?:{'|'.join(_FILES.split())})\Z")
_COUNTRY = re.compile(r"[a-z]{2}(?![\w-])", re.ASCII)


def is_address(token: str) -> bool:
    """Return whether a word is an address of the web or of mail."""
    return _ADDRESS.match(token) is not None


def is_file(token: str) -> bool:
    """Return whether a word is the name of a file, perhaps with its folders."""
    return _FILE.match(token) is not None


def is_dotted(token: str) -> bool:
    """Return whether the dots in a word are read: it is a file or a release."""
    return is_file(token) or _RELEASE.match(token) is not None


def country(text: str, at: int) -> str:
    """Return the letters of a country's domain at `at` that are said one by one; "" for none."""
    match = _COUNTRY.match(text, at)
    return match.group() if match and match.group() not in _SAID_AS_WORDS else ""
