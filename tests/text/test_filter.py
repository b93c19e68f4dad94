"""What a listener hears of what an LLM writes, whatever way it arrives."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from realtime_tts.text.directions import Item
from realtime_tts.text.filter import MAX_HOLD_SECONDS, SpeechTextFilter
from realtime_tts.text.marks import MAX_HELD_CHARACTERS
from realtime_tts.text.spans import Piece, PieceMap
from tests.properties import examples

CASES = {
    # Emphasis.
    "**Hello** world": "Hello world",
    "This is *very* important.": "This is very important.",
    "***Both*** of _them_ and __these__": "Both of them and these",
    "~~old~~ new": "old new",
    "**Note:** it works": "Note: it works",
    "**bold *and italic* text**": "bold and italic text",
    "un**believ**able": "unbelievable",
    "**这是**重点**内容**。": "这是重点内容。",
    "请看*这里*的说明": "请看这里的说明",
    "(*aside*) and “*quoted*”": "(aside) and “quoted”",
    "**Is it 5*3?** Yes": "Is it 5*3? Yes",
    "**unclosed at the end": "unclosed at the end",
    "*Terms apply.": "Terms apply.",
    # What looks like emphasis and is not.
    "2 * 3 = 6": "2 * 3 = 6",
    "3*4 and a*b": "3*4 and a*b",
    "(a+b)*(c+d)": "(a+b)*(c+d)",
    "2**3 and x**2 and 2 ** 8": "2**3 and x**2 and 2 ** 8",
    "a 5* hotel": "a 5* hotel",
    "Dial *67 or *69, press *1* *now*": "Dial *67 or *69, press 1 now",
    "Dial *#06# or *21*555#, **\\*72**": "Dial *#06# or *21*555#, *72",
    "call snake_case_name or __init__": "call snake_case_name or init",
    "*Terms apply\nto 5* hotels": "Terms apply\nto 5* hotels",
    "about ~5 minutes": "about ~5 minutes",
    # Powers and indices of LaTeX.
    "x^{2} + y^{-3} and e^{i\\pi}": "x^2 + y^-3 and e^(iπ)",
    "$x^{n+1}$ and a_{n-1} in H_{2}O": "x^(n + 1) and a n - 1 in H 2O",
    "_{yes}_, a ^ b, ^_^ and x^{": "{yes}, a ^ b, ^_^ and x^{",
    # Headings, lists, quotes, rules.
    "# Title\nText": "Title\n\nText",
    "### 3. Results\n\nGood.": "3. Results\n\nGood.",
    "#1 in the charts, #winning": "#1 in the charts, #winning",
    "C# and F# are languages": "C# and F# are languages",
    "- one\n- two\n  - three": "one\n\ntwo\n\nthree",
    "* one\n+ two\n• three": "one\n\ntwo\n\nthree",
    "*   **Bold:** item": "Bold: item",
    "1. First\n2. Second": "1. First\n\n2. Second",
    "1) First\n1.5 litres\nof 1999. So": "1) First\n\n1.5 litres\nof 1999. So",
    "- [x] done\n- [ ] open": "done\n\nopen",
    "-5 degrees, not - 5": "-5 degrees, not - 5",
    "+1 555 0100": "+1 555 0100",
    "--help shows it": "--help shows it",
    "> quoted\n> > twice": "quoted\ntwice",
    ">= 5 and > 4": ">= 5 and > 4",
    "One\n\n---\n\nTwo": "One\n\nTwo",
    "Title\n=====\nText": "Title\n\nText",
    "* * *\nText": "Text",
    "wait -- what --- now": "wait -- what --- now",
    "$-5.00, $-3.50 and $-5x$ or $n$-1": "$-5.00, $-3.50 and -5x or n-1",
    # Code.
    "Use `pip install x_y` now": "Use pip install x_y now",
    "`a*b*c` and ``x`y``": "a*b*c and xy",
    "Run:\n```bash\nrm -rf *\n```\nThen go.": "Run:\n\nThen go.",
    "~~~\ncode\n~~~\nDone": "Done",
    "```\n# no heading\n``\nstill code\n````\nDone": "Done",
    "```not a block``` but code": "not a block but code",
    "an unclosed `mark here\nand *after* it": "an unclosed mark here\nand after it",
    # Links, images, addresses.
    "See [the docs](https://docs.python.org/3/).": "See the docs.",
    "[a *nice* label](x) and [b](y 'title (1)')": "a nice label and b",
    "![A cat](cat.png) sits": "A cat sits",
    "[![badge](a.svg)](https://ci.example.com)": "badge",
    "It is so[^1] [^note].": "It is so .",
    "Rome fell[1](https://a.example/x) in 476": "Rome fell in 476",
    "It is so.[1] And tall[2][3], too [4]. [5] So": "It is so. And tall, too . So",
    'It is "so"[3], „so“[4] and (in mice)[5] all': 'It is "so", „so“ and (in mice) all',
    'split(",")[1] and f(x)[2] and d["a"][1]': 'split(",")[1] and f(x)[2] and d["a"][1]',
    "xs[1] = ys[2], items[3] and see [4]": "xs[1] = ys[2], items[3] and see [4]",
    "items[0] and [laughs] and [1]": "items[0] and and [1]",
    "Go to https://www.example.com/a/b?c=d#e.": "Go to example.com.",
    "(see https://en.wikipedia.org/wiki/X_(y))": "(see en.wikipedia.org)",
    "<https://example.com/x> or www.example.org/y,z, ok": "example.com or example.org, ok",
    "请访问https://example.com/a帮助。": "请访问example.com帮助。",
    "网址 https://example.com。": "网址 example.com。",
    "[https://a.example/x](https://a.example/x) is": "a.example is",
    "[https://a.example/x.](u 'v w') is": "a.example. is",
    "[a](b) or https://c.example/d/e?f, [g](h) www.i.example/j": "a or c.example, g i.example",
    "http is a protocol, www too": "http is a protocol, www too",
    "mail bob.smith@example.com": "mail bob.smith@example.com",
    "https://example.com:8080/path: hello": "example.com:8080: hello",
    # Tables.
    "| Name | Age |\n|---|:-:|\n| Bob | -5 |": "Name, Age\n\nBob, -5",
    "|What?|Yes،|नहीं।|لا؟|ok|": "What? Yes، नहीं। لا؟ ok",
    "| Mon | – | 12 % | — |": "Mon, –, 12 %, —",
    "|a|b|\n|a * b|c<br>d|": "a, b\n\na * b, c d",
    "yes | no": "yes | no",
    # Emoji and invisible characters.
    "Great! 🎉 Let's go": "Great! Let's go",
    "Hi🙂there 👩‍🚀👍🏽🇩🇪 ok": "Hi there ok",
    "1️⃣ First ❤️ second": "1 First second",
    "✅ Done": "Done",
    "co\u00adop\u200berate\ufeff": "cooperate",
    "می\u200cخواهم क्\u200dष": "می\u200cخواهم क्\u200dष",
    "5 ≤ 6 → yes © 2024 ™": "5 ≤ 6 → yes © 2024 ™",
    # Plain text.
    "It costs $9.99 (50% off), i.e. 1,000.5 km/h.": "It costs $9.99 (50% off), i.e. 1,000.5 km/h.",
    "E = mc^2, a_1 & b; {x} \\d @you": "E = mc^2, a_1 & b; {x} \\d @you",
    "\\*not emphasis\\* \\# 1": "*not emphasis* # 1",
    "  leading and   many    spaces  ": "leading and many spaces ",
    "a\n\n\n\n  b \n c": "a\n\nb \nc",
    "<|im_start|>user": "user",
    "Wow! Really? [Yes](u)!": "Wow! Really? Yes!",
    "": "",
}


def spoken(items: Sequence[Item]) -> str:
    return "".join(piece.text for piece in only_pieces(items))


def only_pieces(items: Sequence[Item]) -> list[Piece]:
    pieces = [item for item in items if isinstance(item, Piece)]
    assert len(pieces) == len(items), "nothing here directs the voice"
    return pieces


def offsets(pieces: list[Piece]) -> list[int]:
    joined = PieceMap()
    for piece in pieces:
        joined.add(piece)
    return [joined.source_offset(count) for count in range(joined.length + 1)]


def feed_all(text: str, sizes: list[int], now: float = 0.0) -> list[Piece]:
    filtered = SpeechTextFilter()
    pieces: list[Item] = []
    done, turn = 0, 0
    while done < len(text):
        size = sizes[turn % len(sizes)]
        pieces += filtered.feed(text[done : done + size], now)
        done, turn = done + size, turn + 1
    return only_pieces(pieces + filtered.flush())


@pytest.mark.parametrize(("text", "heard"), CASES.items(), ids=lambda text: ascii(text)[:40])
def test_a_listener_hears(text: str, heard: str) -> None:
    assert spoken(feed_all(text, [len(text) or 1])) == heard


@pytest.mark.parametrize("text", CASES, ids=lambda text: ascii(text)[:40])
@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_every_case_is_the_same_in_pieces(text: str, size: int) -> None:
    whole, pieces = feed_all(text, [len(text) or 1]), feed_all(text, [size])
    assert spoken(pieces) == spoken(whole)
    assert offsets(pieces) == offsets(whole)


FRAGMENTS = [
    *["*", "**", "***", "_", "__", "~", "~~", "`", "``", "```", "~~~"],
    *["\n", "\n\n", " ", "  ", "\t", "\n  ", "#", "# ", "- ", "-", "---", "===", "> ", "+ ", "• "],
    *[
        "\\(",
        "\\)",
        "\\[",
        "\\]",
        "$",
        "$$",
        "\\sin",
        "\\begin{a}",
        "^\\circ",
        "_1",
        "&",
        "\\,",
        "\\int",
    ],
    *[
        "【4†s】",
        "【",
        "†",
        "[cite: 1]",
        "[[1]]",
        "³",
        "<sup>",
        "2</sup>",
        "</sup>",
        "✅",
        "❌",
        "*(sighs)*",
    ],
    *["[", "]", "(", ")", "](", "![", "[x] ", "[^1]", "[1](", "\\", "<", ">", "<br>", "<br"],
    *[
        "http",
        "https://",
        "HTTP://www.",
        "www.",
        "a.com",
        "/x?y=1",
        ":80",
        "|",
        "| ",
        "|--|",
        "|:-",
    ],
    *["hello", "what", "snake_case", "b1", "2", "5", ".", ",", "!", "'", "你好", "。"],
    *["서울", "은", "は", "●", "・", "*웃으며*", "（笑", "кашляет", "пр.рф/", "<rt>", "US"],
    *["🙂", "👩\u200d🚀", "\u200d", "\ufe0f", "\u200b", "x" * 150, "-" * 150, "[" * 9],
]
markdown = st.lists(
    st.one_of(st.sampled_from(FRAGMENTS), st.text(st.characters(exclude_categories=["Cs"]))),
    max_size=14,
).map("".join)


@examples(600)
@given(markdown, st.lists(st.integers(1, 9), min_size=1, max_size=4))
@example("![\\\nwww.-   ,![x] (](!", [1])
@example("^\\circhello", [1])
def test_any_split_of_any_text_gives_the_pieces_of_the_whole(text: str, sizes: list[int]) -> None:
    whole, pieces = feed_all(text, [len(text) or 1]), feed_all(text, sizes)
    assert spoken(pieces) == spoken(whole)
    assert offsets(pieces) == offsets(whole)


@given(markdown, st.lists(st.integers(1, 9), min_size=1, max_size=4))
def test_pieces_are_in_order_and_say_where_they_come_from(text: str, sizes: list[int]) -> None:
    end = 0
    for piece in feed_all(text, sizes):
        assert end <= piece.start < piece.end <= len(text)
        end = piece.end
        if len(piece.text) == piece.end - piece.start:
            source = text[piece.start : piece.end]
            for char, original in zip(piece.text, source, strict=True):
                assert char == original or char == " " and not original.isalnum()
        else:
            assert piece.text in (", ", " ")  # between the cells of a table, for a <br>


@given(markdown, st.integers(1, 9))
def test_nothing_is_held_beyond_a_mark(text: str, size: int) -> None:
    filtered = SpeechTextFilter()
    for start in range(0, len(text), size):
        filtered.feed(text[start : start + size], 0.0)
        assert len(filtered._held) < MAX_HELD_CHARACTERS
        waits = bool(filtered._held) and filtered._reader.waits(filtered._held, timed=True)
        assert (filtered.deadline() is None) == (waits or not filtered._held)
        assert filtered._held[:1] not in set("abc 2你,🙂")


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("Hello", ""),
        ("Hello ", ""),
        ("Hello!", ""),
        ("**", "**"),
        ("**Hello", ""),
        ("**Hello**", "**"),
        ("snake_", "_"),
        ("see [the doc", "[the doc"),
        ("[the docs](https://exam", ""),
        ("see http", "http"),
        ("see https://exam", ""),
        ("see https://exam.", "."),
        ("-", "-"),
        ("\n- item", ""),
        ("42", ""),
        ("```python\nx = 1", ""),
        ("$x + ", "$x + "),
        ("$AAPL rose", ""),
        ("$5 an", ""),
        ("\\time", "\\time"),
        ("(see bel", ""),
        ("(laughs", "(laughs"),
        ("*lau", "*lau"),
        ("*lap", ""),
        ("&am", "&am"),
        ("AT&T ", ""),
        ("a <b", "<b"),
        ("a <b an", "<b an"),
        ("a <b and c", ""),
    ],
)
def test_only_an_unfinished_mark_is_held(text: str, held: str) -> None:
    filtered = SpeechTextFilter()
    filtered.feed(text, 0.0)
    assert filtered._held == held


@pytest.mark.parametrize(
    ("text", "released", "more", "then"),
    [
        ("see [the docs", "[the docs", "](https://x.example/y) now", " now"),  # still a link's end
        ("2 *", "*", " 3", " 3"),
        ("go to http", "http", "s://x.example", "s://x.example"),
        ("#", "#", "1", "1"),
        ("**", "", "bold** x", "bold x"),
        ("a `", "", "b` c", "b c"),
        ("[not a link", "[not a link", "] and **bold**", "] and bold"),
    ],
)
def test_a_hold_ends_in_time_and_what_follows_is_filtered_as_usual(
    text: str, released: str, more: str, then: str
) -> None:
    filtered = SpeechTextFilter()
    filtered.feed(text, 10.0)
    assert filtered.deadline() == 10.0 + MAX_HOLD_SECONDS
    assert filtered.poll(10.0 + MAX_HOLD_SECONDS - 0.001) == []
    assert spoken(filtered.poll(10.0 + MAX_HOLD_SECONDS)) == released
    assert filtered.deadline() is None
    assert spoken(filtered.feed(more, 11.0) + filtered.flush()) == then


@given(markdown, st.lists(st.tuples(st.integers(1, 9), st.floats(0, 0.5)), min_size=1, max_size=6))
def test_no_character_is_held_longer_than_the_limit(
    text: str, steps: list[tuple[int, float]]
) -> None:
    filtered, now, done, turn = SpeechTextFilter(), 0.0, 0, 0
    arrived: list[float] = []
    while done < len(text):
        size, wait = steps[turn % len(steps)]
        delta = text[done : done + size]
        arrived += [now] * len(delta)
        filtered.feed(delta, now)
        done, turn = done + size, turn + 1
        held_since = arrived[min(filtered._read, len(arrived)) : done]
        deadline = filtered.deadline()
        assert deadline is None or deadline <= held_since[0] + MAX_HOLD_SECONDS
        now += wait
        filtered.poll(now)
        waits = filtered.deadline() is None and filtered._held.startswith(tuple("<*_[(（【"))
        if not waits:  # as a tag and a cue do, for their rest
            assert all(now < came + MAX_HOLD_SECONDS for came in arrived[filtered._read :])


def test_a_late_feed_ends_the_hold_like_a_poll_in_time() -> None:
    late, polled = SpeechTextFilter(), SpeechTextFilter()
    for filtered in (late, polled):
        filtered.feed("see [the docs", 0.0)
    in_time = polled.poll(MAX_HOLD_SECONDS)
    assert spoken(in_time) == "[the docs"
    after = polled.feed("](u)", 5.0)
    assert spoken(late.feed("](u)", 5.0)) == spoken(in_time + after) == "[the docs"


def test_flush_releases_what_is_held_and_text_may_follow() -> None:
    filtered = SpeechTextFilter()
    assert spoken(filtered.feed("Hi [you", 0.0)) == "Hi "
    assert spoken(filtered.flush()) == "[you"
    assert filtered.deadline() is None
    assert spoken(filtered.feed(" **there**", 0.0) + filtered.flush()) == " there"


def test_a_flush_after_the_closing_marks_of_code_ends_the_code() -> None:
    filtered = SpeechTextFilter()
    filtered.feed("```\ncode\n```", 0.0)
    assert filtered.flush() == []
    assert spoken(filtered.feed("So", 0.0)) == "So"


@pytest.mark.parametrize(
    "unit", ["*", "`", "_", "[", "![", "#", "h", "<", "\\", "|", "[a", "~", "-"]
)
def test_floods_of_marks_take_bounded_memory(unit: str) -> None:
    filtered = SpeechTextFilter()
    for char in (unit * 3000)[:3000]:
        filtered.feed(char, 0.0)
        assert len(filtered._held) <= MAX_HELD_CHARACTERS
