"""Plain English prose from whatever a source holds, and the form in which texts are compared."""

from __future__ import annotations

import codecs
import re

MOST_WORDS = 40

_STRAIGHT = str.maketrans(
    {"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u2014": " - ", "\u2013": " - "}
)
_PLAIN = re.compile(r"[A-Za-z ,.;:!?'\"-]+")
_BRACKETS = re.compile(r"\s*[(\[{][^)\]}]*[)\]}]")
_BLANKS = re.compile(r"\s+")
_SINGLE_QUOTED = re.compile(r"(?<!\w)'([^']+)'(?!\w)")
_LOOSE_APOSTROPHE = re.compile(r"(?<![A-Za-z])'|(?<!s)'(?![A-Za-z])")
_BEFORE_MARK = re.compile(r"\s+([,.;:!?])")
_SENTENCE_END = re.compile(r"(?<!Mr\.)(?<!Mrs\.)(?<!Dr\.)(?<!St\.)(?<=[.!?])[\"']?\s+(?=[\"A-Z])")
_WORD = re.compile(r"[A-Za-z]+(?:'[A-Za-z]+)*")
_COMPARED = re.compile(r"[a-z0-9]+(?:'[a-z]+)?")
# Initials and the like, which the teacher may read otherwise; and who said what was quoted.
_ABBREVIATION = re.compile(
    r" -[A-Z]|\b(?:[DM]rs?|St)\.$|\.(?=\s*[a-z,;:])|\.\w|\b[A-Z]{2,}\b|\b(?!I\b|A\b|O\b)[B-Z]\b"
)
_AN = re.compile(r"\b([Aa])(n?) (?=(\w+))")
_EIGHT = re.compile(r"8|1[18](?!\d\d\b)")
_SILENT = re.compile(r"(?i)hour|honest|honor|heir")
_CONSONANT = re.compile(r"(?i)uni(?!n|m)|us[aeu]|eu|one|once|ut[ei]|ubi|ura")
_COARSE = re.compile(  # the beginnings of words, and whole words; nobody needs to read them here
    codecs.decode(
        "shpx|fuvg|phag|avtt|snttb|juber|fyhg|ovgpu|cbea|qvyqb|wvmm|jnax|znfgheo|nffubyr|nefrubyr",
        "rot13",
    ).join((r"(?i)\b(?:", "|"))
    + codecs.decode(
        "chffl|gjngf?|pbpxf?|gvgf|cevpxf?|nany|phz|encrq?|xvxrf?|tbbxf?|puvaxf?|qlxrf?|juvgrl",
        "rot13",
    ).join(("(?:", r")\b)"))
)


def words_of(text: str) -> list[str]:
    """The words of `text`, apostrophes kept within, marks and digits left out."""
    return _WORD.findall(text)


def compared(text: str) -> str:
    """`text` for comparisons: lower-case words and digits with single spaces between."""
    return " ".join(_COMPARED.findall(text.lower()))


def coarse(text: str) -> bool:
    """Whether `text` holds words that a demo should not be the one to say."""
    return _COARSE.search(text) is not None


def sentences_of(text: str) -> list[str]:
    """`text` cut after full stops, question and exclamation marks that a capital follows."""
    return [part.strip() for part in _SENTENCE_END.split(_BLANKS.sub(" ", text)) if part.strip()]


def clean(text: str) -> str | None:
    """`text` as plain prose, or None if it is not: digits, markup, abbreviations, odd length."""
    text = _BRACKETS.sub("", text.translate(_STRAIGHT)).replace("`", "'").replace("''", '"')
    text = _BLANKS.sub(" ", text.replace("--", " - ").replace(" - - ", " - ")).strip(" -,;:")
    text = _BEFORE_MARK.sub(r"\1", text)
    text = _SINGLE_QUOTED.sub(r'"\1"', text)
    if text.count('"') % 2:
        text = text.replace('"', "").strip()
    if not _PLAIN.fullmatch(text) or _ABBREVIATION.search(text) or coarse(text):
        return None
    if _LOOSE_APOSTROPHE.search(text) or ".." in text:
        return None
    return text if 1 <= len(text.split()) <= MOST_WORDS else None


def sentence_case(text: str) -> str:
    """`text` with a capital first letter, which may stand behind a quotation mark, not a number."""
    for place, char in enumerate(text):
        if char.isalnum():
            return text[:place] + char.upper() + text[place + 1 :]
    return text


def with_articles(text: str) -> str:
    """`text` with "a" or "an" as the following word wants it."""

    def article(match: re.Match[str]) -> str:
        word = match[3]
        vowel = word[0] in "aeiouAEIOU" and not _CONSONANT.match(word) or _EIGHT.match(word)
        return match[1] + ("n " if vowel or _SILENT.match(word) else " ")

    return _AN.sub(article, text)
