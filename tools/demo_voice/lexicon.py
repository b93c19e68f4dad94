"""Words by part of speech and form, drawn by tempered frequency so that rare ones are seen too."""

from __future__ import annotations

import re
from bisect import bisect
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from random import Random

from tools.demo_voice.cleaning import coarse, words_of
from tools.demo_voice.sources import Places, SourceMissing, lines_of, spelling_list

# A word of rank r is drawn with a weight of (r + 30)^-0.62: rank 40,000 comes 11 times less often
# than rank 800, where in real text it is some 100 times.
_RANK_OFFSET, _TEMPER = 30, -0.62
_UNLISTED_WEIGHT = 0.25  # of names and loans that no American word list has
_POS = {"1": "n", "2": "v", "3": "a", "4": "r", "5": "a"}
_FUNCTION_WORDS = frozenset(
    """a about above after again against all almost alone along already also although always am
    among an and another any anybody anyone anything are around as at away be became because become
    been before behind being below beside best better between both but by can cannot come could did
    do does doing done down during each either else enough even ever every everybody everyone
    everything far few first for from gave get gets getting give given go goes going gone got had
    has have having he her here hers herself him himself his how however i if in indeed inside into
    is it its itself just last least less let like little made make makes many may maybe me might
    mine more most much must my myself near need neither never next no nobody none nor not nothing
    now of off often oh okay on once one only onto or other others our ours ourselves out outside
    over own perhaps please put quite rather really said same saw say says second see seem seems
    seen several shall she should since so some somebody someone something soon still such than
    that the their theirs them themselves then there therefore these they thing things think third
    this those though through thus to together too took toward towards twice two three four five
    six seven eight nine ten under until up upon us use used very was way we well went were what
    whatever when where whether which while who whole whom whose why will with within without would
    yes yet you your yours yourself""".split()
)


_ENDINGS = (
    ("s", "ns"),
    ("ed", "vd"),
    ("ing", "vg"),
    ("ly", "r"),
    ("er", "a"),
    ("est", "a"),
    ("", "n"),
)


class Drawer:
    """Words to draw from, each by its weight."""

    def __init__(self, weights: dict[str, float]) -> None:
        self.words = list(weights)
        self._sums = list(accumulate(weights.values()))

    def draw(self, rng: Random) -> str:
        """One word."""
        return self.words[bisect(self._sums, rng.random() * self._sums[-1])]


class Lexicon:
    """The vocabulary: `forms` tells a lower-case word's class, `drawers` holds each class's words.

    Classes: n, ns (plural), v, vs, vd (past), vg (-ing), a, r (adverb), name, and any.
    """

    def __init__(self, places: Places, ranked: Sequence[str]) -> None:
        """`ranked`: lower-case words, the most frequent first."""
        spelling = spelling_list(places)
        self.lower = {word for word in spelling if word.islower()}
        weights = _weights(ranked)
        self.forms = _forms(places.wordnet, self.lower.intersection(weights), spelling)
        by_class: dict[str, dict[str, float]] = defaultdict(dict)
        for word, weight in weights.items():
            form = self.forms.get(word)
            if form:
                by_class[form][word] = weight
            if word in self.lower and (form or word.capitalize() not in spelling):
                by_class["any"][word] = weight
            elif word.capitalize() in spelling and len(word) > 2:
                by_class["name"][word.capitalize()] = weight
                by_class["any"][word.capitalize()] = weight
            elif len(word) > 3:
                by_class["name"][word.capitalize()] = weight * _UNLISTED_WEIGHT
                by_class["any"][word] = weight * _UNLISTED_WEIGHT
        self.drawers = {form: Drawer(words) for form, words in by_class.items()}
        self.known = self.lower | {word.lower() for word in self.drawers["any"].words}

    def draw(self, form: str, rng: Random) -> str:
        """A word of class `form`."""
        return self.drawers[form].draw(rng)

    def knows(self, text: str) -> bool:
        """Whether `text` is of known words, but for one or, if it is long, two."""
        words = words_of(text.lower())
        strange = [word for word in words if word.split("'")[0] not in self.known]
        return len(strange) <= len(words) // 8 and all(len(word) < 18 for word in words)


