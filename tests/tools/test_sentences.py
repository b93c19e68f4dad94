from itertools import islice
from pathlib import Path
from random import Random

import pytest

from tools.demo_voice.cleaning import clean, compared, sentences_of, with_articles
from tools.demo_voice.grammar import Grammar, GrammarError
from tools.demo_voice.held_out import Guard, evaluation_texts
from tools.demo_voice.lexicon import Lexicon
from tools.demo_voice.mix import Corpus, Mixer
from tools.demo_voice.numbers import TERMINALS
from tools.demo_voice.questions import rises
from tools.demo_voice.replies import replies
from tools.demo_voice.sentences import make
from tools.demo_voice.sources import Places, SourceMissing
from tools.demo_voice.tokenizer import CONTROL_TOKENS, sample, train, write

NOUNS, VERBS, OTHERS = (
    ("garden", "teacup", "ladder"),
    ("walk", "jump", "paint"),
    ("green", "slowly"),
)
NAMES = ("London", "Alice")
RANKED = [*NOUNS, *VERBS, *OTHERS, "gardens", "walked", "jumping", "paints", "london", "alice"]
EXAMPLES = ["She walked to the green garden.", "He paints a ladder slowly, and they jump."]
LONG = [", and ".join(EXAMPLES).replace(".", "") + f" {end}." for end in ("here", "there now")]
LONGER = [" and ".join(LONG).replace(".", "") + "."]


@pytest.fixture
def places(tmp_path: Path) -> Places:
    """A word list and a WordNet of a few words, in the form of the real ones."""
    wordnet = tmp_path / "wordnet"
    wordnet.mkdir()
    plain = [word for word in RANKED if word not in ("london", "alice")]
    (tmp_path / "words").write_text("\n".join([*plain, *NAMES]))
    for name, lemmas in {
        "noun": NOUNS,
        "verb": VERBS,
        "adj": ("green",),
        "adv": ("slowly",),
    }.items():
        (wordnet / f"index.{name}").write_text("".join(f"{lemma} x 1 0\n" for lemma in lemmas))
    (wordnet / "cntlist.rev").write_text("garden%1:06:00:: 1 5\n")
    (wordnet / "verb.exc").write_text("went go\n")
    return Places(wordnet, tmp_path / "fortunes", tmp_path / "words", tmp_path / "alice", "none")


def mixer(places: Places, seed: int, guard: Guard) -> Mixer:
    corpus = Corpus({"examples": EXAMPLES + LONG + LONGER}, {"examples": 1.0})
    return Mixer(corpus, Lexicon(places, RANKED), guard, Random(seed))


def first(made: Mixer, count: int) -> list[str]:
    lines = made.lines()
    return [next(lines)[1] for _ in range(count)]


def test_the_same_seed_makes_the_same_lines_and_none_twice(places: Places) -> None:
    lines = first(mixer(places, 7, Guard([])), 60)
    assert lines == first(mixer(places, 7, Guard([])), 60)
    assert lines != first(mixer(places, 8, Guard([])), 60)
    assert len(set(lines)) == len(lines)
    assert all(line.isascii() and line == line.strip() and "{" not in line for line in lines)


def test_evaluation_texts_never_come_out(places: Places) -> None:
    barred = first(mixer(places, 7, Guard([])), 30)
    made = {compared(line) for line in first(mixer(places, 7, Guard(barred)), 60)}
    assert made.isdisjoint(compared(line) for line in barred)


def test_replies_are_short_whole_and_not_those_of_the_evaluation(places: Places) -> None:
    lexicon, barred = Lexicon(places, RANKED), {compared(text) for text in evaluation_texts()}
    lines = list(islice(replies(lexicon, Random(1)), 400))
    assert lines == list(islice(replies(lexicon, Random(1)), 400))
    assert len(lines) > len(set(lines)) > 200, "some come again"
    assert all(1 <= len(line.split()) <= 5 and line.endswith((".", "!", "?")) for line in lines)
    assert not [line for line in lines if "{" in line or "  " in line or line[0].islower()]
    assert barred.isdisjoint(map(compared, lines))


