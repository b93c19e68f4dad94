"""Decides mark by mark what of Markdown is read aloud.

`MarkdownReader.read` looks at the text from the current position and decides about its first few
characters: write them, drop them, or ask for more text. Every decision depends only on the state
and on characters it has seen, never on how the text was cut. The caller keeps the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import StrEnum

from realtime_tts.text import citations, marks
from realtime_tts.text.characters import (
    EMOJI,
    EMOJI_PATTERN,
    INVISIBLE,
    INVISIBLE_PATTERN,
    ZERO_WIDTH_JOINER,
    is_word_character,
)
from realtime_tts.text.cues import CueReader
from realtime_tts.text.fences import Fence
from realtime_tts.text.formulas import FormulaReader
from realtime_tts.text.links import AddressReader, LinkReader
from realtime_tts.text.marks import Emphasis, Step, run_length
from realtime_tts.text.markup import MarkupReader
from realtime_tts.text.spans import Piece
from realtime_tts.text.speech_writer import Gap, SpeechWriter

_UNREAD = rf"\s{EMOJI}{INVISIBLE}{ZERO_WIDTH_JOINER}"
# h and w may start an address: not within an English word, nor where http and www cannot follow.
_PLAIN_CHAR = (
    rf"[^\\^`*_~\[\]!<|&$(（{citations.SOURCES}{citations.RAISED}hHwW{_UNREAD}]"
    r"|(?<=[A-Za-z])[hHwW]|[hH](?=[^tT])|[wW](?=[^wW])"
)
_PLAIN = re.compile(rf"(?:{_PLAIN_CHAR})+")
_PLAIN_WORDS = re.compile(rf"(?:{_PLAIN_CHAR})+(?: (?:{_PLAIN_CHAR})+)*")
_PLAIN_CODE = re.compile(rf"[^`\]<>{_UNREAD}]+")


class _Mode(StrEnum):  # its hash, unlike Enum's, is not computed in Python
    LINE = "at the start of a line"
    INLINE = "in a line"
    CODE = "in inline code"
    FENCE = "in a fenced code block, which is not read"
    ADDRESS = "in an address"
    TARGET = "in the target of a link, which is not read"


class MarkdownReader:
    """Reads Markdown and writes speech. Call `read` once per step, until it asks for more text."""

    def __init__(self, writer: SpeechWriter) -> None:
        self._out = writer
        self._mode = _Mode.LINE
        self._emphasis = Emphasis()
        self._address = AddressReader(writer)
        self._links = LinkReader()
        self._formulas = FormulaReader(writer)
        self._markup = MarkupReader(writer)
        self._cues = CueReader(writer, self._markup.speak_so)
        self._fence = Fence("```")
        self._ticks = 0  # length of the run that opened the inline code
        self._after_emoji = False
        self._begin_line()

    def _begin_line(self) -> None:
        self._mode = _Mode.LINE
        self._emphasis.clear()
        self._links.begin_line()
        self._bullet = False  # a list mark was read
        self._formulas.begin_line()
        self._table = self._cell_start = self._heading = False

    def read(self, window: str, at: int, ended: bool) -> Step:
        """Decide about the first characters of `window`, which stands at `at` in the source.

        Returns how many characters were decided about, or None if more text is needed; 0 means
        that the state changed and the same text must be read again. With `ended` the text ends
        with the window, and the answer is never None.
        """
        if self._markup.skips:
            step = self._markup.skip(window, at, ended)
        else:
            step = _READERS[self._mode](self, window, at, ended)
        assert step is not None or not ended, f"undecided about {window!r}"
        return step

    def waits(self, window: str, *, timed: bool) -> bool:
        """Return whether the window begins with an incomplete tag, which is held until its rest or
        the end comes; or, if the hold is `timed`, with an incomplete cue."""
        if self._markup.skips:
            return True
        if self._mode not in (_Mode.LINE, _Mode.INLINE):
            return False
        return self._markup.waits(window) or (timed and self._cues.waits(window))

    @property
    def warnings(self) -> list[str]:
        """What markup asked for and cannot be done, as messages for the client."""
        return list(self._markup.warnings)

    def end_segment(self) -> None:
        """End the text read so far: a line of closing marks needs no newline."""
        if self._mode is _Mode.FENCE and self._fence.may_end:
            self._mode = _Mode.INLINE

    # --- start of a line ---------------------------------------------------------------------

    def _read_line_start(self, window: str, at: int, ended: bool) -> Step:
        char = window[0]
        if char == "\n":
            self._formulas.begin_paragraph()
        if char.isspace() or INVISIBLE_PATTERN.match(char):
            return self._unread(window, at)
        step = self._line_mark(window, at, ended)
        if step == 0 and self._mode is _Mode.LINE:
            self._mode = _Mode.INLINE
        return step

    def _line_mark(self, window: str, at: int, ended: bool) -> Step:
        char = window[0]
        step: Step = 0
        if char in marks.BULLETS:
            step = marks.bullet(window, ended)
            self._bullet = self._bullet or step == 1
        elif char == "[" and self._bullet:
            step = marks.check_box(window, ended)
        elif char == ">":
            step = marks.quote(window, ended)
        elif char == "#":
            step = marks.heading(window, ended)
            if step:
                self._heading = True
                self._mode = _Mode.INLINE
        elif char == "|":
            step = 1
            self._table = self._cell_start = True
            self._mode = _Mode.INLINE
        elif char == "<":
            step = self._read_tag(window, at, ended)
        elif char in "`~":
            step = marks.fence(window, ended)
            if step:
                self._mode = _Mode.FENCE
                self._fence = Fence(window[:step])
        if step == 0 and char in "-=":
            step = marks.rule(window, ended)
        return step

    def _read_fence(self, window: str, at: int, ended: bool) -> Step:
        step = self._fence.read(window)
        if self._fence.is_over:
            self._mode = _Mode.INLINE
        return step

    # --- in a line ---------------------------------------------------------------------------

    def _read_inline(self, window: str, at: int, ended: bool) -> Step:
        step: Step = 0
        if window[0] in marks.CHECKS and (self._cell_start or self._bullet):
            step = self._read_check(window, at, ended)
        elif self._cell_start and not window[0].isspace():
            step = marks.rule_cell(window, ended)
            self._cell_start = step != 0
        if step != 0:
            return step
        plain = (_PLAIN if self._table else _PLAIN_WORDS).match(window)
        if plain:
            return self._say(plain.group(), at)
        step = self._unread(window, at)
        if step == 0:
            reader = _INLINE_MARKS[window[0]]
            step = reader(self, window, at, ended)
        is_text = step == 0 and self._mode is _Mode.INLINE
        return self._say(window[0], at) if is_text else step

    def _read_check(self, window: str, at: int, ended: bool) -> Step:
        """Read a mark that is all that a cell has, or a list's item behind a colon."""
        if not self._cell_start and not self._out.tail.rstrip(" ").endswith(":"):
            return 0
        step = marks.check(window, ended)
        if step:
            self._out.replace(Piece(marks.CHECKS[window[0]], at, at + 1))
        return step

    def _say(self, text: str, at: int) -> int:
        self._after_emoji = False
        self._out.say(text, at)
        return len(text)

    def _unread(self, window: str, at: int) -> int:
        """Read white space, an emoji or an invisible character; return 0 for anything else."""
        char = window[0]
        after_emoji, self._after_emoji = self._after_emoji, False
        if char == "\n":
            listed = self._bullet or marks.is_numbered(self._out.head)
            if self._heading or listed or self._table:
                self._out.newline(at, 0)  # as a paragraph ends
            self._out.newline(at)
            self._begin_line()
        elif char.isspace():
            if self._table:
                self._out.gap(Gap.SPACE, at, 1)  # a pipe may follow
            else:
                self._out.space(char, at)
        elif EMOJI_PATTERN.match(char):
            self._out.gap(Gap.EMOJI, at, 1)
            self._after_emoji = True
        elif INVISIBLE_PATTERN.match(char) or (char == ZERO_WIDTH_JOINER and after_emoji):
            self._after_emoji = after_emoji
        elif char == ZERO_WIDTH_JOINER:
            self._say(char, at)
        else:
            return 0
        return 1

    def _read_emphasis(self, window: str, at: int, ended: bool) -> Step:
        if window[0] == "_":
            index = self._formulas.read_index(window, at, ended)
            if index != 0:
                return index
        if window[0] != "~" and window[1:2] != window[0] and not self._emphasis.is_open(window[0]):
            cue = self._cues.read(window, at, ended)
            if cue != 0:
                return cue
        closes_cue = self._emphasis.is_open(window[0]) and self._cues.end == at
        run = self._emphasis.decide(window, ")" if closes_cue else self._out.tail, ended)
        if run is None:
            return None
        return self._say(window[: run.length], at) if run.is_text else run.length

    def _read_entity(self, window: str, at: int, ended: bool) -> Step:
        return self._formulas.read_ampersand(at) or self._markup.read_entity(window, at, ended)

    def _read_pipe(self, window: str, at: int, ended: bool) -> Step:
        if not self._table:
            return 0
        self._cell_start = True
        self._out.gap(Gap.CELL, at, 1)
        return 1

    def _read_code_mark(self, window: str, at: int, ended: bool) -> Step:
        length = run_length(window, "`")
        if length == len(window) and not ended:
            return None
        if self._mode is _Mode.INLINE:
            self._mode, self._ticks = _Mode.CODE, length
        elif length == self._ticks:
            self._mode = _Mode.INLINE
        return length

    def _read_code(self, window: str, at: int, ended: bool) -> Step:
        if window[0] == "`":
            return self._read_code_mark(window, at, ended)
        if window[0] == "]" and self._links.ends_label(at):
            self._mode = _Mode.INLINE  # the code was never closed, but the link is
            return 0
        if window[0] in "<>":
            return self._markup.read_in_code(window, at, ended)
        plain = _PLAIN_CODE.match(window)
        if plain:
            return self._say(plain.group(), at)
        return self._unread(window, at) or self._say(window[0], at)

    # --- links, images, addresses -------------------------------------------------------------

    def _read_label(self, window: str, at: int, ended: bool) -> Step:
        cue = self._cues.read_label(window, at, ended)
        return cue if cue != 0 else self._links.label(window, at, ended, self._out.tail)

    def _read_source(self, window: str, at: int, ended: bool) -> Step:
        step = citations.source(window, ended)
        return step if step != 0 or window[0] != "【" else self._cues.read(window, at, ended)

    def _read_raised(self, window: str, at: int, ended: bool) -> Step:
        return int(citations.is_note(self._out.tail, in_tag=False))

    def _read_label_end(self, window: str, at: int, ended: bool) -> Step:
        step = self._markup.end_cdata(window, ended)
        if step != 0:
            return step
        step = self._links.label_end(window, at, ended)
        if step:
            self._mode = _Mode.TARGET
        return step

    def _read_target(self, window: str, at: int, ended: bool) -> Step:
        step = self._links.target(window)
        if not self._links.in_target:
            self._mode = _Mode.INLINE
        return step

    def _read_tag(self, window: str, at: int, ended: bool) -> Step:
        """Read a tag, or an address between angle brackets."""
        if len(window) > 1 and window[1] in "hHwW":
            step = self._start_address(window, at, ended)
            if step != 0:
                return step
        return self._markup.read(window, at, ended)

    def _start_address(self, window: str, at: int, ended: bool) -> Step:
        if is_word_character(self._out.previous):
            return 0
        step = self._address.start(window, ended)
        if step:
            self._mode = _Mode.ADDRESS
        return step

    def _read_address(self, window: str, at: int, ended: bool) -> Step:
        step: Step = 0
        left = self._links.left_of_label(at)
        if left is None or left >= len(window):
            step = self._address.read(window, at, ended)
        elif left > 0:
            step = self._address.read(window[:left], at, ended=True)
        if step == 0 or self._address.is_over:
            self._mode = _Mode.INLINE
        return step


