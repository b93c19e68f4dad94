"""Rules for Roman numerals in German: kings, world wars, chapters."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from realtime_tts.text.languages import german_cues as cues
from realtime_tts.text.languages.german_words import cardinal, stem
from realtime_tts.text.languages.language import Rule
from realtime_tts.text.languages.rules import ROMAN, roman_value, rule

Words = Callable[[re.Match[str]], str]


def _king(the: str, ending: str) -> Words:
    return lambda match: f"{the} {stem(roman_value(match['roman'])).capitalize()}{ending}"


def _ending_in(ending: str) -> Words:
    return lambda match: stem(roman_value(match["roman"])).capitalize() + ending


def _numerals() -> Iterator[Rule]:
    """Yield the rules for kings (the full stop of Ludwig XIV. goes) and chapters."""
    preposition = r"\b(?:unter|von|mit|bei|zu|nach|neben|gegenüber) (?:König |Kaiser |Papst )?"
    for stop in (rf"\.(?= (?!{cues.OPENERS})\S|[,;:!?)»“])", r"(?=\.)"):
        for names, the, of in ((cues.KINGS, "der", "dem"), (cues.QUEENS, "die", "der")):
            yield rule(f"{ROMAN}{stop}", _king(of, "en"), rf"{preposition}(?:{names}) ")
            yield rule(f"{ROMAN}{stop}", _king(the, "e"), rf"\b(?:{names}) ")
    for cue, ending in ((cues.OBLIQUE, "en"), (cues.WEAK, "e")):
        yield rule(rf"{ROMAN}\.(?= Weltkrieg)", _ending_in(ending), cue)
    chapter = rf"\b(?:{cues.CHAPTERS}) "
    yield rule(rf"{ROMAN}(?!\w)", lambda m: cardinal(roman_value(m["roman"])), chapter)


NUMERALS = tuple(_numerals())
