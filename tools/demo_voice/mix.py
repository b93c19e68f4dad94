"""The mixture: how many lines of which length come from which maker."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tools.demo_voice import letters, numbers
from tools.demo_voice.augment import Augmenter
from tools.demo_voice.cleaning import MOST_WORDS, coarse, sentence_case, words_of
from tools.demo_voice.grammar import Grammar
from tools.demo_voice.held_out import Guard
from tools.demo_voice.lexicon import Lexicon

# (fewest words, most words, share of lines, shares of makers)
BUCKETS: tuple[tuple[int, int, float, dict[str, float]], ...] = (
    (1, 2, 0.08, {"word": 0.5, "grammar": 0.3, "number": 0.1, "letters": 0.07, "real": 0.03}),
    (
        3,
        12,
        0.60,
        {
            "real": 0.15,
            "swapped": 0.2,
            "joined": 0.05,
            "grammar": 0.4,
            "number": 0.1,
            "letters": 0.1,
        },
    ),
    (13, 22, 0.26, {"real": 0.2, "swapped": 0.3, "joined": 0.3, "grammar": 0.15, "number": 0.05}),
    (23, MOST_WORDS, 0.06, {"real": 0.15, "swapped": 0.35, "joined": 0.42, "grammar": 0.08}),
)
_FOLDER = Path(__file__).parent
_MOST_KEPT = 20_000  # texts of one maker and bucket that wait for their turn
_TRIES = 400
_WORD_FORMS = ("{W}.",) * 11 + ("{w}",) * 4 + ("{W}!", "{W}?", "{W}", "{w}.", "{W},")
_FINITE = frozenset(
    """is was are were has had have do does did will would can could should might must may am
    isn't wasn't aren't weren't don't doesn't didn't won't wouldn't can't couldn't shouldn't
    said says went goes took made came got gave knew thought saw found told felt left kept began
    ran wrote stood held brought fell became grew sat lost paid met led spoke drove broke it's
    he's she's they're we're i'm you're i've we've that's there's""".split()
)
_SUBJECTS = frozenset(
    """he she they we i you it the a an his her their my our your this that these those there
    it's he's she's they're we're i'm you're i've we've that's there's nobody everyone everybody
    somebody something nothing everything some many most all no both""".split()
)


@dataclass(frozen=True, slots=True)
class Corpus:
    """Real texts by source, with how often each source is taken as a model for new ones."""

    texts: dict[str, list[str]]
    weights: dict[str, float]


class Mixer:
    """Makes lines without end, each of them new, by the shares of `BUCKETS`."""

    def __init__(self, corpus: Corpus, lexicon: Lexicon, guard: Guard, rng: Random) -> None:
        self._lexicon, self._guard, self._rng = lexicon, guard, rng
        self._augmenter = Augmenter(lexicon)
        self._grammar = assistant(lexicon)
        self._numbers = _grammar(lexicon, "grammar.txt", "numbers.txt", only="say number")
        self._letters = _grammar(lexicon, "grammar.txt", "letters.txt", only="say letters")
        self._models = {name: texts for name, texts in corpus.texts.items() if texts}
        self._real = [text for texts in self._models.values() for text in texts]
        self._clauses = [text for text in self._real if self._full(text)]
        rng.shuffle(self._real)
        self._model_names = list(self._models)
        self._model_weights = [corpus.weights[name] for name in self._model_names]
        self._words = list(lexicon.drawers["any"].words)
        rng.shuffle(self._words)
        self._makers: dict[str, Callable[[], str | None]] = {
            "real": self._make_real,
            "swapped": self._make_swapped,
            "joined": self._make_joined,
            "grammar": lambda: self._grammar.draw(rng),
            "number": lambda: self._numbers.draw(rng),
            "letters": lambda: self._letters.draw(rng),
            "word": self._make_word,
        }
        self._waiting: dict[tuple[str, int], list[str]] = defaultdict(list)
        self._made: set[str] = set()

    def lines(self) -> Iterator[tuple[str, str]]:
        """(maker, line), without end. A maker that has nothing left yields to "swapped"."""
        shares = [share for _, _, share, _ in BUCKETS]
        while True:
            bucket = self._rng.choices(range(len(BUCKETS)), shares)[0]
            makers = BUCKETS[bucket][3]
            maker = self._rng.choices(list(makers), list(makers.values()))[0]
            for name in (maker, "swapped", "grammar"):
                line = self._line(name, bucket)
                if line is not None:
                    yield name, line
                    break

    def _line(self, maker: str, bucket: int) -> str | None:
        waiting = self._waiting[maker, bucket]
        for _ in range(_TRIES):
            if waiting:
                return waiting.pop()
            made = self._makers[maker]()
            if made is None:
                return None
            self._keep(maker, self._styled(made))
        return None

    def _keep(self, maker: str, line: str) -> None:
        count = len(line.split())
        for bucket, (fewest, most, _, _) in enumerate(BUCKETS):
            if fewest <= count <= most and len(self._waiting[maker, bucket]) < _MOST_KEPT:
                if line not in self._made and not self._guard.forbids(line) and not coarse(line):
                    self._made.add(line)
                    self._waiting[maker, bucket].append(line)

    def _make_real(self) -> str | None:
        return self._augmenter.finished(self._real.pop(), self._rng) if self._real else None

    def _make_swapped(self) -> str:
        text = self._model()
        changed = self._augmenter.swapped(text, self._rng)
        if changed == text:
            changed = self._augmenter.swapped(text, self._rng)
        return self._augmenter.finished(changed, self._rng)

    def _make_joined(self) -> str:
        return self._augmenter.joined(self._clause(), self._clause(), self._rng)

    def _make_word(self) -> str:
        """Every word once, in any order, then by tempered frequency."""
        word = self._words.pop() if self._words else self._lexicon.draw("any", self._rng)
        form = self._rng.choice(_WORD_FORMS)
        return form.format(w=word, W=sentence_case(word))

    def _model(self) -> str:
        name = self._rng.choices(self._model_names, self._model_weights)[0]
        return self._rng.choice(self._models[name])

    def _clause(self) -> str:
        if self._rng.random() < 0.45:
            return self._grammar.draw_from(self._rng.choice(("clause", "present")), self._rng)
        text = self._rng.choice(self._clauses)
        return self._augmenter.swapped(text, self._rng) if self._rng.random() < 0.7 else text

    def _full(self, text: str) -> bool:
        """Whether `text` looks like a whole statement, short enough to be a clause of another."""
        words = words_of(text.lower())
        forms = self._lexicon.forms
        return (
            4 <= len(words) <= 12
            and not text.endswith(("?", "!"))
            and words[0] in _SUBJECTS
            and any(word in _FINITE or forms.get(word) in ("vs", "vd") for word in words[:6])
        )

    def _styled(self, text: str) -> str:
        """Now and then without a capital, without a full stop, or with a word in capitals."""
        style = self._rng.random()
        if style < 0.93:
            return sentence_case(text)
        if style < 0.955:
            return text[0].lower() + text[1:] if text[1:2].islower() else text
        if style < 0.985:
            return sentence_case(text).rstrip(".")
        words = text.split(" ")
        place = self._rng.randrange(len(words))
        after_article = (
            place > 0 and words[place - 1].lower() == "a"
        )  # "A" before capitals is a letter
        if len(words[place]) > 3 and words[place].isalpha() and not after_article:
            words[place] = words[place].upper()
        return sentence_case(" ".join(words))


def assistant(lexicon: Lexicon, only: str = "say") -> Grammar:
    """Everyday language, and what an assistant says. `only`: as in `Grammar`."""
    return _grammar(lexicon, "grammar.txt", "grammar_assistant.txt", only=only)


def _grammar(lexicon: Lexicon, *names: str, only: str = "say") -> Grammar:
    """The grammar of the named files. Word classes of the lexicon are terminals of it."""
    terminals = numbers.TERMINALS | letters.TERMINALS
    for form in lexicon.drawers:
        terminals[form] = lambda rng, form=form: lexicon.draw(form, rng)  # type: ignore[misc]
    rules = [line for name in names for line in (_FOLDER / name).read_text("utf-8").splitlines()]
    return Grammar(rules, terminals, only)
