"""Lexicons: the longest whole word, in its own letters first, wherever the text is cut."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime_tts.text.characters import is_word_character
from realtime_tts.text.languages import language_for
from realtime_tts.text.lexicon import Entry, Lexicon, WordList, lexicon_for
from realtime_tts.text.normalizer import SpeechNormalizer
from realtime_tts.text.pipeline import TextPipeline
from realtime_tts.text.spans import Piece
from tests.text.test_pipeline import TOKENIZER

LETTERS = "aAbB’'é重庆 "


def spoken(deltas: list[str], lexicon: Lexicon) -> str:
    normalizer, at, said = SpeechNormalizer(None, lexicon), 0, []
    for delta in deltas:
        said += normalizer.feed([Piece(delta, at, at + len(delta))], 0.0)
        at += len(delta)
    said += normalizer.flush()
    return "".join(piece.text for piece in said if isinstance(piece, Piece))


def expected(text: str, at: int, entries: list[Entry]) -> tuple[int, str]:
    """What a list says, entry by entry, as the document has the rules."""

    def alike(one: str, other: str, case_sensitive: bool) -> bool:
        one, other = (each.replace("’", "'") for each in (one, other))
        return one == other or (not case_sensitive and one.lower() == other.lower())

    def whole(end: int) -> bool:
        if not is_word_character(text[end - 1]) or end == len(text):
            return True
        return not (is_word_character(text[end]) or unicodedata.combining(text[end]))

    found = [
        (len(entry.word), text[at : at + len(entry.word)].replace("’", "'") == entry.word, -number)
        for number, entry in enumerate(entries)
        if alike(text[at : at + len(entry.word)], entry.word, entry.case_sensitive)
        and whole(at + len(entry.word))
    ]
    if not found:
        return 0, ""
    length, _, number = max(found)
    return length, entries[-number].say


WORD = st.text(LETTERS, min_size=1, max_size=4).filter(
    lambda word: word.strip() == word and "  " not in word and "’" not in word
)
ENTRIES = st.lists(st.tuples(WORD, st.booleans()), max_size=12).map(
    lambda words: [Entry(word, f"<{at}>", exact) for at, (word, exact) in enumerate(words)]
)


@given(ENTRIES, st.text(LETTERS, max_size=12), st.data())
def test_a_list_finds_what_going_through_its_entries_finds(
    entries: list[Entry], text: str, data: st.DataObject
) -> None:
    words = WordList(entries)
    for at in range(len(text)):
        assert words.find(text, at, ended=True) == expected(text, at, entries)


@given(ENTRIES, st.text(LETTERS, max_size=12), st.text(LETTERS, max_size=6))
def test_more_text_changes_nothing_that_was_found(
    entries: list[Entry], text: str, more: str
) -> None:
    words = WordList(entries)
    for at in range(len(text)):
        early = words.find(text, at, ended=False)
        if early is not None:
            assert early == words.find(text + more, at, ended=True)


@given(st.lists(ENTRIES, max_size=3), st.lists(st.text(LETTERS, max_size=4), max_size=8))
def test_any_cut_of_a_text_is_said_as_the_whole(
    lists: list[list[Entry]], deltas: list[str]
) -> None:
    lexicon = Lexicon(*map(WordList, lists))
    assert spoken(deltas, lexicon) == spoken(["".join(deltas)], lexicon)


def test_the_longest_word_of_all_lists_counts_and_of_equals_that_of_the_first() -> None:
    named = [WordList([Entry("New York", "Nu York"), Entry("York", "second")])]
    lexicon = lexicon_for({"York": "first", "SQL": "sequel"}, named)
    assert lexicon is not None
    assert spoken(["York and New York"], lexicon) == "first and Nu York"
    assert "sql" in lexicon and "new york" in lexicon and "New" not in lexicon
    assert lexicon_for({}) is None


def test_an_entry_for_its_own_letters_only_lets_a_shorter_one_through() -> None:
    words = WordList([Entry("US Open", "never", True), Entry("US", "you ess", True)])
    assert (
        spoken(["the US open, tell us, US"], Lexicon(words)) == "the you ess open, tell us, you ess"
    )


def test_a_word_is_found_however_its_accents_and_apostrophes_are_written() -> None:
    words = WordList(
        [Entry(unicodedata.normalize("NFD", "Café"), "kaffay"), Entry("O'Neil", "oneal")]
    )
    assert spoken(["Café O’Neil O'Neil"], Lexicon(words)) == "kaffay oneal oneal"


@pytest.mark.parametrize("cut", range(1, 12))
def test_a_word_of_a_script_without_spaces_is_found_in_the_middle(cut: int) -> None:
    lexicon, text = Lexicon({"重庆": "虫庆", "重庆市": "虫庆是"}), "我在重庆市和重庆火锅店。"
    assert spoken([text[:cut], text[cut:]], lexicon) == "我在虫庆是和虫庆火锅店。"


def test_ten_thousand_words_are_found_among_each_other() -> None:
    words = [f"word{number}" for number in range(10_000)]
    lexicon = Lexicon(WordList(Entry(word, f"{word.upper()} said") for word in words))
    text = "word7 word77, Word777 and word7777; word77777 word"
    said = re.sub(r"\bword(\d{1,4})\b", r"WORD\1 said", text, flags=re.I)
    assert spoken([text], lexicon) == said
    assert spoken(list(text), lexicon) == said


def test_what_was_heard_is_told_in_the_letters_of_the_source() -> None:
    named = [WordList([Entry("New York", "Nu Yoak")])]
    pipeline = TextPipeline(
        TOKENIZER, language=language_for("en"), lexicon=lexicon_for({"SQL": "sequel"}, named)
    )
    source = "In New York, SQL is said."
    pipeline.feed(source, 0.0)
    pipeline.finish(0.0)
    assert pipeline.spoken == "In Nu Yoak, sequel is said."
    for spoken_part, heard in (
        ("In Nu Yoak", "In New York"),
        ("In Nu Yoak, sequel", "In New York, SQL"),
    ):
        assert source[: pipeline.source_offset(len(spoken_part))] == heard