_Reader = Callable[[MarkdownReader, str, int, bool], Step]

_READERS: dict[_Mode, _Reader] = {
    _Mode.LINE: MarkdownReader._read_line_start,
    _Mode.INLINE: MarkdownReader._read_inline,
    _Mode.CODE: MarkdownReader._read_code,
    _Mode.FENCE: MarkdownReader._read_fence,
    _Mode.ADDRESS: MarkdownReader._read_address,
    _Mode.TARGET: MarkdownReader._read_target,
}
_INLINE_MARKS: dict[str, _Reader] = {
    "\\": lambda reader, *text: reader._formulas.read_backslash(*text),
    "^": lambda reader, *text: reader._formulas.read_command(*text),
    "`": MarkdownReader._read_code_mark,
    "[": MarkdownReader._read_label,
    "]": MarkdownReader._read_label_end,
    "!": lambda reader, *text: reader._links.image(*text, reader._out.previous),
    "<": MarkdownReader._read_tag,
    "$": lambda reader, *text: reader._formulas.read_dollar(*text),
    "&": MarkdownReader._read_entity,
    **dict.fromkeys("(（", lambda reader, *text: reader._cues.read(*text)),
    **dict.fromkeys(citations.SOURCES, MarkdownReader._read_source),
    **dict.fromkeys(citations.RAISED, MarkdownReader._read_raised),
    "|": MarkdownReader._read_pipe,
    **dict.fromkeys("*_~", MarkdownReader._read_emphasis),
    **dict.fromkeys("hHwW", MarkdownReader._start_address),
}
