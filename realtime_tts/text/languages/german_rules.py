"""Rules for German numbers by the words around them: one, ordinals, decades, halves."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from realtime_tts.text.languages import forms
from realtime_tts.text.languages import german_cues as cues
from realtime_tts.text.languages import rules as shared
from realtime_tts.text.languages.german_dates import DATES, SHORT, number_or_year
from realtime_tts.text.languages.german_nouns import GENDERS
from realtime_tts.text.languages.german_words import (
    MONTHS,
    cardinal,
    count,
    date,
    stem,
    time,
    year,
)
from realtime_tts.text.languages.language import Noun, Rule
from realtime_tts.text.languages.rules import rule

Words = Callable[[re.Match[str]], str | None]

_ADJECTIVE = re.compile(
    r"(?!(?:d[eia][resmn]?|oder|aber|unter|über|hinter|immer|wieder|bitte"
    r"|heute)\b)\w+(?P<ending>e|er|es|en|em)"
)
_BY_ENDING = {"e": "eine", "es": "ein", "er": "ein", "en": "einen", "em": "einem"}
_STRONG = {"m": "er", "f": "e", "n": "es"}
_ONE = {
    "": {"m": "ein", "f": "eine", "n": "ein"},
    "dative": {"m": "einem", "f": "einer", "n": "einem"},
    "accusative": {"m": "einen", "f": "eine", "n": "ein"},
}
_HALF = {
    "": {"m": "halber", "f": "halbe", "n": "halbes"},
    "dative": {"m": "halben", "f": "halben", "n": "halben"},
    "accusative": {"m": "halben", "f": "halbe", "n": "halbes"},
}
_SUFFIXES = (
    "fach|malig|mal|jährig|tägig|stündig|wöchig|monatig|minütig|köpfig|stellig|teilig|prozentig"
    "|seitig|stöckig|türig|sitzig|bändig|spurig|gängig|dimensional"
)

BEHIND = re.compile(
    r"1|1\.?001|1 (?!Uhr)[a-zäöüß]\w*e[rsnm]?|\d{1,4}\.|1/2|½|[\d.]+,[–-]|1[–-]\d+"
    r"|\d{1,2}\.[–/-]\d{1,2}\.|\d{1,2}\. (?:bis|und|oder|[–-]|bis zum|\d{1,2}\.)|\d{1,2}\.\d{1,2}\."
    rf"|\d{{1,2}}\. (?:bis|und|oder|[–-]|bis zum) \d{{1,2}}\.|\d{{1,2}}\. (?:{'|'.join(SHORT)})\."
    rf"|\d{{1,2}} x|\d+ (?:{cues.DOTTED})\.|\d{{1,3}}/\d{{1,3}}|\d{{1,3}}x"
    rf"|\d{{1,2}}:\d\d(?::\d\d)? Std\.|\d{{1,3}}:\d{{2,3}}"
    r"|0\d{2,4}(?: /(?: \d{2,}){0,4})?|\d{1,2}:\d\d:\d\d"
    r"|\d{1,2}\.\d\d(?: ?[-–](?: ?\d{1,2}\.\d\d)?)?|\d+,\d+ Sek\."
)
"""Text from a number on behind which the rules look at another word."""


def _one(case: str) -> Words:
    def said(match: re.Match[str]) -> str | None:
        word, noun = match["word"], match["noun"]
        if not word[0].islower():
            return _ONE[case][GENDERS.of(word, "m")]
        adjective = _ADJECTIVE.fullmatch(word)
        if adjective is None or noun is None:
            return None
        if case == "dative" or (not case and adjective["ending"] == "er"):
            return _ONE[case][GENDERS.of(noun, "m")]
        return _BY_ENDING[adjective["ending"]]

    return said


def _one_unit(case: str, units: Mapping[str, Noun]) -> Words:
    def said(match: re.Match[str]) -> str:
        noun = units[match["unit"]]
        return f"{_ONE[case][noun.gender]} {noun.one}"

    return said


def _with(ending: str) -> Words:
    return lambda match: stem(int(match["n"])) + ending


def _pair(ending: str) -> Words:
    def said(match: re.Match[str]) -> str:
        link = match["link"].strip()
        link = {"–": "bis", "-": "bis", "/": "und"}.get(link, link)
        return f"{stem(int(match['n']))}{ending} {link} {stem(int(match['to']))}{ending}"

    return said


def _two_days(match: re.Match[str], ending: str = "en") -> str | None:
    month = int(match["month"])
    return f"{_pair(ending)(match)} {MONTHS[month - 1]}" if 1 <= month <= 12 else None


def _by_gender(match: re.Match[str]) -> str | None:
    gender = GENDERS.of(match["noun"], "m")
    return stem(int(match["n"])) + _STRONG[gender]


def _decade(match: re.Match[str]) -> str:
    return number_or_year(int(match["n"])) + "er" + match["case"]


def _stemmed(number: str) -> str:
    """Return a number as it begins a compound: ein-, zwei-."""
    words = cardinal(int(number))
    return "ein" if words == "eins" else words


def _compound(match: re.Match[str]) -> str:
    tail = match["tail"].lower().replace("%ig", "prozentig").replace("x", "mal")
    return _stemmed(match["n"]) + tail


def _half(case: str, units: Mapping[str, Noun]) -> Words:
    def said(match: re.Match[str]) -> str | None:
        unit = units.get(match["noun"])
        gender = unit.gender if unit else GENDERS.of(match["noun"], "m")
        return f"{_ONE[case][gender]} {_HALF[case][gender]} {unit.one if unit else match['noun']}"

    return said


def _and_a_half(units: Mapping[str, Noun]) -> Words:
    def said(match: re.Match[str]) -> str:
        unit = f" {units[match['unit']].many}" if match["unit"] else ""
        return f"{_stemmed(match['n'])}einhalb{unit}"

    return said


def _ending(units: Mapping[str, Noun]) -> Words:
    def said(match: re.Match[str]) -> str:
        unit = units.get(match["unit"]) or units[f"{match['unit']}."]
        if "," in match["n"]:
            return f"{shared.decimal(cardinal, 'Komma', match['n'])} {unit.many}."
        return f"{count(int(match['n']), unit.gender)} {unit.many}."

    return said


def _hyphened(units: Mapping[str, Noun]) -> Words:
    def said(match: re.Match[str]) -> str:
        unit = units[match["unit"]].many if match["unit"] in units else "Euro"
        return f"{shared.decimal(cardinal, 'Komma', match['n'])}-{unit}-"

    return said


def _season(match: re.Match[str]) -> str:
    return f"{year(int(match['one']))} {number_or_year(int(match['two']))}"


def _hours(match: re.Match[str]) -> str:
    hour, minute = int(match["hour"]), int(match["minute"])
    hours = f"{count(hour, 'f')} Stunde{'n' if hour != 1 else ''}"
    words = f"{hours} {cardinal(minute)}" if minute else hours
    if match["second"] is None:
        return words
    second = int(match["second"])
    return f"{words} und {count(second, 'f')} Sekunde{'n' if second != 1 else ''}"


_spelled, _to = shared.spelled(cardinal), shared.linked(cardinal, " zu ")


_over = shared.linked(cardinal, " zu ", " Millimeter Quecksilbersäule")


def _whole(match: re.Match[str]) -> str:
    return f"{count(int(match['n'].replace('.', '')), 'm')} Euro"


_ORDINAL = rf"(?P<n>\d{{1,4}})\.(?= (?!{cues.OPENERS})(?P<noun>[A-ZÄÖÜ]\w*))"
_TWO = r"(?P<n>\d{1,2})\.(?P<link>[–/-]| (?:[–-]|bis(?: zum)?|und|oder) )(?P<to>\d{1,2})\."
_BOTH = rf"{_TWO}(?= [A-ZÄÖÜ])"
_NTH = r"(?P<n>\d{1,3})\.(?= "
_NTH_UNIT = r"(?P<n>\d{1,3})\. (?P<unit>Min|Std)\.?(?!\w)"
_HOURS = {"Min": "Minute", "Std": "Stunde"}
_ORDINALS = (
    *DATES,
    rule(
        rf"(?P<n>\d{{1,2}})(?=\. {cues.OPENERS})",
        _with("en"),
        r"\b(?i:am|vom|zum|ab dem|seit dem|vor dem|nach dem) ",
    ),
    rule(_BOTH, _pair("en"), cues.OBLIQUE),
    rule(rf"{_TWO}(?= (?:jede|de|eine)[sr]\b)", _pair("en"), cues.OBLIQUE),
    rule(_BOTH, _pair("e"), rf"{cues.WEAK}(?:\d{{1,3}}\., )*"),
    rule(r"(?P<n>\d{2,3})\.\+(?=\d)", lambda m: f"{_with('en')(m)} plus "),
    rule(_NTH_UNIT, lambda m: f"{_with('en')(m)} {_HOURS[m['unit']]}", cues.OBLIQUE),
    rule(_NTH_UNIT, lambda m: f"{_with('e')(m)} {_HOURS[m['unit']]}"),
    rule(rf"{_TWO} Std\.?(?!\w)", lambda m: f"{_pair('e')(m)} Stunde"),
    rule(rf"{_TWO}(?P<month>\d{{1,2}})\.", _two_days, cues.OBLIQUE),
    rule(rf"{_TWO}(?P<month>\d{{1,2}})\.", lambda m: _two_days(m, "er")),
    rule(_ORDINAL, _with("en"), cues.OBLIQUE),
    rule(_ORDINAL, _with("e"), cues.WEAK),
    rule(
        r"(?P<n>\d{1,2})\.(?= (?:Rate|Mannschaft|Mahnung|Strophe|Auflage|Aufl\.|Klasse|Runde|Liga"
        r"|Staffel)(?!\w))",
        _with("e"),
    ),
    rule(_ORDINAL, _by_gender, cues.MIXED),
    rule(r"(?P<n>\d{1,3})\.(?= [a-zäöü]|,)", _with("en"), rf"{cues.OBLIQUE}(?<!\bdes )"),
    rule(r"(?P<n>\d{1,3})\.(?= [a-zäöü]|,)", _with("e"), cues.WEAK),
    rule(r"(?P<n>\d{1,3})\.(?= [a-zäöü])", _with("er"), r"\b(?:wurde|wurden|wird|als)\s"),
    rule(rf"{_TWO}(?= (?:{'|'.join(MONTHS)})(?!\w))", _pair("er")),
    rule(rf"{_NTH}(?:Etage|Halbzeit|Bundesliga|Reihe)(?!\w))", _with("e"), unless=cues.LABELS),
    rule(rf"{_NTH}(?:Stock|Platz|Rang|FC)(?!\w))", _with("er"), unless=cues.LABELS),
    rule(rf"{_NTH}(?:OG|UG|Obergeschoss|Quartal)(?!\w))", _with("es"), unless=cues.LABELS),
)
_ZONES = {"+": " plus ", "-": " minus "}
_PRESSURE = r"(?P<one>\d{2,3})/(?P<two>\d{2,3})"
_FORMS = (
    *shared.vehicles(cardinal),
    shared.seats(cardinal, r"\w*sitz|\w*plätze|\w*platz|reihe|gate|gleis"),
    rule(r"1-(?=[A-ZÄÖÜ])", lambda m: "ein-"),
    rule(r"1\.?001(?= Nacht)", lambda m: "tausendundeine"),
    rule(r"(?P<one>(?:19|20)\d\d)/(?P<two>\d\d(?:\d\d)?)(?![\d/])", _season),
    rule(
        r"(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d))? (?:Std\.(?= [a-zäöü])|(?:Std"
        r"|Stunden|h)(?!\w))",
        _hours,
    ),
    rule(
        r"(?P<hour>\d{1,2}) ?h(?!\w)",
        lambda m: f"{count(int(m['hour']), 'm')} Uhr",
        r"\b(?:um|gegen)\s",
    ),
    rule(r"\d{5,}(?:-\d+)*(?![\d.,/-]*\d| \d)|\d{4}-\d+(?![\w-])", _spelled, r"[Nn]r\.:?\s"),
    rule(r"\d{2}(?: \d{3}){3}", _spelled, r"\bI[Dd](?:-Nr\.)?:?\s"),
    rule(r"0\d{2,4} / \d{2,}(?: \d{2,})*(?:-\d{1,4})?(?![\w,])", _spelled),
    rule(r"\d{5}(?![\w.,-]*\d)", _spelled, cues.STREET),
    *shared.long_codes(cardinal),
    rule(rf"{_PRESSURE}(?P<unit> mmHg)(?!\w)", _over),
    rule(rf"{_PRESSURE}(?![\d/])", _over, r"\b(?:Blutdruck\w*|RR)\b[\w ]{0,20}:? "),
    *shared.parts_of(
        cardinal, "von", cues.PARTS, "Aufgaben|Fragen|Punkten?|Sternen?|Schritten?|Seiten"
    ),
    rule(r"(?P<one>\d,\d+)/(?P<two>\d+)(?![\d/])", shared.rated(cardinal, "Komma", "von")),
    rule(r"\d{3,}(?:[ -]\d{3,}|-\d+)*(?![\d.,/-]*\d| \d)", _spelled, cues.CODE),
    rule(r"11[02](?![\d.,]*\d)", _spelled, cues.EMERGENCY),
    rule(r"(?P<n>\d{1,4})er(?P<case>n?)(?!\w)", _decade),
    rule(rf"(?P<n>\d{{1,4}})-?(?P<tail>(?i:{_SUFFIXES})(?:e[mnrs]?)?)(?!\w)", _compound),
    rule(rf"(?P<n>\d{{1,2}}) (?P<tail>x)(?= {cues.OFTEN})", _compound),
    rule(
        rf"(?P<n>\d{{1,3}})(?P<tail>%ige?[mnrs]?|x){shared.OF_WORDS}",
        _compound,
        unless=r"[-+=−*/(]\s?",
    ),
    rule(r"(?P<n>[\d.]+),[–-](?: ?(?:€|Euro|EUR)|(?!\w))", _whole),
    rule(
        r"(?P<hour>\d{1,2})\.(?P<minute>[0-5]\d) ?[-–] ?(?=\d{1,2}\.[0-5]\d (?:Uhr|h)(?!\w))",
        lambda m: f"{time(int(m['hour']), int(m['minute']), None, '')} bis ",
    ),
    rule(r"(?:½|1/2) (?=\d{1,2}(?!\d))", lambda m: "halb ", r"\b(?:[Uu]m|[Gg]egen)\s"),
    rule(
        rf"(?P<one>\d{{1,2}})[-–](?P<two>\d{{1,2}})x{shared.OF_WORDS}",
        lambda m: f"{_stemmed(m['one'])}- bis {_stemmed(m['two'])}mal",
        unless=r"[-+=−*/(]\s?",
    ),
    shared.times(cardinal, "Komma", "mal"),
    *shared.inches(
        cardinal, "Komma", "Zoll", ("ein halb Zoll", "ein Viertel Zoll", "drei Viertel Zoll")
    ),
    shared.month_years(MONTHS, " ", number_or_year),
    forms.scales(cardinal, " zu "),
    rule(
        r"(?P<one>\d{1,3}):(?P<two>\d{1,4})(?![\d:])",
        shared.linked(cardinal, " zu "),
        r"\b(?:\w*[Vv]erhältnis(?: von)?|Maßstab(?: von)?|Ratio|verdünnt)(?: ist)?\s",
    ),
    rule(r"(?P<one>\d{1,3}):(?P<two>\d{1,3})(?= (?:Toren?|Punkten?)(?!\w))", _to),
    rule(r"(?P<one>\d{1,3}):(?P<two>(?!00)\d{1,3})(?![\d:]| Uhr)", _to, cues.SCORED),
    forms.expiries(lambda month, of: f"{MONTHS[month - 1]} {number_or_year(of)}", cues.UNTIL),
    forms.moments(
        lambda day, month, of, _: date(day, month, of, "am"), time, cardinal, _ZONES, cue=cues.SINCE
    ),
    forms.moments(date, time, cardinal, _ZONES),
    forms.aircraft(cardinal),
    shared.laps(cardinal, "Komma"),
    *shared.ratios(cardinal, " zu ", " zu "),
)


def rules(units: Mapping[str, Noun]) -> tuple[Rule, ...]:
    """Return the rules. `units`: the units by their short forms."""
    unit = "|".join(map(re.escape, sorted(units.keys() - {"Uhr"}, key=len, reverse=True)))
    ending = rf"(?P<unit>{cues.DOTTED})\.(?=\Z| {cues.OPENERS})"
    one_unit = rf"1\s?(?P<unit>{unit})(?!\w)"
    word = r"(?!Uhr|Mio|Mrd|Milli|Bill|Bio\.|Tsd|[½¼¾⅓⅔])(?P<word>[^\W\d_][\w-]*)"
    one = rf"1(?= {word}(?: (?P<noun>[A-ZÄÖÜ][\w-]*))?)"
    and_a_half = rf"(?P<n>\d+)(?: 1/2| ?½)(?!\d)(?: (?P<unit>{unit})(?!\w))?"
    half = r"(?:1/2|½) ?(?P<noun>(?!d[ea]|aller)[^\W\d_][\w-]*)"
    return (
        rule(r"\d+(?= S\.)", lambda m: cardinal(int(m.group())), cues.PARAGRAPH),
        rule(rf"(?P<n>[2-9]|\d\d+|\d+,\d+) {ending}", _ending(units)),
        rule(f"1 {ending}", lambda m: f"{_one_unit('dative', units)(m)}.", cues.DATIVE),
        rule(f"1 {ending}", lambda m: f"{_one_unit('', units)(m)}.", unless=cues.LABELS),
        rule(one_unit, _one_unit("dative", units), cues.DATIVE),
        rule(one_unit, _one_unit("accusative", units), cues.ACCUSATIVE),
        rule(one_unit, _one_unit("", units), unless=cues.LABELS),
        rule(r"1 (?P<n>Million|Milliarde)(?!\w)", lambda m: f"einer {m['n']}", cues.DATIVE),
        rule("1 ?%", lambda m: "ein Prozent"),
        rule(r"1[–-](?=\d+ (?P<word>[A-ZÄÖÜ]\w+)(?P<noun>)?)", lambda m: f"{_one('')(m)} bis "),
        rule(one, _one("dative"), cues.DATIVE),
        rule(one, _one("accusative"), cues.ACCUSATIVE),
        rule(one, _one(""), unless=cues.LABELS),
        *_ORDINALS,
        rule(and_a_half, _and_a_half(units)),
        rule(rf"(?P<n>\d+(?:,\d)?)-(?P<unit>{unit}|€)-(?=[A-ZÄÖÜ])", _hyphened(units)),
        rule(half, _half("dative", units), cues.DATIVE),
        rule(half, _half("accusative", units), cues.ACCUSATIVE),
        rule(half, _half("", units)),
        *_FORMS,
    )