def frequent_words(count: int) -> list[str]:
    """The `count` most frequent English words. Raises SourceMissing without the list of them."""
    try:
        from wordfreq import top_n_list
    except ImportError:
        raise SourceMissing("no word frequencies: pip install wordfreq") from None
    return list(top_n_list("en", count))


def _weights(ranked: Sequence[str]) -> dict[str, float]:
    return {
        word: (rank + _RANK_OFFSET) ** _TEMPER
        for rank, word in enumerate(ranked)
        if word.isascii() and word.isalpha() and _pronounceable(word) and not coarse(word)
    }


def _pronounceable(word: str) -> bool:
    return re.search(r"[aeiouy]", word) is not None and not re.search(r"(.)\1\1", word)


def _forms(wordnet: Path, known: set[str], spelling: set[str]) -> dict[str, str]:
    """The class of each word: that in which it is used most, or else what its ending suggests."""
    votes: dict[str, Counter[str]] = defaultdict(Counter)
    for lemma, pos, uses in _uses(wordnet):
        for form, spelled in _inflections(lemma, pos):
            if spelled in known and spelled not in _FUNCTION_WORDS and len(spelled) > 2:
                votes[spelled][form] += uses
    forms = {word: count.most_common(1)[0][0] for word, count in votes.items()}
    forms |= dict.fromkeys(known & _irregular(wordnet) - _FUNCTION_WORDS, "vd")
    for word in sorted(known - forms.keys() - _FUNCTION_WORDS):
        if len(word) > 2 and word.capitalize() not in spelling:  # that would be a name
            forms[word] = next(form for ending, form in _ENDINGS if word.endswith(ending))
    return forms


def _uses(wordnet: Path) -> Iterator[tuple[str, str, int]]:
    """(lemma, part of speech, how often WordNet's authors met it, at least 1) of plain lemmas."""
    counts: Counter[tuple[str, str]] = Counter()
    for line in lines_of(wordnet / "cntlist.rev", "wordnet-base"):
        key, _, uses = line.split()
        lemma, _, rest = key.partition("%")
        counts[lemma, _POS[rest[0]]] += 10 * int(uses)
    for name, pos in (("noun", "n"), ("verb", "v"), ("adj", "a"), ("adv", "r")):
        for line in lines_of(wordnet / f"index.{name}", "wordnet-base"):
            lemma, _, senses = (*line.split(" ", 3)[:2], line.split(" ", 3)[2])
            if lemma.isalpha():
                counts[lemma, pos] += int(senses)
    yield from ((lemma, pos, uses) for (lemma, pos), uses in counts.items())


def _irregular(wordnet: Path) -> set[str]:
    """Past forms that no rule makes."""
    return {
        line.split()[0]
        for line in lines_of(wordnet / "verb.exc", "wordnet-base")
        if not line.split()[0].endswith(("ed", "ing", "s"))
    }


def _inflections(lemma: str, pos: str) -> Iterator[tuple[str, str]]:
    """(class, spelling) of the regular forms of a lemma."""
    if pos in "ar":
        yield pos, lemma
        return
    plural = lemma + "s"
    if lemma.endswith(("s", "x", "z", "ch", "sh")):
        plural = lemma + "es"
    elif re.search(r"[^aeiou]y$", lemma):
        plural = lemma[:-1] + "ies"
    yield pos, lemma
    yield pos + "s", plural
    if pos == "v":
        yield from (("vd", _stem(lemma, "ed")), ("vg", _stem(lemma, "ing")))
        if lemma[-1] in "bdgmnprt":
            yield from (("vd", lemma + lemma[-1] + "ed"), ("vg", lemma + lemma[-1] + "ing"))


def _stem(verb: str, ending: str) -> str:
    if verb.endswith("e") and not verb.endswith(("ee", "oe", "ye")):
        return verb[:-1] + ending
    if ending == "ed" and re.search(r"[^aeiou]y$", verb):
        return verb[:-1] + "ied"
    return verb + ending
