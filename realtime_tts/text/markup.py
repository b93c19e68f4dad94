"""What tags mean: which are left out with their content, which separate words, and which direct the
voice (`directions.py`). `docs/text.md` has the table."""

from __future__ import annotations

import re
from dataclasses import replace
from enum import StrEnum
from html import unescape

from realtime_tts.text.characters import EMOJI_PATTERN, INVISIBLE_PATTERN, is_word_character
from realtime_tts.text.citations import RAISING, is_note
from realtime_tts.text.directions import AS_THE_SESSION, Change, SayAs, Voicing
from realtime_tts.text.elements import BLOCKS, CELLS, HIDDEN, INLINE, VOICING
from realtime_tts.text.marks import MAX_HELD_CHARACTERS, Step
from realtime_tts.text.spans import Piece
from realtime_tts.text.speech_writer import Gap, SpeechWriter
from realtime_tts.text.tags import NO_TAG, Tag, closing, declaration, entity, is_open, read_tag
from realtime_tts.text.voicing import changed, pause_of

MAX_DEPTH = 16
"""The deepest nesting of elements that change the voice; those inside it change nothing."""
_CONTENTS = frozenset(("spell", "say-as", "sub", "phoneme"))
"""Elements that are read as a whole, with all they contain."""
_KINDS = frozenset(
    "characters spell-out verbatim digits telephone phone date ordinal cardinal number currency "
    "money".split()
)
_INNER_TAG = re.compile(r"</?[A-Za-z][^<>]*>")
_RAISED = re.compile(r"(?P<number>-?\d{1,3}|[nk])</\s*sup\s*>", re.I)
_OPEN_RAISED = re.compile(r"(?:-?\d{0,3}|[nk])(?:<(?:/\s*(?:s(?:up?)?)?\s*)?)?\Z", re.I)
_MAIL = re.compile(r"<(?P<address>[\w.+-]+@[\w.-]+)>")
_OPEN_MAIL = re.compile(r"<[\w.+-]+(?:@[\w.-]*)?\Z")
_OPEN_PAUSE = re.compile(r"</?(?:b(?:r(?:e(?:a(?:k(?:[\s/>].*)?)?)?)?)?)?\Z", re.I | re.S)


class Skipping(StrEnum):
    """What is being skipped, by the mark that ends it."""

    NOTHING = ""
    COMMENT = "-->"
    TAG = ">"


