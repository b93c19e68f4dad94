"""Full stops that end no sentence, in the languages that Qwen3-TTS speaks.

Needed where numbers and abbreviations stay as they are written: a voice that speaks each sentence
by itself would stop after `Dr.` and `ул.`. Only abbreviations that are no words of another of the
languages, and that rarely end a sentence.
"""

from __future__ import annotations

import re

_BEFORE_CAPITALS = frozenset(
    (
        "Mr Mrs Ms Messrs Dr dr Prof prof St Mt Ft Rev Hon Gen Col Capt Lt Sgt Gov Sen Rep Pres vs "
        "Hr Fr Frl Dipl Hl hl Mio Mrd Tsd bzw vgl inkl zzgl evtl Mgr Pr Ste Bd bd cf EE "
        "Sr Sra Srta Sres Dra Dras Drs Lic Gral Av av Avda Avd Ctra Sto Sta ej "
        "Sig Sigg sig sigg Dott dott Avv avv Ing ing Geom geom Spett Gent Egr cfr "
        "Profa Exmo Exma Ilmo Ilma Trav Pça Pe ул просп пер пл бул наб акад проф тов гр напр"
    ).split()
)
_BEFORE_NUMBERS = frozenset(
    (
        "No Nos Nr nr num Num núm Núm nn art Art arts Arts artt cap Cap chap fig Fig figs tab Tab "
        "vol Vol pag Pag pagg pág Pág págs Págs pp pg Pg sec Sec séc Séc Ch Abs Abb Kap co ext "
        "Ext tel Tel tél Tél int Int ca Ca approx aprox est env стр рис табл гл ст тел Тел корп "
        "оф эт кв ок вып Jan Feb Mar Apr Jun Jul Aug Sep Sept Oct Nov Dec янв февр апр авг сент "
        "окт нояб дек"
    ).split()
)
_AFTER_ORDINALS = tuple(
    (
        "Januar Februar März April Mai Juni Juli August September Oktober November Dezember "
        "Jahrhundert Geburtstag Kapitel Klasse Liga Mal Platz Quartal Runde Schritt Stelle Stock "
        "Tag Weltkrieg"
    ).split()
)
"""What German writes behind an ordinal with a full stop: am 24. Dezember."""
_NUMBER = re.compile(r"[+(]?\d|(?:[IVXLC]{2,}|[VX])(?!\w)")
_CAPITALISED = re.compile(r"[A-ZÄÖÜ][a-zäöü]{2,}")
_LAST = re.compile(r"(?<![^\W_])([^\W_]+)\. ?\Z")


def is_before_name(text: str) -> bool:
    """Return whether a text ends with an abbreviation behind which its sentence goes on: Dr."""
    match = _LAST.search(text)
    return match is not None and match[1] in _BEFORE_CAPITALS


def ends_no_sentence(before: str, following: str) -> bool:
    """Return whether the full stop that `before` ends with, and a space, is inside a sentence.

    `following`: what is known of the text behind it.
    """
    if following[:1].islower():
        return True  # 5 min. later
    match = _LAST.search(before)
    if match is None:
        return False
    word = match[1]
    if word.isdecimal():
        noun = _CAPITALISED.match(following)
        return len(word) < 3 and noun is not None and _follows_ordinal(noun[0])
    is_before_number = word in _BEFORE_NUMBERS or word.endswith("str")  # Hauptstr. 5
    return is_before_number and _NUMBER.match(following) is not None


def _follows_ordinal(begun: str) -> bool:
    """Return whether such a noun begins so, or is this with an ending: des 19. Jahrhunderts."""
    return any(
        noun.startswith(begun) or (begun.startswith(noun) and len(begun) <= len(noun) + 2)
        for noun in _AFTER_ORDINALS
    )
