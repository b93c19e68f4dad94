"""Links, images and footnotes: which brackets hold a label, and where a target ends."""

from __future__ import annotations

from realtime_tts.text.characters import is_word_character
from realtime_tts.text.marks import Step, closing_bracket


class LinkReader:
    """The brackets and parentheses of one line. Writes nothing: a label is read as other text is,
    up to the bracket that ends it, and a target is left out."""

    def __init__(self) -> None:
        self._depth = 0  # parentheses open in a target
        self.begin_line()

    def begin_line(self) -> None:
        self.in_target = False
        self._label_ends: list[int] = []  # where in the source they are
        self._unsure = 0  # brackets written because the wait for their end was over

    def image(self, window: str, at: int, ended: bool, previous: str) -> Step:
        """An exclamation mark, which belongs to an image if a label follows it directly."""
        if is_word_character(previous):
            return 0  # an exclamation need not wait
        if len(window) == 1:
            return 0 if ended else None
        if window[1] != "[":
            return 0
        step = self.label(window[1:], at + 1, ended)
        return step + 1 if step else step

    def label(self, window: str, at: int, ended: bool) -> Step:
        """A text in brackets is the label of a link if a parenthesis follows it directly."""
        end = closing_bracket(window)
        if end == 0:
            return 0
        if end is None or end + 1 == len(window):
            if not ended:
                return None
            self._unsure += end is None
            return 0
        label = window[1:end]
        if label.startswith("^"):
            return end + 1  # a footnote's number
        if window[end + 1] != "(":
            return 0
        self._label_ends.append(at + end)
        return end if label.isdigit() else 1  # a number is a reference, which is not read

    def left_of_label(self, at: int) -> int | None:
        """How far the end of the innermost label is; None outside of labels."""
        return self._label_ends[-1] - at if self._label_ends else None

    def ends_label(self, at: int) -> bool:
        """Whether the bracket at `at` ends a label."""
        while self._label_ends and self._label_ends[-1] < at:
            self._label_ends.pop()
        return self.left_of_label(at) == 0

    def label_end(self, window: str, at: int, ended: bool) -> Step:
        """A closing bracket; behind one that ends a label the target begins (`in_target`)."""
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
        """The characters that belong to the target; it ends with its parenthesis or the line."""
        for index, char in enumerate(window):
            self._depth += {"(": 1, ")": -1}.get(char, 0)
            if self._depth == 0 or char == "\n":
                self.in_target = False
                return index + (char != "\n")
        return len(window)