class MarkupReader:
    """Reads the tags of one text, and writes what they direct. Others read the text around them."""

    def __init__(self, writer: SpeechWriter) -> None:
        self._out = writer
        self._voicing = AS_THE_SESSION
        self._open: list[tuple[str, Voicing]] = []  # elements, and the voicing before each
        self._hidden = ""  # the element that is skipped up to its end tag
        self._skipping = Skipping.NOTHING
        self._cdata = False
        self._in_code = False  # in a tag in inline code, whose brackets are not read
        self.warnings: dict[str, None] = {}
        """What could not be done, as messages for the client."""

    @property
    def skips(self) -> bool:
        """Whether the text that follows is left out: go on with `skip`."""
        return bool(self._hidden or self._skipping)

    def waits(self, window: str) -> bool:
        """Return whether the window begins with an incomplete tag, or one whose content is
        incomplete. It is never spoken, however long its rest takes."""
        if window[:1] != "<":
            return False
        return is_open(window) or _element_is_open(window)

    def speak_so(self, manner: str) -> None:
        """Set how a cue says that what follows is spoken, up to the next cue."""
        voicing = replace(self._voicing, cue=manner)
        if voicing != self._voicing:
            self._voicing = voicing
            self._out.direct(Change(voicing))

    def skip(self, window: str, at: int, ended: bool) -> Step:
        """Skip a comment, a tag that is too long, or an element that is not spoken."""
        if self._skipping:
            step = closing(window, self._skipping.value, ended)
            if step is not None and window[:step].endswith(self._skipping.value):
                self._skipping = Skipping.NOTHING
            return step
        at_end = re.search(rf"</\s*{re.escape(self._hidden)}\s*>", window, re.IGNORECASE)
        if at_end is not None:
            self._hidden = ""
            return at_end.end()
        kept = window.rfind("<")
        if kept < 0 or ended:
            return len(window)
        if not is_open(window[kept:]):
            return len(window)
        return kept or None

    def read(self, window: str, at: int, ended: bool) -> Step:
        """Read what begins with `<`. Return the length of what is left out; 0 if it is text."""
        if len(window) == 1:
            return len(window) if ended else None
        if window[1] in "!?":
            return self._read_declaration(window, ended)
        for empty in ("<>", "</>"):
            if window.startswith(empty):
                return len(empty)
        tag = read_tag(window, self._out.inside_word, ended)
        if tag is None:
            return None
        if not tag.length:
            return self._read_mail(window, at, ended)
        if tag.length >= MAX_HELD_CHARACTERS and window[tag.length - 1] != ">":
            self._skipping = Skipping.TAG
        return self._carry_out(tag, window, at, ended)

    def end_cdata(self, window: str, ended: bool) -> Step:
        """Read the mark that ends CDATA, at a closing bracket."""
        if not self._cdata:
            return 0
        if not ended and len(window) < 3 and "]]>".startswith(window):
            return None
        if not window.startswith("]]>"):
            return 0
        self._cdata = False
        return 3

    def read_entity(self, window: str, at: int, ended: bool) -> Step:
        """Read what an ampersand begins; return 0 if it is only an ampersand."""
        found = entity(window, ended)
        if found is None or not found[0]:
            return None if found is None else 0
        length, char = found
        if char.isspace():
            self._out.space(" ", at)
        elif EMOJI_PATTERN.match(char) or INVISIBLE_PATTERN.match(char):
            self._out.gap(Gap.EMOJI, at, length)
        else:
            self._out.replace(Piece(char, at, at + length))
        return length

    def read_in_code(self, window: str, at: int, ended: bool) -> Step:
        """Read an angle bracket: in `<div>` the word is said, in `a < b` and `x -> y` the sign."""
        if window[0] == ">":
            drops, self._in_code = self._in_code, False
            if not drops:
                self._out.say(">", at)
            return 1
        if len(window) == 1 and not ended:
            return None
        following = window[1:2]
        if self._out.inside_word or not (following.isalpha() or following == "/"):
            self._out.say("<", at)
            return 1
        self._in_code = True
        return 2 if following == "/" else 1

    def _read_declaration(self, window: str, ended: bool) -> Step:
        word = declaration(window, ended)
        if not word:
            return None if word is None else 0
        if word == "<![CDATA[":
            self._cdata = True
        else:
            self._skipping = Skipping.COMMENT if word == "<!--" else Skipping.TAG
        return len(word)

    def _read_mail(self, window: str, at: int, ended: bool) -> Step:
        match = _MAIL.match(window)
        if match is None:
            return None if not ended and _OPEN_MAIL.match(window) else 0
        self._out.say(match["address"], at + 1)
        return match.end()

    # What a tag does ------------------------------------------------------------------------------

    def _carry_out(self, tag: Tag, window: str, at: int, ended: bool) -> Step:
        if tag.name in _CONTENTS and not tag.ends and not tag.alone:
            return self._read_element(tag, window, at, ended)
        if tag.name == "sup" and not tag.ends and self._is_raised():
            return self._read_raised(tag.length, window, at, ended)
        if tag.name in HIDDEN and not (tag.ends or tag.alone or self._is_named()):
            self._hidden = tag.name
        if tag.name == "break" and not tag.ends:
            pause = pause_of(tag.attributes)
            if pause is not None:
                self._out.direct(pause)
        elif tag.name in VOICING:
            self._change(tag)
        self._part(tag.name, at, tag.length)
        return tag.length

    def _is_named(self) -> bool:
        """Return whether a sentence only mentions the tag: "I use <script> tags"."""
        return is_word_character(self._out.tail.rstrip(" ")[-1:])

    def _part(self, name: str, at: int, length: int) -> None:
        """Write what separates the texts around a tag."""
        if name in BLOCKS:
            self._out.end_line(at, length)
        elif name in CELLS:
            self._out.gap(Gap.CELL, at, length)
        elif name in ("br", "break", "speak"):
            self._out.gap(Gap.SPACE, at, length)
        elif name not in INLINE:
            self._out.gap(Gap.TAG, at, length)

    def _change(self, tag: Tag) -> None:
        before = self._voicing
        if tag.ends:
            names = [name for name, _ in self._open]
            if tag.name not in names:
                return
            while True:
                name, self._voicing = self._open.pop()
                if name == tag.name:
                    break
        else:
            if not tag.alone:
                if len(self._open) >= MAX_DEPTH:
                    return
                self._open.append((tag.name, before))
            self._voicing = changed(before, tag.name, tag.attributes)
        if self._voicing != before:
            self._out.direct(Change(self._voicing))

    def _read_element(self, tag: Tag, window: str, at: int, ended: bool) -> Step:
        """Read an element with all it contains. It is short, so all of it is waited for."""
        end = _end_of(tag, window)
        if end is None:
            if not ended:
                return None
            if len(window) >= MAX_HELD_CHARACTERS:
                return tag.length
            end = len(window), len(window)
        first, last, kind, attributes = tag.length, end[0], tag.name, tag.attributes
        text = " ".join(unescape(_INNER_TAG.sub("", window[first:last])).split())
        piece = Piece(text, at + first, at + last)
        if kind == "sub" and attributes.get("alias"):
            self._out.replace(Piece(attributes["alias"], at + first, at + last))
        elif kind == "phoneme" and (respelling := self._respelling(attributes)):
            self._out.replace(Piece(respelling, at + first, at + last))
        elif text and (kind == "spell" or attributes.get("interpret-as", "").lower() in _KINDS):
            detail = attributes.get("format") or attributes.get("currency") or ""
            as_kind = attributes.get("interpret-as", "characters").lower()
            self._out.say_as(SayAs(as_kind, piece, detail.lower()))
        else:
            return tag.length
        return end[1]

    def _is_raised(self) -> bool:
        """Return whether what is raised here may be a power, or a note."""
        return bool(self._out.previous) and not self._out.previous.isspace()

    def _read_raised(self, start: int, window: str, at: int, ended: bool) -> Step:
        """Read a raised number: the power of 10<sup>6</sup>, but not a note."""
        match = _RAISED.match(window, start)
        if match is None:
            return None if not ended and _OPEN_RAISED.match(window, start) else start
        if not is_note(self._out.tail, in_tag=True):
            first, last = match.span("number")
            raised = match["number"].translate(RAISING)
            said = f"^{raised}" if raised.isalpha() else raised
            self._out.replace(Piece(said, at + first, at + last))
        return match.end()

    def _respelling(self, attributes: dict[str, str]) -> str | None:
        """Return what a `<phoneme>` spells in letters; None for other alphabets."""
        alphabet = attributes.get("alphabet", "ipa").lower()
        if alphabet in ("respelling", "x-respelling", "spelling"):
            return attributes.get("ph")
        self.warnings[f"phoneme: the alphabet {alphabet!r} is not read, only respelling"] = None
        return None


