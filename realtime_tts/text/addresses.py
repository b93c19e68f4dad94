"""Addresses in running text: `https://docs.python.org/3/` is read as "docs.python.org"."""

from __future__ import annotations

import re

from realtime_tts.text.marks import Step, starts_with
from realtime_tts.text.speech_writer import SpeechWriter

_STARTS = ("https://www.", "http://www.", "https://", "http://", "www.")
_HOST = re.compile(r"[A-Za-z0-9]+")
_PATH = re.compile(r"[A-Za-z0-9/%&=+$@#~^({\[-]+")
_PATH_PUNCTUATION = re.compile(r"[.,;:!?')}\]*_|]+")  # part of the path only if more of it follows


class AddressReader:
    """Reads one address after the other: `start`, then `read` until `is_over`."""

    def __init__(self, writer: SpeechWriter) -> None:
        self._out = writer
        self.is_over = True
        self._in_path = False
        self._bracketed = False
        self._depth = 0  # parentheses open in the path

    def start(self, text: str, ended: bool) -> Step:
        """The marks that start an address, to be dropped; `text` may begin with `<`."""
        bracketed = text[0] == "<"
        if bracketed and len(text) == 1:
            return 0 if ended else None
        word = starts_with(text[bracketed:], ended, _STARTS)
        if not word:
            return None if word is None else 0
        self.is_over = False
        self._in_path = False
        self._bracketed = bracketed
        self._depth = 0
        return len(word) + bracketed

    def read(self, text: str, at: int, ended: bool) -> Step:
        """Write the host; drop the path. 0 when the address is over."""
        return self._read_path(text, ended) if self._in_path else self._read_host(text, at, ended)

    def _read_host(self, text: str, at: int, ended: bool) -> Step:
        host = _HOST.match(text)
        if host:
            self._out.say(host.group(), at)
            return host.end()
        char = text[0]
        if char in ".-:":
            if len(text) == 1 and not ended:
                return None
            if not _HOST.match(text[1:]):
                return self._end(char)
            if char != ":":
                self._out.say(char, at)
                return 1
        elif char not in "/?#":
            return self._end(char)
        self._in_path = True
        return 1

    def _read_path(self, text: str, ended: bool) -> Step:
        if text[0] == ")" and self._depth:
            self._depth -= 1
            return 1
        path = _PATH.match(text)
        if path:
            self._depth += path.group().count("(")
            return path.end()
        punctuation = _PATH_PUNCTUATION.match(text)
        if punctuation:
            if punctuation.end() == len(text) and not ended:
                return None
            if _PATH.match(text[punctuation.end() :]):
                return 1
        return self._end(text[0])

    def _end(self, char: str) -> Step:
        self.is_over = True
        return 1 if char == ">" and self._bracketed else 0