def test_a_share_of_the_replies_asks_for_yes_or_no(places: Places) -> None:
    lexicon, barred = Lexicon(places, RANKED), {compared(text) for text in evaluation_texts()}
    lines = list(islice(replies(lexicon, Random(1), questions=0.5), 400))
    asking = [line for line in lines if rises(line)]
    assert 160 < len(asking) < 260
    assert max(len(line.split()) for line in asking) > 5, "few questions are so short"
    assert all(len(line.split()) <= 5 for line in lines if line not in asking)
    assert barred.isdisjoint(map(compared, lines))


def test_the_guard_compares_words_and_not_marks() -> None:
    guard = Guard(["The old bridge was closed after the storm. Thank you."])
    assert guard.forbids("the OLD bridge, was closed after the storm!")
    assert guard.forbids("He says the old bridge was closed for good.")
    assert not guard.forbids("The old bridge was open.")
    assert not guard.forbids("Thank you!")


def test_the_evaluation_files_hold_what_they_should() -> None:
    texts = evaluation_texts()
    assert len(texts) == 60 + 60 + 20 + 20 + 30 + 40 + 200
    pairs = 10  # a question and its statement are the same words
    assert len({compared(text) for text in texts}) == len(texts) - pairs
    assert len(set(texts)) == len(texts)


def test_a_missing_source_names_its_package(places: Places) -> None:
    with pytest.raises(SourceMissing, match="apt-get install wamerican-large"):
        make(Places(words=places.fortunes / "words"), RANKED, 1, 1)
    with pytest.raises(SourceMissing, match="apt-get install wordnet-base"):
        make(Places(wordnet=places.fortunes, words=places.words), RANKED, 1, 1)


def test_words_are_classed_by_their_use(places: Places) -> None:
    forms = Lexicon(places, RANKED).forms
    assert (forms["garden"], forms["gardens"], forms["walked"]) == ("n", "ns", "vd")
    assert (forms["jumping"], forms["paints"], forms["slowly"]) == ("vg", "vs", "r")


def test_prose_is_told_from_markup() -> None:
    assert clean("It\u2019s  late (very late) \u2014 go!") == "It's late - go!"
    assert clean("see http://example") is None
    assert clean("a list of 3 things") is None
    assert sentences_of("Mr. Smith left. Who knew?") == ["Mr. Smith left.", "Who knew?"]
    assert with_articles("a hour, an unit, a 8-year-old, an dog") == (
        "an hour, a unit, an 8-year-old, a dog"
    )


def test_a_grammar_expands_lists_options_and_terminals() -> None:
    rules = ["[drink] tea | milk", "[say]", "A {drink}{, please/ {when}}.", "[when] now"]
    made = {Grammar(rules, {}).draw(Random(seed)) for seed in range(60)}
    assert made == {"A tea, please.", "A tea now.", "A milk, please.", "A milk now."}
    with pytest.raises(GrammarError, match="'nobody'"):
        Grammar(["[say] {nobody}"], {})


def test_numbers_have_the_forms_that_the_teacher_reads() -> None:
    drawn = {name: {make(Random(seed)) for seed in range(500)} for name, make in TERMINALS.items()}
    assert all(1800 <= int(year) <= 2030 for year in drawn["year"])
    assert not {str(number) for number in range(374, 393)} & (drawn["int"] | drawn["flight"])
    assert {"1st", "2nd", "3rd", "11th", "21st"} <= drawn["day_ordinal"]


def test_the_tokenizer_keeps_the_prompt_word_whole(tmp_path: Path) -> None:
    texts = [f"{EXAMPLES[place % 2]} Number {place}, my assistant!" for place in range(200)]
    vocabulary, merges = train(sample(texts, RANKED, 200, 1), 340)
    assert 256 < len(vocabulary) <= 340
    assert "assistant" in vocabulary
    write(tmp_path, vocabulary, merges)
    assert CONTROL_TOKENS[0] in (tmp_path / "tokenizer_config.json").read_text()
    assert (tmp_path / "merges.txt").read_text().count("\n") == len(merges) + 1
