"""Marks that cite a source, `It is so.[1]`, which are not read.

The text around a number in brackets tells them from content: `items[1]`, `see [1]`, `[1] First`.
"""

from __future__ import annotations

import re

from realtime_tts.text.characters import is_word_character

_MARK = re.compile(r"[1-9]\d{0,2}(?:(?:, ?|[-–])[1-9]\d{0,2})*")
_SENTENCE = re.compile(r"[.!?…。！？][\"'”’»)]* ?\Z")
_CLAUSE = re.compile(r"[,;”»，；]\Z")
_TOKEN = re.compile(r"([^\s(\"“‘«„*]+) ?\Z")
_NUMBER = re.compile(r"[$€£]?\d+(?:[.,]\d+)*%?")
_OPERATED = re.compile(r" ?[(=+*/<>-]")
_WORD = re.compile(r"[^\W\d_]+(?:[-'’][^\W\d_]+)*")
_INNER_CAPITAL = re.compile(r"[a-z][A-Z]")
_LISTS = frozenset(
    "array arr list lst items nums args argv row rows col cols matrix vec vector str string dict "
    "tuple obj params grid vals values elements tokens data index".split()
)
"""Names that programs give to what has numbered elements."""
_REFERRING = frozenset(
    "see in from and or to of by with at as on press choose type enter option step page question "
    "answer number chapter section figure table ref reference note source footnote item line "
    "siehe vgl und oder von mit bei nach zu seite schritt frage nummer kapitel abschnitt quelle "
    "voir cf dans et ou de par avec étape numéro chapitre touche véase ver en y o por con página "
    "paso opción pregunta número capítulo sección fuente".split()
)
"""Words behind which a number in brackets is a part of the sentence, in the languages whose numbers
we read."""


def is_citation(label: str, before: str, behind: str, ended: bool) -> bool | None:
    """Return whether brackets with the text `label` cite a source; None if more text is needed.

    `before`, `behind`: the text around them; before them at least its last word.
    """
    if not _MARK.fullmatch(label) or is_word_character(behind[:1]) or behind[:1] == "(":
        return False
    if _SENTENCE.search(before) or _CLAUSE.search(before):
        return True
    if not _cites(before):
        return False
    if before[-1:] == " ":
        return behind[:1] in ("", *"\n.,;!?[)。，")
    return None if behind == " " and not ended else not _OPERATED.match(behind)


def _cites(before: str) -> bool:
    """Return whether the last word of a text can have a source."""
    match = _TOKEN.search(before)
    if match is None:
        return False
    word = match.group(1)
    if _NUMBER.fullmatch(word) or before.endswith(") "):
        return True
    known = word.lower() in _LISTS or word.lower() in _REFERRING or _INNER_CAPITAL.search(word)
    short = len(word) < 3 and word.islower() and word.isascii()  # xs[1]
    return len(word) > 1 and not short and not known and _WORD.fullmatch(word) is not None
