"""Times of words and characters, from the spans of a speech.

A speech says which text was spoken between two moments (`Speech.take_words`). Within a span, the
time is divided equally among its characters. So times are in order and never lie beyond the audio
that has been sent. Spans are single words if the model tells when it speaks them
(`SpokenSpan.exact`). Estimated times touch each other; docs/dialects.md says how accurate they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from realtime_tts.server.speech import Speech
from realtime_tts.text.speech_times import SpokenSpan

_WORD = re.compile(r"\S+")


class Timed(NamedTuple):
    """A word or a character, and the seconds between which it is spoken."""

    text: str
    start: float
    end: float


def spans_of(speech: Speech) -> Iterator[SpokenSpan]:
    """Yield the text that was spoken with the sound taken so far and was not yielded before."""
    while words := speech.take_words():
        if words[0].exact:
            yield from words
            continue
        yield SpokenSpan("".join(word.text for word in words), words[0].start, words[-1].end)


def words_of(span: SpokenSpan) -> list[Timed]:
    """Return the words of a span, each with its punctuation. In a script without spaces, a run of
    characters counts as a word. White space takes its share of an estimated time."""
    return [_part(span, found.start(), found.end()) for found in _WORD.finditer(span.text)]


def characters_of(span: SpokenSpan) -> list[Timed]:
    """Return every character of a span, white space too: joined they are its text."""
    return [_part(span, at, at + 1) for at in range(len(span.text))]


def _part(span: SpokenSpan, first: int, end: int) -> Timed:
    begin, stop = 0, len(span.text)
    if span.exact and not span.text.isspace():
        begin, stop = stop - len(span.text.lstrip()), len(span.text.rstrip())
    per_character = (span.end - span.start) / (stop - begin)
    start, after = (min(max(at, begin), stop) - begin for at in (first, end))
    return Timed(
        span.text[first:end], span.start + start * per_character, span.start + after * per_character
    )
