"""Speech text filter: what a listener should hear of the text that an LLM writes.

Decisions (`markdown.py` carries them out):

| in the text | heard |
| --- | --- |
| emphasis `*` `_` `**` `__` `~~`, inline code marks | the text without the marks |
| headings, bullets, check boxes, block quotes | the text without the marks; numbers of lists stay |
| rules of `---`, `***`, `===` and the like | nothing |
| fenced code | nothing: nobody wants code read aloud |
| links, images | the label, the alternative text |
| footnotes `[^1]`, citations `so.[1]`, numbered references `[1](target)` | nothing |
| addresses with `https://`, `http://` or `www.` | the host, which a listener can use |
| tables | the cells of a row, separated by commas |
| check marks alone in a cell, or behind a list's colon | `✓`, `✗`, which the normalizer reads |
| emoji, variation selectors, invisible formatting characters | nothing |
| runs of white space | one space, or one or two newlines |
| tags: `<b>`, `<expression value="excited"/>`, comments | nothing; `markup.py` has what they do |
| stage directions: `[laughs]`, `*sighs*`, `(clears throat)` | nothing |
| entities: `&amp;` | the character |
| everything else: `2 * 3`, `snake_case`, `#1`, `-5`, `$9.99`, `[1]`, `a < b` | as it is written |
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from realtime_tts.text.directions import Item
from realtime_tts.text.markdown import MarkdownReader
from realtime_tts.text.marks import MAX_HELD_CHARACTERS, Step
from realtime_tts.text.speech_writer import SpeechWriter

MAX_HOLD_SECONDS = 0.4
"""Seconds that text may be held for more of it, here and in the normalizer together."""


class TextReader(Protocol):
    """Decides what of a text is spoken. `MarkdownReader` documents the methods."""

    def read(self, window: str, at: int, ended: bool) -> Step: ...

    def waits(self, window: str, *, timed: bool) -> bool: ...

    def end_segment(self) -> None: ...

    @property
    def warnings(self) -> list[str]: ...


class SpeechTextFilter:
    """Takes text in any pieces; gives the pieces to speak, with their offsets in the text fed.

    Only a mark whose meaning is not yet clear is held (`*`, `[label`, `http`), with what follows
    it. The guarantee:

    - If no hold lasts `MAX_HOLD_SECONDS`, the pieces joined are the same for every split of the
      text, characters and offsets alike.
    - A hold that lasts as long ends: the held text is read as if the text ended with it, so a mark
      that is still incomplete comes out as plain text, and what follows is filtered as usual.
      `deadline` says when; `poll` does it, and so does the next `feed`.
    - `flush` does the same at once.
    - An incomplete tag is never spoken: it waits for its rest, and is dropped at the end of all
      text. So does an incomplete cue such as `[laug`, except that a `flush` ends it.

    `now` is in seconds on the caller's clock and never goes back.
    """

    def __init__(self, reader: Callable[[SpeechWriter], TextReader] = MarkdownReader) -> None:
        self._writer = SpeechWriter()
        self._reader = reader(self._writer)
        self._held = ""
        self._waits: bool | None = None  # only more text ends the hold; None: not known yet
        self._read = 0  # offset of the held text
        self._since = 0.0  # when its first character, or one before it, arrived

    @property
    def warnings(self) -> list[str]:
        """What the text asked for and cannot be done, as messages for the client."""
        return self._reader.warnings

    def feed(self, text: str, now: float) -> list[Item]:
        self._release_if_due(now)
        held_until = self._read + len(self._held)
        self._held += text
        self._advance(ended=False)
        if self._read >= held_until:
            self._since = now
        return self._writer.take()

    def flush(self, *, final: bool = False) -> list[Item]:
        """Release everything held except an incomplete tag, which waits for its rest. `final`: no
        text follows, and the tag is dropped."""
        self._advance(ended=True, timed=False, final=final)
        self._reader.end_segment()
        return self._writer.take()

    def poll(self, now: float) -> list[Item]:
        """Release text that has been held too long."""
        self._release_if_due(now)
        return self._writer.take()

    def deadline(self) -> float | None:
        """Return when `poll` will release something; None if only more text ends the hold."""
        if self._held and self._waits is None:
            self._waits = self._reader.waits(self._held, timed=True)
        return None if not self._held or self._waits else self._since + MAX_HOLD_SECONDS

    def held_since(self, now: float) -> float | None:
        """Return when the held text began to wait; None if nothing is held, or its time is over."""
        waits = self._held and now < self._since + MAX_HOLD_SECONDS
        return self._since if waits else None

    def _release_if_due(self, now: float) -> None:
        if self._held and now >= self._since + MAX_HOLD_SECONDS and self.deadline() is not None:
            self._advance(ended=True)

    def _advance(self, ended: bool, *, timed: bool = True, final: bool = False) -> None:
        """Read as far as decisions can be made."""
        self._waits = None
        done = 0
        while done < len(self._held):
            window = self._held[done : done + MAX_HELD_CHARACTERS]
            full, at = len(window) == MAX_HELD_CHARACTERS, self._read + done
            step = self._reader.read(window, at, final or full)
            if step is None and ended and not self._reader.waits(window, timed=timed):
                step = self._reader.read(window, at, True)
            if step is None:
                break
            done += step
        self._held = self._held[done:]
        self._read += done
