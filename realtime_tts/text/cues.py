"""Stage directions that language models write for a voice: `[laughs]`, `*sighs*`.

Their words tell them from text: a cue begins with a word for a sound, a gesture or a way of
speaking, perhaps behind an adverb. `[Name]`, `[1]` and `*very*` are text. The words:
`cue_words.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from realtime_tts.text import cue_words as words
from realtime_tts.text.characters import is_hangul, is_word_character
from realtime_tts.text.marks import Step
from realtime_tts.text.speech_writer import Gap, SpeechWriter

_MOST = 80  # characters
_SHORTEST = 3  # letters that a word cut by the end of the text must have
_ABBREVIATION = 3  # the most capitals that are one: (RI)
_MOST_WORDS = {"[": 6, "(": 4, "（": 4, "【": 4, "*": 14, "_": 14}
_CLOSERS = {"[": "]", "(": ")", "（": "）", "【": "】", "*": "*", "_": "_"}
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_FIRST = re.compile(r"\s*([^\W\d_]*(?:['’-][^\W\d_]*)*)\s*")
_NOT_IN_ONE = re.compile(r"[?:\n\d=<>{}\[\]()（）|/\\@#$%^&+`*_]|[.!…]+[^.!…]")
_LAST_WORD = re.compile(r"\w+\Z")
_LONGEST_SUBJECT = max(map(len, words.SUBJECTS))
_UNSPACED = "\u2e80"
"""From here on are the letters of Chinese, Japanese and Korean."""


class CueReader:
    """Leaves out the cues of one text. Calls `on_style` with those that say how the text behind
    them is spoken: `[excited]`, `[whispers]`."""

    def __init__(self, writer: SpeechWriter, on_style: Callable[[str], None]) -> None:
        self._out = writer
        self._on_style = on_style
        self.end = -1
        """The offset behind the last cue."""

    def read(self, window: str, at: int, ended: bool) -> Step:
        """Return the length of the cue that a star, underscore or parenthesis begins; 0 for
        none."""
        if len(window) == 1:
            return 0 if ended else None
        step = read_cue(window, self._out.tail, ended)
        if step:
            self._leave_out(at, step)
        return step

    def read_label(self, window: str, at: int, ended: bool) -> Step:
        """Return the length of the cue that a bracket begins; 0 for none, or for a link's label."""
        if len(window) == 1:
            return 0  # `LinkReader.label` asks for more
        step = read_cue(window, self._out.tail, ended)
        if step and step == len(window) and not ended:
            return None
        if not step or window[step : step + 1] == "(":
            return None if step is None else 0
        cue = window[1 : step - 1].lower()
        if _WORD.findall(cue)[-1:] and _WORD.findall(cue)[-1] in words.SPOKEN_SO:
            self._on_style(cue)
        self._leave_out(at, step)
        return step

    def _leave_out(self, at: int, length: int) -> None:
        self._out.gap(Gap.TAG, at, length)
        self.end = at + length

    def waits(self, window: str) -> bool:
        """Return whether the window is an incomplete cue, which is never spoken, however long its
        rest takes."""
        if len(window) < 2 or window[0] not in _CLOSERS:
            return False
        return read_cue(window, self._out.tail, False) is None


def read_cue(window: str, before: str, ended: bool) -> Step:
    """Return the length of the cue at the beginning; 0 for none; None if more text is needed.

    `before` is the text written before it, at least its last word. A cue that the end of the text
    cuts counts as a cue.
    """
    mark = window[0]
    if _is_said(mark, before):
        return 0
    close = window.find(_CLOSERS[mark], 1)
    if close < 0:
        return _read_open(window, ended)
    content = window[1:close].rstrip(".!…")
    if len(content) > _MOST or not _is_cue(content, mark) or _is_gloss(content, mark, before):
        return 0
    return close + 1


def _read_open(window: str, ended: bool) -> Step:
    """Return the length of a cue whose closing mark has not come, as `read_cue` does."""
    mark, content = window[0], window[1:]
    if len(content) > _MOST or not _may_be_cue(content, mark):
        return 0
    if not ended:
        return None
    found, head = _WORD.findall(content.lower()), _heads(mark)
    cut = found[-1] if found else ""
    begun = len(cut) >= _SHORTEST and any(word.startswith(cut) for word in head)
    return len(window) if begun or any(word in head for word in found) else 0


