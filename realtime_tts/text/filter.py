"""Speech text filter: what a listener should hear of the text that an LLM writes.

Decisions (`markdown.py` carries them out):

| in the text | heard |
| --- | --- |
| emphasis `*` `_` `**` `__` `~~`, inline code marks | the text without the marks |
| headings, bullets, check boxes, block quotes | the text without the marks; numbers of lists stay |
| rules of `---`, `***`, `===` and the like | nothing |
| fenced code | nothing: nobody wants code read aloud |
| links, images | the label, the alternative text |
| footnotes `[^1]`, numbered references `[1](target)` | nothing |
| addresses with `https://`, `http://` or `www.` | the host, which a listener can use |
| tables | the cells of a row, separated by commas |
| emoji, variation selectors, invisible formatting characters | nothing |
| runs of white space | one space, or one or two newlines |
| everything else: `2 * 3`, `snake_case`, `#1`, `-5`, `$9.99`, `[1]` | as it is written |
"""

from __future__ import annotations

from realtime_tts.text.markdown import MarkdownReader
from realtime_tts.text.spans import Piece
from realtime_tts.text.speech_writer import SpeechWriter

MAX_HOLD_SECONDS = 0.4
"""How long text may wait for more of it, here and in the normalizer together."""
MAX_HELD_CHARACTERS = 300
"""A mark that is not complete after so many characters is text. Bounds memory, work and waiting."""


class SpeechTextFilter:
    """Feed text in any pieces; get the pieces to speak, with their places in the text fed.

    Only a mark whose meaning is not yet clear is held (`*`, `[label`, `http`), with what follows
    it. The promise:

    - If no hold lasts `MAX_HOLD_SECONDS`, the pieces joined are the same for every split of the
      text, characters and offsets alike.
    - A hold that lasts as long ends: the held text is read as if the text ended with it, so a mark
      that is still incomplete comes out as plain text, and what follows is filtered as usual.
      `deadline` says when; `poll` does it, and so does the next `feed`.
    - `flush` does the same at once.

    `now` is in seconds on the caller's clock and never goes back.
    """

    def __init__(self) -> None:
        self._writer = SpeechWriter()
        self._reader = MarkdownReader(self._writer)
        self._held = ""
        self._read = 0  # offset of the held text
        self._since = 0.0  # when its first character came, or one before it

    def feed(self, text: str, now: float) -> list[Piece]:
        self._release_if_due(now)
        held_until = self._read + len(self._held)
        self._held += text
        self._advance(ended=False)
        if self._read >= held_until:
            self._since = now
        return self._writer.take()

    def flush(self) -> list[Piece]:
        """Release everything held. Later text may follow."""
        self._advance(ended=True)
        self._reader.end_segment()
        return self._writer.take()

    def poll(self, now: float) -> list[Piece]:
        """Release what has been held too long."""
        self._release_if_due(now)
        return self._writer.take()

    def deadline(self) -> float | None:
        """When `poll` will have something to release; None if nothing is held."""
        return self._since + MAX_HOLD_SECONDS if self._held else None

    def _release_if_due(self, now: float) -> None:
        deadline = self.deadline()
        if deadline is not None and now >= deadline:
            self._advance(ended=True)

    def _advance(self, ended: bool) -> None:
        """Read as far as decisions can be made."""
        done = 0
        while done < len(self._held):
            window = self._held[done : done + MAX_HELD_CHARACTERS]
            step = self._reader.read(
                window, self._read + done, ended or len(window) == MAX_HELD_CHARACTERS
            )
            if step is None:
                break
            done += step
        self._held = self._held[done:]
        self._read += done
