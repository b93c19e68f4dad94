"""New sentences from real ones: words changed for others of their kind, clauses put together."""

from __future__ import annotations

import re
from random import Random

from tools.demo_voice.cleaning import sentence_case, with_articles
from tools.demo_voice.lexicon import Lexicon

_TOKEN = re.compile(r"[A-Za-z]+(?:'[A-Za-z]+)?")
_SHARES = (0.12, 0.25, 0.4, 0.7)  # of the words that can be changed
_ENDS = ".!?"
_JOINED = (
    "{A}, and {b}.",
    "{A}, and {b}.",
    "{A}, but {b}.",
    "{A}, but {b}.",
    "{A}, so {b}.",
    "{A} because {b}.",
    "{A} because {b}.",
    "{A} when {b}.",
    "When {a}, {b}.",
    "When {a}, {b}.",
    "If {a}, {b}.",
    "If {a}, then {b}.",
    "{A}; {b}.",
    "{A}: {b}.",
    "{A} - {b}.",
    "{A} -- {b}.",
    "{A}, or {b}?",
    "Although {a}, {b}.",
    "{A}, although {b}.",
    "While {a}, {b}.",
    "{A} while {b}.",
    "{A}. {B}.",
    "{A}! {B}.",
    "{A}. {B}?",
    "{A}? {B}.",
    "{A}... {b}.",
    "Since {a}, {b}.",
    '"{A}," said {N}, "and {b}."',
    '"{A}," she said.',
    '"{A}!" he cried.',
    '{N} said, "{A}."',
    '{N} asked: "{A}?"',
    "As far as I know, {a}.",
    "I think that {a}.",
    "She told me that {a}.",
    "{N} says that {a}, and {b}.",
    "Do you think that {a}?",
    "Well, {a}.",
    "However, {a}.",
    "In other words, {a}.",
    "For example, {a}.",
    "First, {a}. Then {b}.",
    "{A} after {b}.",
    "After {a}, {b}.",
    "Before {a}, {b}.",
    "{A} before {b}.",
    "{A} until {b}.",
    "Unless {a}, {b}.",
    "Unfortunately, {a}.",
    "Of course, {a}, but {b}.",
    "{A}; however, {b}.",
    "{A}, you know.",
    "It is true that {a}, yet {b}.",
    "{A}, which means that {b}.",
    "Not only that: {a}.",
    "{A} ({b}).",
    "{A} (by the way, {b}).",
)


class Augmenter:
    """Makes sentences from sentences. Every random choice is asked of the caller's generator."""

    def __init__(self, lexicon: Lexicon) -> None:
        self._lexicon = lexicon

    def swapped(self, text: str, rng: Random) -> str:
        """`text` with a share of its content words changed, articles put right."""
        share = rng.choice(_SHARES)
        forms, draw = self._lexicon.forms, self._lexicon.draw

        def other(match: re.Match[str]) -> str:
            word = match[0]
            if word.islower():
                form = forms.get(word)
                return draw(form, rng) if form and rng.random() < share else word
            if match.start() > 1 and word[1:].islower() and rng.random() < share:
                return draw("name", rng)
            return word

        return with_articles(sentence_case_like(_TOKEN.sub(other, text), text))

    def finished(self, text: str, rng: Random) -> str:
        """A phrase of a source as a user would write it: mostly with a capital and a full stop."""
        chance = rng.random()
        if chance < 0.9:
            text = sentence_case(text)
        if text[-1] not in _ENDS + "\"'" and (chance < 0.84 or chance > 0.97):
            text += rng.choice("!?") if rng.random() < 0.04 else "."
        return text

    def joined(self, first: str, second: str, rng: Random) -> str:
        """Two sentences as clauses of one."""
        first, second = (text.replace('"', "").rstrip(".!?;:, ") for text in (first, second))
        form = rng.choice(_JOINED)
        return form.format(
            A=sentence_case(first),
            B=sentence_case(second),
            N=self._lexicon.draw("name", rng),
            a=self._lowered(first),
            b=self._lowered(second),
        )

    def _lowered(self, text: str) -> str:
        """`text` with a small first letter, unless it begins with a name or "I"."""
        match = _TOKEN.match(text)
        if match and match[0].lower().split("'")[0] in self._lexicon.lower and match[0][:1] != "I":
            return text[0].lower() + text[1:]
        if match and match[0] in ("If", "In", "It", "Is", "Into", "It's", "Its", "Inside"):
            return text[0].lower() + text[1:]
        return text


def sentence_case_like(text: str, model: str) -> str:
    """`text` with a capital first letter if `model` has one."""
    letters = [char for char in model if char.isalpha()]
    return sentence_case(text) if letters and letters[0].isupper() else text
