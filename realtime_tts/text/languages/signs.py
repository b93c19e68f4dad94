"""The words for signs: operators, comparisons, powers, and the marks in addresses."""

from __future__ import annotations

import re
from functools import cache

from realtime_tts.text.characters import NO_SPACES, is_word_character
from realtime_tts.text.dialled import is_pound, is_star
from realtime_tts.text.languages.addresses import country, is_address, is_dotted, is_file
from realtime_tts.text.languages.amounts import NOTHING, Reading
from realtime_tts.text.languages.language import Language
from realtime_tts.text.languages.patterns import MAX_WORD, SIGNS, VULGAR
from realtime_tts.text.languages.slashes import parting, pricing

_RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹"
_LOWERED = "₀₁₂₃₄₅₆₇₈₉"
_ARROW = re.compile(
    rf"(?P<sign>→|[-=]>(?= [^\W_a-z])|>(?= [^\W\d_a-z]))(?P<number> ?(?:[-−+]?[{SIGNS}]?\d))?"
)
_OPEN_ARROW = re.compile(rf"(?:→|[-=]|[-=]?>)(?: ?[-−+]?[{SIGNS}]?)?\Z")
_MENU = re.compile(r"(?<!\w)[^\W\d_a-z][\w'’-]+ \Z")
"""A word that names a menu, a page or a button; a single letter is a variable: X > Y."""
_MEASURED = frozenset("%‰°" + SIGNS)
_AMOUNT = re.compile(rf"\d(?:bn|[kKMBT]|[{NO_SPACES}])? ?\Z")
_CLOSED = frozenset(")]\"'’”»")
_RAISED_RUN = re.compile(f"⁻?[{_RAISED}]+")
_JOINED = re.compile(rf"(?:[{_RAISED}]|\^\d+|\([^()]*[-−+*×][^()]*\)|[(^=] ?\d{{0,3}}[xyzn])\Z")
"""What a minus or a slash may directly follow: x²-1, (x+1)/2, (n-1)."""
_ION = re.compile(rf"(?P<number>[{_RAISED}]*)(?P<sign>[⁺⁻])(?![{_RAISED}])")
_OPEN_ION = re.compile(rf"[{_RAISED}]*[⁺⁻]?\Z")
_GRADE = re.compile(
    r"\b(?:[Aa]n?|[Tt]ype:?|[Gg]rade:?|[Bb]lutgruppe:?|[Gg]roupe|[Gg]rupo|[Tt]ipo) (?:[A-DFO]|AB)\Z"
)
"""A grade or a blood type, whose minus is read: type O-."""
_LOWERED_RUN = re.compile(f"[{_LOWERED}]+")
_DIGITS = str.maketrans(_RAISED + _LOWERED + "⁻", "01234567890123456789-")
_OPERAND = re.compile(
    rf"(?:[\d)%π²³{_RAISED}{''.join(VULGAR)}]|(?<![^\s(\d*×÷+=])[A-Za-z]"
    r"|(?<=[\s(=][-−])[A-Za-z]) ?\Z"
)
_SPACED = frozenset("-−/±:")
_OPERATOR = re.compile(rf"[-+=×÷*/−±:] ?(?=[\d√π({SIGNS}]|[−±-]\d|[A-Za-z](?![A-Za-z0-9_]))")
_OPEN_OPERATOR = re.compile(r"[-+=×÷*/−±:] ?(?:[A-Za-z]{1,3}|[−±-]?\.?)?\Z")
_BETWEEN = re.compile(
    rf"[+=×] (?=[-−]?(?:[^\W_]|[{SIGNS}]|\.\d))|=(?=[A-Za-z]{{2,3}}(?![A-Za-z0-9_])|\.?\d)"
)
"""Signs between words: total = -5; in a formula, E=mc²; and in a setting, size=30."""
_COMPARED = re.compile(rf"(?P<sign>[<>~]=?) ?(?=[-−+]?[{SIGNS}]?\.?\d)")
_OPEN_COMPARED = re.compile(rf"[<>~]=? ?[-−+]?[{SIGNS}]?\.?\Z")
_IN_CODE = re.compile(r"(?P<sign>={2,3}|!={1,2}|[<>]=|[-+*]=)(?:(?P<spaced> )|(?=[\w\"'(\[-]))")
_OPEN_IN_CODE = re.compile(r"(?:[=<>]=?|===|!={0,2}|[-+*]=?)\Z")
_COMPARED_IN_CODE = {"=": "=", "!": "≠", "<": "≤", ">": "≥"}
_OPERAND_BEFORE = re.compile(r"[^\W]|[)\]\"']")
_POWER = re.compile(r"\^(?P<number>-?\d+)")
_NUMBERED = re.compile(r"#(?:[A-Z ]?\d|[A-Z]{1,8}-\d)")
_OPEN_NUMBERED = re.compile(r"#(?: |[A-Z]{0,8}-?)\Z")
_OPEN_POWER = re.compile(r"\^-?\d*\Z")