def _is_said(mark: str, before: str) -> bool:
    """Return whether the marked words are text: an emphasised verb (he *laughs* at them), or
    anything directly behind a letter: `list[int]`, `x*y*z`."""
    if is_word_character(before[-1:]):
        return True
    return mark in "*_" and _is_in_clause(before)


def _is_in_clause(before: str) -> bool:
    """Return whether a clause goes on behind the text: behind a subject, or an article. In Korean
    behind any word, in Chinese and Japanese directly behind one: 我很*开心*."""
    bare = before.rstrip(" ")
    if bare[-1:] >= _UNSPACED and bare[-1:].isalpha():
        return len(bare) == len(before) or is_hangul(bare[-1])
    start = max(0, len(bare) - _LONGEST_SUBJECT - 1)
    match = _LAST_WORD.search(bare, start) if len(bare) < len(before) else None
    return match is not None and match.group().lower() in words.SUBJECTS


def _heads(mark: str) -> frozenset[str]:
    return words.BRACKETED if mark in "[【" else words.ACTED


def _is_cue(content: str, mark: str) -> bool:
    if _NOT_IN_ONE.search(content) or (len(content) <= _ABBREVIATION and content.isupper()):
        return False
    if content.lower() in (words.WHOLE if mark in "*_" else words.ENCLOSED):
        return True
    found = _WORD.findall(content.lower())
    if not found or not content[:1].isalpha() or len(found) > _MOST_WORDS[mark]:
        return False
    if len(found) > 1 and " ".join(found) in words.PHRASES:
        return True
    if mark == "[" and len(found) > 1 and found[-1] == "accent":
        return True
    while len(found) > 1 and _is_manner(found[0]):
        found = found[1:]
    if len(found) == 1 and found[0] in words.ALONE:
        return True
    if found[0] not in _heads(mark) or (mark in "(（" and _explains(found)):
        return False
    return mark in "*_" or all(_is_with(word, mark) for word in found[1:])


def _is_gloss(content: str, mark: str, before: str) -> bool:
    """Return whether a word in parentheses explains the one before it in its line: take a lift
    (ride)."""
    return (
        mark in "(（"
        and content.lower() in words.GLOSSES
        and is_word_character(before.rstrip(" ")[-1:])
    )


def _is_manner(word: str) -> bool:
    return word in words.MANNERS or (word.endswith(("ly", "mente")) and len(word) > 4)


def _explains(found: list[str]) -> bool:
    """Return whether words in parentheses are things or activities: signs (coughing, sneezing)."""
    if len(found) == 1:
        return found[0] in words.NOUNS
    return all(word == "and" or word.endswith("ing") for word in found)


def _is_with(word: str, mark: str) -> bool:
    return word in words.COMPANIONS or word in _heads(mark) or _is_manner(word)


def _may_be_cue(content: str, mark: str) -> bool:
    """Return whether more text could make a cue of `content`."""
    if not content:
        return True
    if not content[0].isalpha() or _NOT_IN_ONE.search(content):
        return False
    starts = words.WHOLE_STARTS if mark in "*_" else words.ENCLOSED_STARTS
    if content.lower().rstrip(".!…") in starts:
        return True
    found = _WORD.findall(content.lower())
    if " ".join(found) in words.PHRASE_STARTS:
        return True
    first = _FIRST.match(content)
    assert first is not None
    word, rest = first.group(1).lower(), content[first.end() :]
    if first.end() == len(content) and not content[-1].isspace():
        return _begins(word, mark)
    if _is_manner(word) and rest:
        return _may_be_cue(rest, mark)
    if not (_is_manner(word) or word in _heads(mark)):
        return False
    complete = found[1:] if rest[-1:].isspace() else found[1:-1]
    return mark in "*_" or all(_is_with(each, mark) for each in complete)


def _begins(word: str, mark: str) -> bool:
    """Return whether a word of a cue may begin with these letters."""
    if not word:
        return False
    starts = words.BRACKETED_STARTS if mark in "[【" else words.ACTED_STARTS
    return word in starts or _is_manner(word)
