"""Speech-ready text: numbers, abbreviations, a lexicon's words and pauses, as they arrive.

Between the speech text filter and the tokenizer. How each is read: docs/text.md, with a table
for each language (`languages/`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache

from realtime_tts.text.abbreviations import abbreviations_for, sentence_ends, word_before
from realtime_tts.text.characters import NO_SPACES, is_word_character
from realtime_tts.text.directions import Change, Item, SayAs, Seam, Voicing
from realtime_tts.text.filter import MAX_HOLD_SECONDS
from realtime_tts.text.languages.amounts import NOTHING, Reading
from realtime_tts.text.languages.codes import codes_for
from realtime_tts.text.languages.language import Language
from realtime_tts.text.languages.patterns import MAX_WORD, SIGNS, VULGAR
from realtime_tts.text.languages.reading import begins_number, reader_for
from realtime_tts.text.languages.rules import rules_for
from realtime_tts.text.languages.say_as import said_as
from realtime_tts.text.languages.signs import signs_for
from realtime_tts.text.lexicon import Lexicon
from realtime_tts.text.reading_writer import ReadingWriter
from realtime_tts.text.spans import Piece
from realtime_tts.text.unspoken import end_of

_VULGAR = "".join(VULGAR)
_BEFORE = MAX_WORD  # characters that a reading may look back
_NUMBER_SIGNS = frozenset(f"{SIGNS}{_VULGAR}+-−±.(")
_AMOUNT_BEHIND = re.compile(r"(?:\$ ?| )\d")
_LETTERS = re.compile(r"[^\W\d_]*")
_FOLLOWING = re.compile(r" [a-z]+(?![a-z])(?=.)", re.DOTALL)
_OPEN_WORD = re.compile(r"(?: [a-z]*)?\Z")
_BEFORE_DATES = frozenset("on On by By since Since until Until from From before Before of".split())
_COUNTED = re.compile(
    r" (?:people|children|men|women|of|more|(?!(?:is|was|has|as|this|works|does|falls|comes|goes"
    r"|looks|seems|gets|makes|marks|sounds|always|perhaps)\Z)[a-z]{2,}s)\Z"
)
"""A word for what is counted, behind a number: May 5 people come?"""
_HOLD_STOP_SECONDS = 0.05
"""Seconds that a full stop behind a word waits: it ends a sentence unless `com` follows."""
_TIMES = re.compile(r"(?<!\w)[1-9]\d*(?:x\d+)*x\Z")
"""Text behind which a number is another factor, and no part of a name: 120x80 cm."""
_COUNTS = frozenset(f"{SIGNS}0123456789")
_NEVER = re.compile(r"(?!)")

Decision = tuple[int, str] | None


@cache
def _candidate_for(language: Language | None, all_words: bool) -> re.Pattern[str]:
    """Return a pattern for where something may begin that is not said as it is written."""
    signs = signs_for(language) if language else None
    others = rf"\W\d_{NO_SPACES}{signs.alone if signs else ''}"
    word = rf"[^{others}]"
    ending = language.ending if language else ""
    if ending:  # ends a word before it
        first, rest = ending[0], ending[1:]
        word = rf"(?:[^{others}{first}]++|{first}(?!{rest}(?!{word})))++|{ending}"
    else:
        word += "+"
    if all_words:
        return re.compile(rf"{word}|\w|[^\s\w]")
    if signs is None:
        return _NEVER
    return re.compile(rf"{word}|\d|[<{SIGNS}(.{_VULGAR}−±{re.escape(signs.chars)}-]")


class SpeechNormalizer:
    """Takes the filter's pieces; gives the pieces to speak, and the pauses between them, in order.

    `language` None: numbers and abbreviations stay as they are; `language_of` returns the language
    of a voicing. Only what more text could change is held (`98.`, `$3`, `Dr`), with what follows
    it; the guarantee is the filter's: any split gives the same, unless the text pauses for
    `MAX_HOLD_SECONDS` where it could end (`98.`, not `$3`; for 50 ms behind the full stop of a
    word), and then the held text is read as if it did. A seam ends the text before it. `now` is in
    seconds on the caller's clock and never goes back.
    """

    def __init__(
        self,
        language: Language | None,
        lexicon: Lexicon | None = None,
        language_of: Callable[[Voicing], Language | None] | None = None,
    ) -> None:
        self._lexicon = lexicon
        self._language_of = language_of
        self._speak(language)
        self._held = ""
        self._done = 0  # characters of it that the writer already has
        self._out = ReadingWriter()
        self._since = 0.0  # when its last characters arrived

    def feed(
        self, items: Sequence[Item], now: float, since: float | None = None
    ) -> list[Piece | Seam]:
        """Add text and what directs it; return what can be spoken now.

        `since`: when this text, or text before it, began to wait in an earlier stage.
        """
        self._release_if_due(now)
        came = 0
        for item in items:
            if not isinstance(item, Piece):
                self._advance(ended=True)
                self._direct(item)
                came = 0
            elif item.text:
                self._held += item.text
                self._out.hold(item)
                came += 1
        if came:
            self._since = now if since is None else min(now, since)
            self._advance(ended=False)
        return self._out.take()

    def flush(self) -> list[Piece | Seam]:
        """Release everything held. Later text may follow."""
        self._advance(ended=True)
        return self._out.take()

    def poll(self, now: float) -> list[Piece | Seam]:
        """Release text that has been held too long."""
        self._release_if_due(now)
        return self._out.take()

    def deadline(self) -> float | None:
        """Return when `poll` will release the held text; None if none is, or a word is cut."""
        whole = self._held and end_of(self._held) is not None
        hold = _HOLD_STOP_SECONDS if self._held == "." else MAX_HOLD_SECONDS
        return self._since + hold if whole else None

    def _release_if_due(self, now: float) -> None:
        deadline = self.deadline()
        if deadline is not None and now >= deadline:
            self._advance(ended=True)

    def _speak(self, language: Language | None) -> None:
        """Read the text that follows in this language."""
        self._language = language
        self._reader = reader_for(language) if language else None
        self._rules = rules_for(language) if language else None
        self._abbreviations = abbreviations_for(language) if language else None
        self._signs = signs_for(language) if language else None
        self._codes = codes_for(language) if language else None
        self._ending = language.ending if language else ""
        self._language_halves = bool(language and language.halves)  # a.m. may end a sentence
        self._candidate = _candidate_for(language, self._lexicon is not None)

    @property
    def _spaced(self) -> bool:
        return self._language is None or self._language.spaced

    def _direct(self, item: Seam | SayAs) -> None:
        """Apply a direction to the text behind what was read."""
        if isinstance(item, SayAs):
            text = item.piece.text
            self._out.hold(item.piece)
            if words := said_as(item.kind, text, item.detail, self._language):
                self._out.replace(text, words, spaced=self._spaced)
                return
            self._held = text
            self._advance(ended=True)
            return
        self._out.part(item)
        if isinstance(item, Change) and self._language_of is not None:
            self._speak(self._language_of(item.voicing))

    # Reading --------------------------------------------------------------------------------------

    def _advance(self, ended: bool) -> None:
        text, done, at = self._held, 0, 0
        self._done = 0
        search = self._candidate.search
        while (match := search(text, at)) is not None:
            at = match.start()
            decision = self._decide(text, match, ended)
            if decision is None:
                break
            length, said = decision
            if not length:
                at = match.end()
                continue
            self._out.copy(text[done:at])
            spaced = self._spaced and match.group() != self._ending
            self._out.replace(text[at : at + length], said, spaced=spaced)
            at = done = self._done = at + length
        else:
            at = len(text)
        self._out.copy(text[done:at])
        self._held = text[at:]
        self._done = 0

    def _decide(self, text: str, match: re.Match[str], ended: bool) -> Decision:
        """Return the length of the text at a match and its words; length 0: as written."""
        at, char = match.start(), match.group()[0]
        previous = text[at - 1] if at else self._out.tail[-1:]
        inside = is_word_character(previous) or "\u0300" <= previous <= "\u036f"
        if self._lexicon is not None and not (inside and is_word_character(char)):
            found = self._lexicon.find(text, at, ended)
            if found is None or found[0]:
                return found
        if self._language is None:
            return NOTHING
        assert self._signs and self._codes
        if char in self._codes.first and not inside and self._codes.may_begin(text, at):
            code = self._codes.read(text, at, self._before(text, at), ended)
            if code is None or code.length:
                return code
        if char.isalpha() and char not in self._signs.alone:
            assert self._abbreviations and self._rules
            if not inside and char in "IVX":
                before = self._before(text, at)
                numeral = self._rules.numeral(text, at, before, ended, self._is_own_word)
                if numeral is None or numeral.length:
                    return numeral
            if not inside and match.group() == "x":
                return self._signs.by(text, at, self._before(text, at), ended)
            is_open = match.end() == len(text) and not ended
            ends: bool | None = False
            if match.group().endswith(self._abbreviations.heads_of_ending):
                before = self._before(text, at) if inside else ""
                ends = self._abbreviations.ends_compound(match.group(), before, is_open)
                if ends is None:
                    return None
            may_read = ends if inside else self._abbreviations.may_read(match.group(), is_open)
            return self._word(text, at, ended) if may_read else NOTHING
        if char in self._signs.chars:
            decision = self._signs.read(text, at, self._before(text, at), ended)
            if decision is None or decision.length:
                return decision
        if char.isdecimal() or char in _NUMBER_SIGNS:
            return self._number(text, at, ended, previous)
        return NOTHING

    def _word(self, text: str, at: int, ended: bool) -> Decision:
        assert self._language and self._reader and self._abbreviations
        lang, word = self._language, _LETTERS.match(text, at)
        assert word is not None
        if word.end() == len(text) and not ended and word.group() in self._abbreviations.starts:
            return None
        if not lang.day_first:
            month = self._month(text, at, ended)
            if month is None or month[0]:
                return month
        paired = self._before(text, at).endswith("/")
        if word.group() in self._reader.money_heads and not paired:  # EUR/USD 1.08
            money = self._money(text, at, word.end(), ended)
            if money is None or money[0]:
                return money
        return self._abbreviations.read(text, at, ended, self._before(text, at))

    def _money(self, text: str, at: int, end: int, ended: bool) -> Decision:
        """Read an amount that begins with the name of its currency."""
        assert self._reader
        window = text[end : end + 3]
        if window in ("", " ", "$", "$ ") and not ended:
            return None
        if not _AMOUNT_BEHIND.match(window):
            return NOTHING
        extent = self._reader.extent(text, at, ended, self._is_own_word)
        if extent is None:
            return None
        return self._reader.read_money(text[at:extent]) or NOTHING

    def _month(self, text: str, at: int, ended: bool) -> Decision:
        """Read a date that begins with a month. A word that cannot be a month is not held."""
        assert self._language and self._reader
        months = self._language.months
        end = at
        while end < len(text) and text[end].isalpha() and end - at < 10:
            end += 1
        word = text[at:end]
        if end == len(text) and not ended:
            return None if any(name.startswith(word) for name in months) else NOTHING
        if word not in months:
            return NOTHING
        extent = self._reader.extent(text, at, ended, self._is_own_word)
        if extent is None:
            return None
        reading = self._reader.read_month(text[at:extent], "")
        if reading is None or word not in ("May", "March"):
            return reading or NOTHING
        if word_before(self._before(text, at)) in _BEFORE_DATES:
            return reading
        following = _FOLLOWING.match(text, at + reading.length)
        if following is None:
            return reading if ended or not _OPEN_WORD.match(text, at + reading.length) else None
        return NOTHING if _COUNTED.match(following.group()) else reading

    def _number(self, text: str, at: int, ended: bool, previous: str) -> Decision:
        assert self._reader and self._rules
        begins = begins_number(text, at, previous, ended)
        if not begins:
            return None if begins is None else NOTHING
        extent = self._reader.extent(text, at, ended, self._is_own_word)
        if extent is None:
            return None
        if extent == at:
            return NOTHING  # full-width digits
        lang, context = self._language, text[at:extent]
        assert lang
        if lang.dotted_units and context.endswith("."):
            if len(text) < extent + 2 and not ended:
                return None
            context = text[at : extent + 2]
        window = self._rules.window(text, at, extent, ended, self._is_own_word)
        if window is None:
            return None
        before = self._before(text, at)
        if is_word_character(previous) and context[0] != "." and not _TIMES.search(before):
            return self._reader.read_glued(context, before) or NOTHING
        word = word_before(before)
        around = text[at : max(window, at + len(context))]
        reading = self._reader.read(context, word, before, around)
        if reading is None:
            return NOTHING
        if word in lang.articles or word in lang.places:
            following = text[at + reading.length : at + reading.length + 2]
            if len(following) < 2 and not ended:
                return None
            reading = self._reader.before_noun(context, word, reading, following)
        return self._with_stop(text, at, reading, ended)

    def _with_stop(self, text: str, at: int, reading: Reading, ended: bool) -> Decision:
        """Extend a reading by its abbreviation's full stop, which may end the sentence, too."""
        assert self._language
        end, lang = at + reading.length, self._language
        stops = self._language_halves and text[end - 1] == "."
        unit = bool(lang.dotted_units) and text[end - 1].isalpha() and text[end : end + 1] == "."
        if not stops and not unit:
            return reading
        ends = sentence_ends(text, end + unit, ended, lang.after_time if stops else frozenset())
        if ends is None:
            return None
        if unit:
            name, behind = text[at:end].lstrip("0123456789., "), text[end + 2 : end + 3]
            ends = ends or (behind in _COUNTS and name not in lang.dotted_units)  # 10GB. 3 files
            return reading if ends else Reading(reading.length + 1, reading.words)
        return Reading(reading.length, reading.words + ".") if ends else reading

    def _is_own_word(self, word: str) -> bool:
        return self._lexicon is not None and word in self._lexicon

    def _before(self, text: str, at: int) -> str:
        return (self._out.tail + text[max(self._done, at - _BEFORE) : at])[-_BEFORE:]