def _end_of(tag: Tag, window: str) -> tuple[int, int] | None:
    """Return where an element's content ends, and where its end tag does; None if not here."""
    found = re.compile(rf"</\s*{re.escape(tag.name)}\s*>", re.I).search(window, tag.length)
    return found.span() if found else None


def _element_is_open(window: str) -> bool:
    tag = read_tag(window, False, False)
    if tag is None or tag.name not in _CONTENTS or tag.ends or tag.alone:
        return False
    return len(window) < MAX_HELD_CHARACTERS and _end_of(tag, window) is None


class PauseReader:
    """Reads a text in which nothing but a pause of a stated time is markup."""

    def __init__(self, writer: SpeechWriter) -> None:
        self._out = writer
        self.warnings: list[str] = []

    def read(self, window: str, at: int, ended: bool) -> Step:
        """See `MarkdownReader`."""
        before = window.partition("<")[0]
        if before:
            self._out.copy(before, at)
            return len(before)
        tag = read_tag(window, False, ended) if not ended or not is_open(window) else NO_TAG
        if tag is None:
            return None if _OPEN_PAUSE.match(window) else self._say_mark(at)
        pause = (
            pause_of(tag.attributes) if tag.name == "break" and "time" in tag.attributes else None
        )
        if tag.name == "break" and tag.ends:
            return tag.length
        if pause is None:
            return self._say_mark(at)
        self._out.direct(pause)
        return tag.length

    def waits(self, window: str, *, timed: bool) -> bool:
        """See `MarkdownReader`."""
        return len(window) > 1 and _OPEN_PAUSE.match(window) is not None and is_open(window)

    def end_segment(self) -> None:
        """Do nothing: nothing extends over the end of a segment."""

    def _say_mark(self, at: int) -> int:
        self._out.copy("<", at)
        return 1
