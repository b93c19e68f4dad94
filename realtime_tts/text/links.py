"""Links, images and footnotes: which brackets hold a label, and where a target ends."""

from __future__ import annotations

import re

from realtime_tts.text.characters import HANGUL, NO_SPACES, is_word_character
from realtime_tts.text.citations import is_citation
from realtime_tts.text.marks import Step, closing_bracket, starts_with
from realtime_tts.text.speech_writer import SpeechWriter


class LinkReader:
    """Reads the brackets and parentheses of one line. Writes nothing: a label is read as other text
    is, up to the bracket that ends it, and a target is left out."""

    def __init__(self) -> None:
        self._depth = 0  # parentheses open in a target
        self.begin_line()

    def begin_line(self) -> None:
        self.in_target = False
        self._label_ends: list[int] = []  # offsets in the source
        self._cited_to = -1  # the offset behind the last citation
        self._unsure = 0  # brackets written as text because their end was late

    def image(self, window: str, at: int, ended: bool, previous: str) -> Step:
        """Read an exclamation mark, which belongs to an image if a label follows it directly."""
        if is_word_character(previous):
            return 0  # an exclamation need not wait
        if len(window) == 1:
            return 0 if ended else None
        if window[1] != "[":
            return 0
        step = self.label(window[1:], at + 1, ended)
        return step + 1 if step else step

    def label(self, window: str, at: int, ended: bool, before: str = "") -> Step:
        """Read a text in brackets: the label of a link if a parenthesis follows it directly.

        `before`: the text before it, at least its last word.
        """
        end = closing_bracket(window)
        if end == 0:
            return 0
        if (end is None or end + 1 == len(window)) and not ended:
            return None
        if end is None:
            self._unsure += 1
            return 0
        label, behind = window[1:end], window[end + 1 :]
        before = "." if at == self._cited_to else before  # [1][2]
        cites = label.startswith("^") or is_citation(label, before, behind, ended)
        if cites is None:
            return None
        if cites:
            self._cited_to = at + end + 1
            return end + 1
        if behind[:1] != "(":
            return 0
        self._label_ends.append(at + end)
        return (
            end if label.strip("[]").isdigit() else 1
        )  # a number is a reference, which is not read

    def left_of_label(self, at: int) -> int | None:
        """Return how far the end of the innermost label is; None outside labels."""
        while self._label_ends and self._label_ends[-1] < at:
            self._label_ends.pop()
        return self._label_ends[-1] - at if self._label_ends else None

    def ends_label(self, at: int) -> bool:
        """Return whether the bracket at `at` ends a label."""
        return self.left_of_label(at) == 0

    def label_end(self, window: str, at: int, ended: bool) -> Step:
        """Read a closing bracket; behind one that ends a label the target begins (`in_target`)."""
        if not self.ends_label(at):
            if not self._unsure:
                return 0
            if len(window) == 1:
                return 0 if ended else None
            self._unsure -= 1
            if window[1] != "(":
                return 0
        self.in_target = True
        self._depth = 0
        return 1

    def target(self, window: str) -> int:
        """Return how much belongs to the target, which ends with its parenthesis or the line."""
        for index, char in enumerate(window):
            self._depth += {"(": 1, ")": -1}.get(char, 0)
            if self._depth == 0 or char == "\n":
                self.in_target = False
                return index + (char != "\n")
        return len(window)


_STARTS = ("https://www.", "http://www.", "https://", "http://", "www.")
# Chinese, Japanese and Korean text may follow an address directly.
_LETTER = rf"[^\W_{NO_SPACES}{HANGUL}]"
_HOST = re.compile(rf"{_LETTER}+")
_PATH = re.compile(rf"(?:[/%&=+$@#~^({{\[-]|{_LETTER})+")
_PATH_PUNCTUATION = re.compile(r"[.,;:!?')}\]*_|]+")  # part of the path only if more of it follows


class AddressReader:
    """Reads one address after another: `start`, then `read` until `is_over`."""

    def __init__(self, writer: SpeechWriter) -> None:
        self._out = writer
        self.is_over = True
        self._in_path = False
        self._bracketed = False
        self._depth = 0  # parentheses open in the path

    def start(self, text: str, ended: bool) -> Step:
        """Return the length of the marks that start an address; `text` may begin with `<`."""
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
        """Write the host; drop the path. Return 0 when the address is over."""
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
            if char != ":" or text[1].isdecimal():
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
