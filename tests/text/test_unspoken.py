"""Where text that waits may be cut, and that all of it comes out again."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime_tts.text.directions import Break
from realtime_tts.text.spans import Piece
from realtime_tts.text.unspoken import End, UnspokenText, end_of


def waiting(*parts: str | Break) -> UnspokenText:
    unspoken, at = UnspokenText(), 0
    for part in parts:
        unspoken.add([Piece(part, at, at + len(part)) if isinstance(part, str) else part])
        at += len(part) if isinstance(part, str) else 0
    return unspoken


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("Let me ", End.WORD),
        ("Let me", None),
        ("Well, ", End.CLAUSE),
        ("for you.", End.SENTENCE),
        ('he said: "No!" ', End.SENTENCE),
        ("J. ", End.WORD),
        ("Ask Dr.", End.WORD),
        ("на ул. ", End.WORD),
        ("a line\n", End.SENTENCE),
        ("你好", End.WORD),
        ("你好，", End.CLAUSE),
        ("你好。", End.SENTENCE),
    ],
)
def test_what_a_text_ends_with(text: str, end: End | None) -> None:
    assert end_of(text) is end


def test_the_last_word_is_complete_when_white_space_follows() -> None:
    unspoken = waiting("Well, let me che")
    assert unspoken.last(End.WORD) == len("Well, let me ") and unspoken.words == 3
    assert unspoken.last(End.CLAUSE) == len("Well, ") and unspoken.last(End.SENTENCE) == 0
    unspoken.add([Piece("ck. ", 16, 20)])
    assert unspoken.last(End.SENTENCE) == len("Well, let me check. ")
    assert unspoken.last(End.WORD, within=7) == len("Well, ")


def test_a_full_stop_before_a_small_letter_ends_no_sentence() -> None:
    unspoken = waiting("Noch 5 Min. bis dahin. Dann")
    assert unspoken.first(End.SENTENCE) == len("Noch 5 Min. bis dahin. ")
    assert unspoken.first(End.WORD) == len("Noch ")


def pieces(unspoken: UnspokenText, end: End) -> list[str]:
    """The text in pieces, each up to the first such end."""
    found = []
    while unspoken.text:
        count = unspoken.first(end) or len(unspoken.text)
        found.append(unspoken.text[:count])
        unspoken.take(count)
    return found


@pytest.mark.parametrize(
    "text",
    [
        "Dr. Smith met Mrs. Jones on Oct. 5, see fig. 2. |Then he left.",
        "Il sig. Rossi e l'avv. Bianchi, tel. +39 02, pag. 12. |Poi no. |No. |Sì.",
        "A Dra. Ana e o Sr. Silva moram na Av. Paulista. |Veja a pág. 5. |Fim.",
        "Он живёт на ул. Ленина, д. 5, кв. 12. |Это стоит 5 руб. |Т. е. много.",
        "Am 5. Mai und am 24. Dezember gab es 5 Mio. Euro im 19. Jahrhundert. |Er ist 5. |Gut.",
        "Il sec. XX e o séc. XV. |It took a sec. |I left.",
        "はい。|3対2です！|OKです。|“好。”他说。|(注)午後10：30、1，000円。",
        "Los EE. UU. son grandes. |M. Dupont a 5 ans. |Oui.",
        "10. Decimo\n|11. Undicesimo\n|È il 12. |Poi basta.",
        '"Ciao!" disse lui. |"Vieni?" |Poi andò via.',
        "— Привет! — сказал он. |— Да, — ответила она. |— Нет! |— Да!",
        "「はい。」と言った。|「いいえ！」「そう？」え？！|そう……|です。",
        "他说：“好。”然后走了。|再见。",
        "Zutaten:\n|– eier\n|– milch\n|- brot",
        "« Bonjour ! » dit-il. |« Oui. » |Elle partit. |Il a dit « non ».",
        "„Nein!“ sagte er. |„Ja.“ |Dann ging er. |»Halt!« |Sie blieb. |Il dit. |« Oui. |’Tis it.",
        "Im Laufe des 19. Jahrhunderts, Ende des 2. Weltkriegs, Hauptstr. 5. |Es sind 19. |Gut.",
        "1. Wash it. |2. Dry it. |12. Fold it. |I have 5. |Then go.",
    ],
)
def test_a_sentence_is_cut_only_where_it_ends(text: str) -> None:
    sentences = text.split("|")
    assert pieces(waiting("".join(sentences)), End.SENTENCE) == sentences


def test_text_without_spaces_is_cut_between_syllables_that_can_be_said_alone() -> None:
    unspoken = waiting("「キャー」１，２３４円（３：０５）ﾊﾟｰﾃｨｰ")
    assert pieces(unspoken, End.WORD) == ["「キャー」", "１，２３４円（３：０５）", "ﾊﾟｰ", "ﾃｨｰ"]


@pytest.mark.parametrize(
    "text", ["「はい。」と言った。え？！「１，０００円」。", "他说：“好！”）然后走了。.\n）再见"]
)
@pytest.mark.parametrize("end", [End.WORD, End.CLAUSE, End.SENTENCE])
def test_ends_are_the_same_however_the_text_comes(text: str, end: End) -> None:
    slow = UnspokenText()
    for at, char in enumerate(text):
        slow.add([Piece(char, at, at + 1)])
        slow.last(End.WORD)
    assert pieces(slow, end) == pieces(waiting(text), end)


def test_a_number_behind_the_words_of_its_sentence_is_no_item_of_a_list() -> None:
    unspoken = waiting("I counted 10. Then five.")
    unspoken.take(len("I counted "))
    assert unspoken.first(End.SENTENCE) == len("10. ")


def test_a_long_run_of_marks_is_looked_at_once() -> None:
    unspoken = waiting("!" * 100_000)
    begun = time.monotonic()
    assert unspoken.last(End.WORD) == 0
    assert time.monotonic() - begun < 3


def test_what_stands_for_a_number_is_never_parted() -> None:
    unspoken = UnspokenText()
    unspoken.add(
        [Piece("It costs ", 0, 9), Piece("five dollars, fifty", 9, 14), Piece(" now ", 14, 19)]
    )
    ends = [unspoken.last(End.WORD, within=count) for count in range(len(unspoken.text) + 1)]
    assert sorted(set(ends)) == [0, 3, 9, len("It costs five dollars, fifty "), len(unspoken.text)]
    assert unspoken.last(End.CLAUSE) == 0


@pytest.mark.parametrize("space", ["", " "])
def test_a_break_is_an_end_with_and_without_a_space_before_it(space: str) -> None:
    unspoken = waiting("Let me" + space, Break(0.0), "see")
    count = unspoken.first(End.BREAK)
    assert unspoken.take(count) == [Piece("Let me" + space, 0, 6 + len(space)), Break(0.0)]
    assert unspoken.text == "see" and unspoken.first(End.BREAK) == 0


@given(
    st.lists(st.text("ab, .!\n你。", min_size=1, max_size=6), max_size=12),
    st.lists(st.integers(0, 9), max_size=20),
)
def test_all_text_comes_out_in_its_order_with_its_places(parts: list[str], cuts: list[int]) -> None:
    unspoken, taken, at = UnspokenText(), [], 0
    for number, part in enumerate(parts):
        unspoken.add([Piece(part, at, at + len(part))])
        at += len(part)
        count = min(cuts[number], len(unspoken.text)) if number < len(cuts) else 0
        taken += unspoken.take(count)
        assert unspoken.last(End.WORD) <= len(unspoken.text)
    taken += unspoken.take(len(unspoken.text))
    whole = "".join(parts)
    pieces = [piece for piece in taken if isinstance(piece, Piece)]
    assert "".join(piece.text for piece in pieces) == whole
    assert all(whole[piece.start : piece.end] == piece.text for piece in pieces)
