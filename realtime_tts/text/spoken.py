"""How much of a turn's text was heard when it was interrupted: an estimate.

It is for models that do not report which text a frame of audio speaks. What is known: the seconds
played and generated, and the text. Every spoken character c has an expected duration d(c) by its
script (`_duration`), and D is the sum of d over the text the model was given.

- Generation complete: the text fills the audio, so heard = D * played / generated. In a text of
  one script this is nearly the proportion of characters.
- Not complete: heard = played / pace, and at most D. The pace is what the voice usually takes for
  an expected second (`SpeechRates`).

The characters whose durations sum up to `heard` are counted as spoken, back to the last end of a
word (any character, where words are not separated by spaces). The estimate is rather too small than
too large: an agent may repeat a word, but does not believe it said what nobody heard.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Hashable, Iterable, Sequence
from itertools import accumulate, takewhile
from typing import NamedTuple

from realtime_tts.languages import known_as
from realtime_tts.recent import Recent
from realtime_tts.text.characters import (
    JOINED,
    PAUSES,
    SENTENCE_ENDS,
    ZERO_WIDTH_JOINER,
    writes_without_spaces,
)
from realtime_tts.text.pipeline import TextPipeline

# Seconds per letter by script, from usual speaking rates: about 15 letters and spaces per second in
# alphabets, fewer where vowels are not written, 4.5 Chinese and 5.5 Korean syllables, 7.5 morae.
_LETTER_SECONDS = 0.067
_SCRIPT_SECONDS = (
    (0x0370, 0x058F, 0.067),  # Greek, Cyrillic, Armenian
    (0x0590, 0x08FF, 0.09),  # Hebrew, Arabic
    (0x0900, 0x0DFF, 0.09),  # scripts of India
    (0x0E00, 0x0EFF, 0.085),  # Thai, Lao
    (0x1000, 0x109F, 0.09),  # Burmese
    (0x1100, 0x11FF, 0.09),  # Korean letters
    (0x1780, 0x17FF, 0.09),  # Khmer
    (0x3040, 0x30FF, 0.135),  # kana
    (0x3400, 0x9FFF, 0.22),  # ideographs
    (0xAC00, 0xD7AF, 0.18),  # Korean syllables
    (0xF900, 0xFAFF, 0.22),
    (0x20000, 0x3FFFF, 0.22),
)
_JAPANESE_IDEOGRAPH_SECONDS = 0.27  # two morae
_KANA = re.compile("[\u3040-\u30ff]")
_DIGIT_SECONDS = 0.28  # a word
_SPACE_SECONDS = 0.05
_SENTENCE_END_SECONDS = 0.35
_PAUSE_SECONDS = 0.15


class SpokenSplit(NamedTuple):
    """The caller's text in two parts; joined they are the source exactly."""

    spoken: str
    remaining: str


class SpokenPart(NamedTuple):
    """The audio of one segment: `pause` seconds of silence, then `generated` seconds of speech.

    Its text begins at character `start` of `TextPipeline.spoken`. It is played at `speed`, and the
    seconds are as played.
    """

    start: int
    pause: float
    generated: float
    speed: float = 1.0


ROUNDING = 1e-5
"""Seconds, less than a sample, by which two sums of the same sound may differ."""


def split_spoken(
    pipeline: TextPipeline,
    played: float,
    generated: float,
    *,
    complete: bool = False,
    language: str | None = None,
    parts: Sequence[SpokenPart] = (),
    pace: float = 1.0,
) -> SpokenSplit:
    """Split `pipeline.source` at what was heard.

    `parts`: the begun segments of a turn that has pauses; all but the last are complete. `played`
    and `generated` are seconds of this turn's audio; `complete` says that the text was finished and
    that no more audio will be generated. `language` ("Japanese") refines durations; `pace`: seconds
    of audio per expected second, while generation is not complete.

    Nothing played means nothing spoken; all played of a complete generation means all spoken. More
    played never means less spoken.
    """
    source = pipeline.source
    if played <= 0:
        return SpokenSplit("", source)
    if complete and played >= generated:
        return SpokenSplit(source, "")
    end = len(pipeline.spoken) if complete else pipeline.fed_characters
    heard = _Heard(0, end, played, generated, complete)
    if parts:
        heard = _in_parts(heard, parts, pipeline)
    start, end, played, generated, complete = heard
    durations = expected_durations(pipeline.spoken[start:end], language)
    seconds = min(played, generated) / pace
    if complete and generated > 0:
        durations = list(durations)
        seconds = sum(durations) * played / generated
    ends = accumulate(durations)  # of a long text only as many as were heard
    count = start
    if seconds > 0:
        count += sum(1 for _ in takewhile(lambda end: end <= seconds, ends))
    while count > start and not may_end_word(pipeline.spoken, count):
        count -= 1
    return split_at(pipeline, count)


def split_at(pipeline: TextPipeline, count: int) -> SpokenSplit:
    """Split the caller's text behind the first `count` spoken characters."""
    source, cut = pipeline.source, source_cut(pipeline, count)
    return SpokenSplit(source[:cut], source[cut:])


