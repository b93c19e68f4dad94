"""Dates and times: where they stand in a text, and the words for them."""

from __future__ import annotations

import re

from realtime_tts.text.languages.amounts import AmountWords, Reading
from realtime_tts.text.languages.language import Language
from realtime_tts.text.languages.patterns import Patterns


class DateWords(AmountWords):
    """Reads dates, times and decades. The methods take a closed text that may begin with one, and
    the word before it; they return None if it does not."""

    def __init__(self, language: Language) -> None:
        super().__init__(language)
        self._patterns = Patterns(language)

    def read_month(self, text: str, previous: str) -> Reading | None:
        """Read a date that begins with a month."""
        match = self._patterns.month_days.match(text)
        if match:
            return self._days(match, previous)
        match = self._patterns.month_day.match(text)
        if match:
            return self._until(text, self._dated(match, previous))
        match = self._patterns.month_year.match(text)
        name = self.language.spans.get(match["month"]) if match else None
        if match is None or name is None:
            return None
        return Reading(match.end(), f"{name} {self._number(match['year'], yearly=True)}")

    def _until(self, text: str, first: Reading | None) -> Reading | None:
        """Return a range if another date follows the first: January 5–February 7."""
        dash = self._patterns.time_dash.match(text, first.length) if first else None
        second = self.read_month(text[dash.end() :], "") if dash else None
        if first is None or dash is None or second is None:
            return first
        words = f"{first.words} {self.language.to} {second.words}"
        return Reading(dash.end() + second.length, words)

    def _days(self, match: re.Match[str], previous: str) -> Reading | None:
        lang, (one, two) = self.language, (int(match["one"]), int(match["two"]))
        if not 1 <= one < two <= 31:
            return None
        first = lang.date(one, lang.months[match["month"]], None, previous)
        year = f", {self._number(match['year'], yearly=True)}" if match["year"] else ""
        return Reading(match.end(), f"{first} {lang.to} {lang.ordinal(two, '')}{year}")

    def _date(self, text: str, previous: str) -> Reading | None:
        patterns, lang = self._patterns, self.language
        match = patterns.day_month.match(text)
        if match:
            return self._dated(match, previous)
        match = patterns.iso_date.match(text)
        if match:
            return self._say_date(match, int(match["day"]), int(match["month"]), previous)
        match = patterns.date.match(text)
        if match is None:
            return None
        one, two = int(match["one"]), int(match["two"])
        day, month = (one, two) if lang.day_first or one > 12 else (two, one)
        if month > 12 and lang.day_first:
            day, month = month, day
        return self._say_date(match, day, month, previous)

    def _dated(self, match: re.Match[str], previous: str) -> Reading | None:
        return self._say_date(
            match, int(match["day"]), self.language.months[match["month"]], previous
        )

    def _say_date(
        self, match: re.Match[str], day: int, month: int, previous: str
    ) -> Reading | None:
        if not (1 <= day <= 31 and 1 <= month <= 12):
            return None
        year = int(match["year"]) if match["year"] else None
        return Reading(match.end(), self.language.date(day, month, year, previous))

    def _time(self, text: str, previous: str) -> Reading | None:
        patterns, lang = self._patterns, self.language
        match = patterns.time.match(text)
        second, half = (match["second"], match["half"]) if match else (None, None)
        if match is None and (match := patterns.hour.match(text)):
            half = match["half"]
        if match is None and (match := patterns.hours.match(text)):
            until = self._time(text[match.end() :], "")
            if until is None:
                return None
            words = f"{lang.cardinal(int(match['hour']))} {lang.to} {until.words}"
            return Reading(match.end() + until.length, words)
        match = match or patterns.glued.match(text)
        if match is None or int(match["hour"]) > 24:
            return None
        minute = match.groupdict().get("minute")
        words = lang.time(
            int(match["hour"]),
            int(minute or 0),
            None if second is None else int(second),
            lang.halves[half] if half else "",
        )
        link = f" {lang.to} " if lang.spaced else lang.to
        dash = patterns.time_dash.match(text, match.end())
        until = self._time(text[dash.end() :], "") if dash else None
        if dash and until:
            return Reading(dash.end() + until.length, words + link + until.words)
        if hour := patterns.until_hour.match(text, match.end()):
            return Reading(hour.end(), words + link + lang.cardinal(int(hour["hour"])))
        return Reading(match.end(), words)

    def _decade(self, text: str, previous: str) -> Reading | None:
        say, cue = self.language.decade, self.language.decade_cue
        match = self._patterns.decade.match(text) if say else None
        if match and len(match["year"]) == 2 and cue and not cue.search(previous + " "):
            return None
        return Reading(match.end(), say(int(match["year"]))) if match and say else None
