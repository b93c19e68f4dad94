"""Speech-ready text: what is said, that no split changes it, and how long anything waits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime_tts.text.directions import MAX_BREAK_SECONDS, Break, Seam
from realtime_tts.text.filter import MAX_HOLD_SECONDS
from realtime_tts.text.languages import NAMES, language_for
from realtime_tts.text.lexicon import Lexicon
from realtime_tts.text.normalizer import SpeechNormalizer
from realtime_tts.text.spans import Piece

LEXICON = Lexicon({"SQL": "sequel", "sql": "ess cue ell", "Nguyen": "win", "C++": "see plus plus"})


def run(
    parts: list[str], language: str | None, lexicon: Lexicon | None = None
) -> list[Piece | Seam]:
    normalizer = SpeechNormalizer(language_for(language), lexicon)
    out: list[Piece | Seam] = []
    at = 0
    for part in parts:
        out += normalizer.feed([Piece(part, at, at + len(part))], 0.0)
        at += len(part)
    return out + normalizer.flush()


def words(out: list[Piece | Seam]) -> str:
    return "".join(f"[{p.seconds:g}]" if isinstance(p, Break) else p.text for p in known(out))


def known(out: list[Piece | Seam]) -> list[Piece | Break]:
    return [item for item in out if isinstance(item, Piece | Break)]


def sources(out: list[Piece | Seam]) -> list[tuple[int, int] | float]:
    """For every spoken character the source it stands for; pauses by their length."""
    places: list[tuple[int, int] | float] = []
    for piece in known(out):
        if isinstance(piece, Break):
            places.append(piece.seconds)
        elif len(piece.text) == piece.end - piece.start:
            places += [(at, at + 1) for at in range(piece.start, piece.end)]
        else:
            places += [(piece.start, piece.end)] * len(piece.text)
    return places


def cut(text: str, sizes: list[int]) -> list[str]:
    parts, at, turn = [], 0, 0
    while at < len(text):
        parts.append(text[at : at + sizes[turn % len(sizes)]])
        at, turn = at + len(parts[-1]), turn + 1
    return parts


# What is said -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["en", "EN-us", "English", "en_GB"])
def test_a_language_is_found_by_its_names(name: str) -> None:
    language = language_for(name)
    assert language is not None and language.name == "english"


@pytest.mark.parametrize("name", [None, "", "auto", "klingon", "japanese"])
def test_text_of_an_unknown_language_stays_as_it_is(name: str | None) -> None:
    assert language_for(name) is None
    assert words(run(["Dr. No paid $5 on 1/2/2024."], name)) == "Dr. No paid $5 on 1/2/2024."


@given(st.integers(0, 10**15 - 1), st.sampled_from(NAMES))
def test_every_number_has_words_without_digits(number: int, name: str) -> None:
    said = words(run([f"{number}"], name))
    assert said and not any(map(str.isdigit, said))


# Any split ----------------------------------------------------------------------------------------

FRAGMENTS = [
    *["5", "98", "1", "007", "1,234", ".5", ".", ",", " ", "\n", "$", "€", "%", "-", "–", "/", ":"],
    *["2024", "3:30", " p.m.", " a.m.", "Dr.", " Mr. ", "St. ", " No. ", "etc.", "e.g.", "z.B."],
    *["January ", "Jan. ", "Mai", " janvier", " km", " kg", "km/h", " million", " Mio.", "°C", "°"],
    *["th", "st", "s", "x", "v", "GPT", "#", "&", "+", " = ", "×", "(555) 123-4567", "+49 30 123"],
    *["½", "1/2", "Chapter ", "Henry ", "VIII", "II", "I", "<", '<break time="', '300ms"/>', ">"],
    *['<break time="0.5s"/>', "你", "年", "3月", "5日", "个", "。", "号", "Hello", " the ", "é"],
    *[
        "ไทย",
        "한국",
        "５",
        "٣",
        "SQL",
        "sql",
        "Sql",
        "Ngu",
        "yen",
        "C++",
        "C",
        "é\u0301",
        "Uhr",
        "h30",
        " et ",
        "'",
        '"',
    ],
]
FRAGMENTS += [
    *[
        "US$",
        "EUR ",
        "C$",
        "m",
        "bn",
        " min",
        " gal",
        "/mo",
        "/s",
        " MB/s",
        "²",
        "₂",
        "^2",
        "~",
        "@",
    ],
    *["_", ".com", "example", "jane", ".io", "Mon", "-Fri", "'11\"", " lb.", " in.", " EST", " AD"],
    *[
        "Part ",
        "May ",
        " people",
        ", IL",
        " 62704",
        "w/",
        "C#",
        " -",
        "A ",
        "at ",
        "Room ",
        "code ",
        "!",
    ],
    *[
        "√",
        "π",
        "≤",
        "II ",
        "Fri, ",
        "911",
        "737-800",
        "2125550123",
        "12/25",
        "3-2",
        "8/10",
        "and/or",
        "Dial ",
        "*",
    ],
]
FRAGMENTS += [
    *["→", " -> ", " > ", "# ", "Press ", "the ", " key", "of ", "c. ", "§", "UTC-", "hab. "],
    *["TV", "x", "Bahnhof", "str. ", "S. ", " == ", "!", "=", "⁺", "³", " += ", "x 10", "♭", "²/"],
    *["v. ", "Roe ", "XIXe s. ", "et ", "Settings", "按", "键", " s.", "ers", "(", "1450"],
]
texts = st.lists(st.sampled_from(FRAGMENTS), max_size=14).map("".join)
splits = st.lists(st.integers(1, 6), min_size=1, max_size=4)


@pytest.mark.parametrize("name", [*NAMES, None])
@pytest.mark.parametrize("lexicon", [None, LEXICON], ids=["plain", "lexicon"])
def test_any_split_says_the_same_of_the_same_places(
    name: str | None, lexicon: Lexicon | None
) -> None:
    @given(texts, splits)
    def same(text: str, sizes: list[int]) -> None:
        whole = run([text], name, lexicon)
        pieces = run(cut(text, sizes), name, lexicon)
        assert words(pieces) == words(whole)
        assert sources(pieces) == sources(whole)

    same()


@given(texts, splits, st.sampled_from([*NAMES, None]))
def test_places_go_forward_and_every_piece_is_in_the_text(
    text: str, sizes: list[int], name: str | None
) -> None:
    previous = 0
    for piece in run(cut(text, sizes), name, LEXICON):
        if isinstance(piece, Piece):
            assert previous <= piece.start <= piece.end <= len(text)
            previous = piece.start
            if piece.text == text[piece.start : piece.end]:
                continue
            assert len(piece.text) != piece.end - piece.start or piece.text.strip()


def test_a_number_stands_for_its_digits() -> None:
    out = run(["It costs $3.50 now."], "en")
    assert Piece("three dollars and fifty cents", 9, 14) in out


# Waiting ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said_at_once", "held"),
    [
        ("It is 98.", "It is ", "98."),
        ("Ask Dr.", "Ask ", "Dr."),
        ("At 5 p.m.", "At ", "5 p.m."),
        ("It is $3", "It is ", "$3"),
        ("At 12:3", "At ", "12:3"),
        ("Ask Dr", "Ask ", "Dr"),
        ("Hello there", "Hello there", ""),
        ("5 apples", "five apples", ""),
        ("5, then", "five, then", ""),
    ],
)
def test_only_what_is_open_waits_400_ms_behind_a_mark_and_inside_a_word_for_its_end(
    text: str, said_at_once: str, held: str
) -> None:
    normalizer = SpeechNormalizer(language_for("en"))
    assert words(normalizer.feed([Piece(text, 0, len(text))], 10.0)) == said_at_once
    if not held.endswith("."):
        assert normalizer.deadline() is None and normalizer.poll(1000.0) == []
        assert bool(normalizer.flush()) is bool(held)
        return
    assert normalizer.deadline() == 10.0 + MAX_HOLD_SECONDS
    assert normalizer.poll(10.0 + MAX_HOLD_SECONDS - 0.001) == []
    assert normalizer.poll(10.0 + MAX_HOLD_SECONDS) != []
    assert normalizer.deadline() is None


def test_a_full_stop_behind_a_word_waits_for_a_moment_only() -> None:
    normalizer = SpeechNormalizer(language_for("en"))
    assert words(normalizer.feed([Piece("Go to example.", 0, 14)], 1.0)) == "Go to example"
    assert normalizer.deadline() == pytest.approx(1.05)
    assert words(normalizer.feed([Piece("com now", 14, 21)], 1.04)).startswith(" dot com")
    normalizer.feed([Piece(".", 21, 22)], 2.0)
    assert words(normalizer.poll(2.06)) == "."


def test_a_hold_counts_from_the_last_text_and_a_late_feed_ends_it() -> None:
    normalizer = SpeechNormalizer(language_for("en"))
    normalizer.feed([Piece("98", 0, 2)], 1.0)
    assert normalizer.feed([Piece(".", 2, 3)], 1.9) == [], "the digits may wait for any time"
    assert normalizer.deadline() == 1.9 + MAX_HOLD_SECONDS
    out = normalizer.feed([Piece("6", 3, 4)], 1.9 + MAX_HOLD_SECONDS)
    assert words(out + normalizer.flush()) == "ninety-eight.six"


@pytest.mark.parametrize("gap", [0.1, 0.35, 5.0])
def test_a_number_that_comes_digit_by_digit_is_one_number(gap: float) -> None:
    normalizer = SpeechNormalizer(language_for("en"))
    said = []
    for at, char in enumerate("$123456 now"):
        said += normalizer.feed([Piece(char, at, at + 1)], at * gap)
    whole = run(["$123456 now"], "en")
    assert words(said + normalizer.flush()) == words(whole)


def test_a_hold_in_an_earlier_stage_counts() -> None:
    normalizer = SpeechNormalizer(language_for("en"))
    normalizer.feed([Piece("98.", 0, 3)], 1.3, since=1.0)
    assert normalizer.deadline() == 1.0 + MAX_HOLD_SECONDS


def test_a_piece_that_stands_for_other_text_is_said_in_parts() -> None:
    """Three characters for the seven from 2 on: the first part is said for all of them."""
    normalizer = SpeechNormalizer(language_for("en"))
    out = normalizer.feed([Piece("so ", 0, 2), Piece("1, ", 2, 9), Piece("ok", 9, 11)], 0.0)
    assert out + normalizer.flush() == [
        Piece("so ", 0, 2),
        Piece("one", 2, 9),
        Piece(", ", 9, 9),
        Piece("ok", 9, 11),
    ]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("part", ["7", "7.", "1,", "12 ", "201 ", "1-"])
def test_an_endless_number_does_not_wait_for_its_end(name: str, part: str) -> None:
    normalizer = SpeechNormalizer(language_for(name))
    for at, char in enumerate(part * (1_200 // len(part))):
        normalizer.feed([Piece(char, at, at + 1)], 0.0)
        assert len(normalizer._held) < 500


# Lexicon and pauses -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Use SQL.", "Use sequel."),
        ("Use sql.", "Use ess cue ell."),
        ("Use Sql.", "Use sequel."),
        ("MySQL and SQLite", "MySQL and SQLite"),
        ("SQL's", "sequel's"),
        ("I like C++!", "I like see plus plus!"),
        ("NGUYEN 5", "win five"),
        ("Nguyens", "Nguyens"),
    ],
)
def test_a_lexicon_has_whole_words_and_the_exact_case_first(text: str, said: str) -> None:
    assert words(run([text], "en", LEXICON)) == said
    assert words(run(list(text), "en", LEXICON)) == said


def test_a_lexicon_comes_before_units_and_needs_no_language() -> None:
    lexicon = Lexicon({"GB": "gigs"})
    assert words(run(["5 GB"], "en", lexicon)) == "five gigs"
    assert words(run(["5 GB"], None, lexicon)) == "5 gigs"


@pytest.mark.parametrize("text", ["1 000 2 3 4 5 6 7", "1 000 ans"])
def test_a_number_does_not_reach_over_a_word_of_the_lexicon(text: str) -> None:
    lexicon = Lexicon({"000": "triple zéro"})
    assert words(run([text], "french")).startswith("mille ")
    assert words(run([text], "french", lexicon)).startswith("un triple zéro ")
    assert words(run(list(text), "french", lexicon)).startswith("un triple zéro ")


def test_a_lexicon_finds_words_where_nothing_separates_them() -> None:
    assert words(run(["我在重庆。"], "zh", Lexicon({"重庆": "虫庆"}))) == "我在虫庆。"


def test_a_lexicon_finds_words_of_other_letters_before_korean_particles() -> None:
    lexicon = Lexicon({"SQL": "에스큐엘", "3D": "쓰리디", "김치": "기무치"})
    for parts in (["SQL은 3D로, MySQL을 김치찌개"], list("SQL은 3D로, MySQL을 김치찌개")):
        assert words(run(parts, "ko", lexicon)) == "에스큐엘은 쓰리디로, MySQL을 김치찌개"


def test_pauses_of_a_turn_are_limited() -> None:
    out = SpeechNormalizer(None).feed([Break(6.0)] * 3, 0.0)
    assert out == [Break(6.0), Break(MAX_BREAK_SECONDS - 6.0)]


def test_a_pause_ends_what_stands_before_it() -> None:
    normalizer = SpeechNormalizer(language_for("en"))
    out = normalizer.feed([Piece("It is $3", 0, 8), Break(0.5), Piece(" km", 8, 11)], 0.0)
    assert words(out) == "It is three dollars[0.5] "
    assert words(normalizer.flush()) == "km"


def test_money_without_a_word_for_it_is_left_alone() -> None:
    assert words(run(["Das sind ₹100."], "de")) == "Das sind ₹einhundert."