_LABELLED, _SPACED_WORD = re.compile(r"([^\W\d_]+) \Z"), re.compile(r"\w \Z")
_INSIDE = rf"(?:[^\W{NO_SPACES}]|[.@+:/%#?=&~-])*"
_BEHIND = re.compile(rf"{_INSIDE}\Z")
_AHEAD = re.compile(_INSIDE)
_CLOSING = ".:?-/"
_COUNTED, _COUNTS = re.compile(r"\d[^\W\d_]{0,3}\Z"), re.compile(rf"(?!第)[{NO_SPACES}]")
"""What stands around a slash that means each: 40小时/周."""
_LENGTH = re.compile(r"\d(?: ?(?:ft\.?|in\.?|yd\.?|[cmk]?m)|[\"”″]) \Z")
_BY_LENGTH = re.compile(r"[x×] ?\d")
_SCIENTIFIC = re.compile(rf"[x×] ?10[\^{_RAISED}⁻]")
_OPEN_SCIENTIFIC = re.compile(r"[x×] ?(?:10?)?\Z")


class SignReader:
    """Reads the signs of one language. Get one from `signs_for`."""

    def __init__(self, language: Language) -> None:
        self._language = language
        self.alone = "".join({*"".join(language.signs)})
        """Characters that are read wherever they stand, also within a word."""
        if language.powers:
            self.alone += _RAISED + _LOWERED + "⁻⁺"
        self.chars = "&#+=×÷*±" + self.alone
        self.chars += "!" if "≠" in language.signs else ""
        self.chars += "^" if language.powers else ""
        self.chars += "".join(char for char in language.comparisons if len(char) == 1)
        self.chars += "".join({*language.addresses, *language.operators} - {*self.chars})

    def read(self, text: str, at: int, before: str, ended: bool) -> Reading | None:
        """Return the words for the sign at `at`; length 0 if it has none; None if more text is
        needed.

        `before`: the text before it, back to some tens of characters.
        """
        char, lang = text[at], self._language
        if char in "→->=" and "→" in lang.signs:
            arrow = self._arrow(text, at, before, ended)
            if arrow is None or arrow.length:
                return arrow
        if char in "=!<>+-*" and "≠" in lang.signs:
            code = self._in_code(text, at, before, ended)
            if code is None or code.length:
                return code
        if char in lang.signs:
            return self._sign(text, at, ended)
        if char in self.alone:
            return self._raised(text, at, before, ended)
        if char == "&":
            if at + 1 == len(text) and not ended:
                return None
            return Reading(1 + (text[at + 1 : at + 2] == "&"), lang.and_sign)
        if char == "×":
            between = self.by(text, at, before, ended)
            if between is None or between.length:
                return between
        if char in lang.keys:
            key = self._key(text, at, before, ended)
            if key is None or key.length:
                return key
        if char == "#":
            return self._number_sign(text, at, before, ended)
        if char == "^":
            return self._power(text, at, before, ended)
        if char in "<>~":
            return self._comparison(text, at, ended)
        if char == "/" and lang.per and lang.spaced:
            price = pricing(lang, text, at, before, ended)
            if price is None or price.length:
                return price
        if char in lang.operators or char in "+±":
            reading = self._operator(text, at, before, ended)
            if reading is None or reading.length:
                return reading
        if char in lang.addresses:
            return self._mark(text, at, before, ended)
        return NOTHING

    def _sign(self, text: str, at: int, ended: bool) -> Reading | None:
        """Read a sign that has the same words wherever it stands, or others where it is doubled."""
        signs, double = self._language.signs, text[at] * 2
        if double not in signs:
            return Reading(1, signs[text[at]])
        if at + 1 == len(text) and not ended:
            return None
        length = 2 if text.startswith(double, at) else 1
        return Reading(length, signs[text[at : at + length]])

    def _arrow(self, text: str, at: int, before: str, ended: bool) -> Reading | None:
        """Read an arrow, 10 → 20, or one of the way through menus: Settings > Network."""
        if text[at] != "→" and (before[-1:] != " " or not before[-2:-1].strip()):
            return NOTHING
        if text[at] == ">" and not _MENU.search(before):
            return NOTHING
        if not ended and _OPEN_ARROW.match(text, at):
            return None
        arrow = _ARROW.match(text, at)
        if arrow is None:
            return NOTHING
        lang, behind, end = self._language, before.rstrip(" ")[-1:], arrow.end("sign")
        if arrow["number"] and (behind in _MEASURED or _AMOUNT.search(before)):
            return Reading(end - at, lang.to)
        if behind and (behind.isalnum() or behind in _CLOSED):
            return Reading(end - at, lang.signs["→"])
        return Reading(end - at + text.startswith(" ", end), "")  # needs no pause: → Save

    def _in_code(self, text: str, at: int, before: str, ended: bool) -> Reading | None:
        """Read an operator of two or three characters between operands: a == b, x += 1."""
        spaced = before[-1:] == " "
        if not _OPERAND_BEFORE.match(before[-2:-1] if spaced else before[-1:]):
            return NOTHING
        if not spaced and text[at] in "+-*":
            return NOTHING
        if not ended and _OPEN_IN_CODE.match(text, at):
            return None
        match = _IN_CODE.match(text, at)
        if match is None or bool(match["spaced"]) != spaced:
            return NOTHING
        lang, sign = self._language, match["sign"]
        if sign[0] in _COMPARED_IN_CODE:
            words = {**lang.signs, **lang.operators}[_COMPARED_IN_CODE[sign[0]]]
            return Reading(len(sign), words)
        return Reading(len(sign), f"{lang.operators[sign[0]]} {lang.operators['=']}")

    def _key(self, text: str, at: int, before: str, ended: bool) -> Reading | None:
        is_key = (is_pound if text[at] == "#" else is_star)(text[at:], before, ended)
        if is_key is None:
            return None
        name = self._language.keys[text[at]]  # #号键 has 号 itself
        return Reading(1, name.removesuffix(text[at + 1 : at + 2])) if is_key else NOTHING

    def by(self, text: str, at: int, before: str, ended: bool) -> Reading | None:
        """Read the mark between two lengths: 10 ft x 12 ft."""
        lang = self._language
        if before[-2:-1].isdecimal() and before[-1:] == " ":
            if not ended and _OPEN_SCIENTIFIC.match(text, at):
                return None
            if _SCIENTIFIC.match(text, at):
                return Reading(1, lang.operators["×"])
        if not _LENGTH.search(before):
            return NOTHING
        if not ended and text[at + 1 :] in ("", " "):
            return None
        words = lang.by or lang.operators["×"]
        return Reading(1, words) if _BY_LENGTH.match(text, at) else NOTHING

    def _raised(self, text: str, at: int, before: str, ended: bool) -> Reading | None:
        if not ended and _OPEN_ION.match(text, at):
            return None
        ion = _ION.match(text, at)
        if ion and (is_word_character(before[-1:]) or before[-1:] in _CLOSED):
            number = ion["number"].translate(_DIGITS)
            words = [self._language.cardinal(int(number[:15]))] if number else []
            words.append(self._language.plus if ion["sign"] == "⁺" else self._language.minus)
            return Reading(len(ion.group()), (" " if self._language.spaced else "").join(words))
        run = _LOWERED_RUN.match(text, at) or _RAISED_RUN.match(text, at)
        if run is None:
            return NOTHING if ended or at + 1 < len(text) else None
        if run.end() == len(text) and not ended:
            return None
        number = run.group().translate(_DIGITS)
        isotope = before[-1:] in ("", " ", "(") and text[run.end() : run.end() + 1].isupper()
        if text[at] in _LOWERED or isotope:
            return Reading(len(number), self._language.cardinal(int(number[:15])))
        return Reading(len(number), self._power_words(number))

    def _power(self, text: str, at: int, before: str, ended: bool) -> Reading | None:
        match = _POWER.match(text, at)
        if (match is None or match.end() == len(text)) and not ended:
            if _OPEN_POWER.match(text, at):
                return None
        following = text[at + 1 : at + 2]
        if (following.isalpha() or following == "(") and is_word_character(before[-1:]):
            return Reading(1, self._language.powers[""])
        if match is None or len(match["number"]) > 15:
            return NOTHING
        return Reading(match.end() - at, self._power_words(match["number"]))

    def _power_words(self, number: str) -> str:
        lang = self._language
        if number in lang.powers:
            return lang.powers[number]
        words = [lang.powers[""], lang.cardinal(int(number.lstrip("-")[:15]))]
        if number[0] == "-":
            words.insert(1, lang.minus)
        if lang.spaced:
            return " ".join(words)
        return "".join(words) + lang.powers["behind"]

    def _comparison(self, text: str, at: int, ended: bool) -> Reading | None:
        lang, match = self._language, _COMPARED.match(text, at)
        sign = _COMPARED_IN_CODE.get(text[at]) if match and match["sign"][1:] else text[at]
        words = lang.signs.get(sign or "") or lang.comparisons.get(sign or "")
        if match and words:
            return Reading(match.end("sign") - at, words)
        return None if not ended and _OPEN_COMPARED.match(text, at) else NOTHING

    def _operator(self, text: str, at: int, before: str, ended: bool) -> Reading | None:
        char, lang = text[at], self._language
        if text.startswith("+/-", at):
            return Reading(3, lang.plus_or_minus or f"{lang.plus} {lang.minus}")
        if not ended and text[at:] in ("+", "+/"):
            return None
        if char == "+" and (
            (last := (before.rstrip("+") or " ")[-1]) == "%" or is_word_character(last)
        ):
            if not before.endswith("++"):
                return Reading(1, lang.plus)
        if char in "/-−" and _JOINED.search(before):
            if not ended and _OPEN_OPERATOR.match(text, at):
                return None
            if char != "/":
                return Reading(1, lang.operators[char]) if _OPERATOR.match(text, at) else NOTHING
            joins = text[at + 1 : at + 2] == "(" or text[at + 1 : at + 2].isalnum()
            pad = " " * lang.spaced
            return Reading(1, pad + lang.operators[char] + pad) if joins else NOTHING
        if char in "-−" and _GRADE.search(before):
            if at + 1 == len(text) and not ended:
                return None
            return NOTHING if text[at + 1 : at + 2].isalnum() else Reading(1, lang.minus)
        if char in _SPACED and before[-1:] != " ":
            return NOTHING
        operand = _OPERAND.search(before) or (char == "×" and before[-1:].isalnum())
        between = char in "+=×" and before[-1:] == " " and not before[-2:-1].isspace()
        between = between or (char == "=" and before[-1:].isalnum())
        if not (operand or between):
            return NOTHING
        if not ended and _OPEN_OPERATOR.match(text, at):
            return None
        match = _OPERATOR.match(text, at) if operand else None
        match = match or (_BETWEEN.match(text, at) if between or char == "=" else None)
        if match is None or (char in _SPACED and match.end() - at == 1):
            return NOTHING
        if char == "±":
            return Reading(1, lang.plus_or_minus or f"{lang.plus} {lang.minus}")
        return Reading(1, lang.operators[char]) if char in lang.operators else NOTHING

    def _number_sign(self, text: str, at: int, before: str, ended: bool) -> Reading | None:
        lang = self._language
        if is_word_character(before[-1:]):
            letter = lang.sharp and not is_word_character(before[-2:-1]) and before[-1].isupper()
            return Reading(1, lang.sharp) if letter else NOTHING
        comment = text[at + 1 : at + 2] == " " and not _SPACED_WORD.search(before)
        if _NUMBERED.match(text, at) and not comment:
            return Reading(1, lang.number_sign) if lang.number_sign else NOTHING
        if not ended and _OPEN_NUMBERED.match(text, at):
            return None
        label = _LABELLED.search(before) if text[at + 1 : at + 2] in (" ", ":") else None
        if label and label.group(1).lower() in lang.numbered:
            return Reading(1, lang.number_sign)
        if text[at + 1 : at + 2].isalpha() and lang.hashtag:
            return Reading(1, lang.hashtag)
        return NOTHING

    def _mark(self, text: str, at: int, before: str, ended: bool) -> Reading | None:
        """Read a mark inside a word, which may be an address."""
        char, lang = text[at], self._language
        following = text[at + 1 : at + 2]
        if char == "@":
            return Reading(1, lang.addresses["@"])
        inside = is_word_character(before[-1:])
        counted = char == "/" and not lang.spaced and _COUNTED.search(before)
        if not following and not ended and (inside or counted or char == "."):
            return None
        if counted and _COUNTS.match(following):
            return Reading(1, lang.per)
        if not is_word_character(following):
            return NOTHING
        if not inside:
            is_name = char == "." and following.isalpha() and before[-1:] in ("", " ", "\n", "(")
            return Reading(1, lang.addresses[char]) if is_name else NOTHING
        if char == "_":
            return Reading(1, lang.addresses[char])
        if char in ".:" and before[-1].isdecimal() and following.isdecimal():
            return NOTHING
        ahead = _AHEAD.match(text, at)
        assert ahead is not None
        if ahead.end() == len(text) and not ended and ahead.end() - at < MAX_WORD:
            return None
        behind = _BEHIND.search(before)
        token = (behind.group() if behind else "") + ahead.group()[:MAX_WORD].rstrip(_CLOSING)
        if not (is_address(token) or (char == "." and is_dotted(token))):
            return parting(lang, text, at, before) if char == "/" else NOTHING
        if char == ":" and not following.isdecimal():
            return NOTHING
        if char == "." and (letters := country(text, at + 1)) and not is_file(token):
            return Reading(3, lang.addresses["."] + " " * lang.spaced + letters.upper())
        return Reading(1, lang.addresses[char])


signs_for = cache(SignReader)
"""Return the `SignReader` of a language, which all sessions share."""