class _Heard(NamedTuple):
    """Seconds of spoken[start:end] that were played; the rest is as in `split_spoken`."""

    start: int
    end: int
    played: float
    generated: float
    complete: bool


def _in_parts(heard: _Heard, parts: Sequence[SpokenPart], pipeline: TextPipeline) -> _Heard:
    """Return the part in which the listener was; `played` is at most 0 in the pause before it."""
    played = heard.played
    for index, part in enumerate(parts[:-1]):
        played -= part.pause
        if played < part.generated - ROUNDING:
            return _Heard(part.start, parts[index + 1].start, played, part.generated, True)
        played -= part.generated
    last, later = parts[-1], pipeline.segments[len(parts) :]
    end = min([heard.end, *(segment.start for segment in later)])
    return _Heard(last.start, end, played - last.pause, last.generated, heard.complete)


def source_cut(pipeline: TextPipeline, count: int) -> int:
    """Return where the first `count` characters, and the marks that close them, end in the
    source."""
    if not count:
        return 0
    source = pipeline.source
    cut = pipeline.source_offset(count)
    next_start = pipeline.source_start(count)
    held = next_start == len(source) and not pipeline.finished  # what comes next is not known yet
    if source[cut - 1 : cut].isspace():
        return cut  # what follows a space closes no word: it opens the next one, as the sign of $5
    while cut < next_start and not source[cut].isspace():
        if source[cut] == "<" and (held or source[cut + 1 : cut + 2] != "/"):
            break  # a tag that opens belongs to what follows
        if held and source[cut].isalnum():
            break
        cut += 1
    return cut


def expected_durations(text: str, language: str | None) -> Iterable[float]:
    """Return the expected seconds of each character, computed as they are taken."""
    japanese = known_as(language) == "japanese"
    japanese = japanese or not text.isascii() and _KANA.search(text) is not None
    return map(_DURATIONS[japanese].__getitem__, text)


def _duration(char: str, japanese: bool) -> float:
    """Return the expected seconds of one character, pauses included."""
    if char in SENTENCE_ENDS:
        return _SENTENCE_END_SECONDS
    if char in PAUSES:
        return _PAUSE_SECONDS
    if char.isspace():
        return _SPACE_SECONDS
    if char.isdigit():
        return _DIGIT_SECONDS
    if not char.isalpha():
        return 0.0  # other punctuation, combining marks
    for low, high, seconds in _SCRIPT_SECONDS:
        if low <= ord(char) <= high:
            is_ideograph = low >= 0x3400 and low != 0xAC00
            return _JAPANESE_IDEOGRAPH_SECONDS if japanese and is_ideograph else seconds
    return _LETTER_SECONDS


class _Durations(dict[str, float]):
    """Caches the durations of recent characters: each of a long text takes 20 ns."""

    def __init__(self, japanese: bool) -> None:
        self._japanese = japanese

    def __missing__(self, char: str) -> float:
        if len(self) >= _REMEMBERED:
            self.clear()
        seconds = self[char] = _duration(char, self._japanese)
        return seconds


_REMEMBERED = 4_096
_DURATIONS = (_Durations(japanese=False), _Durations(japanese=True))


def may_end_word(text: str, index: int) -> bool:
    """Return whether the text may be cut before text[index]: at the end of a word."""
    if index >= len(text):
        return True
    before, after = text[index - 1], text[index]
    category = unicodedata.category(after)
    if category.startswith("M") or after in JOINED:
        return False
    if ZERO_WIDTH_JOINER in (before, after):
        return False
    if category.startswith("P") and category not in ("Ps", "Pi"):
        return False  # punctuation stays with its word
    if writes_without_spaces(before) or writes_without_spaces(after):
        return not before.isspace()
    return after.isspace() and not before.isspace()


_LATELY = 60.0
"""Expected seconds of recent speech that count; older ones fade."""
_SHORTEST = 1.0
"""Expected seconds of a text to learn from: in shorter ones too much is silence at both ends."""
_SLOWEST = 2.0
_VOICES = 1_000


class SpeechRates:
    """The speech rate of each voice: seconds of audio per expected second, 1 if not known.

    Expected is what an average speaker takes. From sentence to sentence the ratio varies by a few
    percent, between voices by tens: what a voice has spoken lately tells how fast it goes on.
    """

    def __init__(self) -> None:
        self._heard: Recent[Hashable, tuple[float, float]] = Recent(_VOICES)

    def of(self, voice: Hashable) -> float:
        """Return the speech rate of a voice, from 1/2 to 2."""
        expected, seconds = self._heard.get(voice, (1.0, 1.0))
        return min(_SLOWEST, max(1 / _SLOWEST, seconds / expected))

    def learn(self, voice: Hashable, expected: float, seconds: float) -> None:
        """Learn that a text of `expected` seconds took `seconds`, from first sound to last."""
        if expected < _SHORTEST or seconds <= 0:
            return
        before = self._heard.get(voice, (0.0, 0.0))
        expected, seconds = before[0] + expected, before[1] + seconds
        kept = min(1.0, _LATELY / expected)
        self._heard[voice] = expected * kept, seconds * kept
