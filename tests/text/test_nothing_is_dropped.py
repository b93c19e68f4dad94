"""Nothing that a caller writes is lost on its way to the voice, but for what markup leaves out.

Two properties of the whole pipeline: every letter and digit of the source belongs to something
that is spoken, and what stands for several words says all of them.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime_tts.text.languages import NAMES, language_for
from realtime_tts.text.pipeline import TextPipeline
from realtime_tts.text.tokenizer import Qwen2Tokenizer

TOKENIZER = Qwen2Tokenizer.from_folder(Path(__file__).parent / "data" / "tiny_tokenizer")

NUMBERS = ["5", "20", "1.5", "1,200", "2024", "98", "007", "3/4", "10-15", "7:30", "½", "21st"]
SIGNS = ["$", "€", "£", "US$", "#", "~", "<", "±", "-", "+", "%", "°C", "/", "@", "²", "₂", "^2"]
WORDS = ["m", "k", "bn", "min", "max", "gal", "lb.", "km", "MB/s", "/mo", "p.m.", "EST", "USD"]
WORDS += ["million", "AD", "St.", "Dr.", "Part", "May", "Mon-Fri", "II", "XIV", "IL", "No.", "in"]
WORDS += ["jane@example.com", "user_id", "C#", "and/or", "people", "Uhr", "heures", "Euro", "Mio."]
PLAIN = [
    *NUMBERS,
    *SIGNS,
    *WORDS,
    " ",
    " ",
    " ",
    ". ",
    ", ",
    "\n",
    "你好",
    "年",
    "é",
    "Привет",
    "여",
]
MARKUP = [
    ("`code`", ""),
    ("[a label](https://target.example/x)", "https://target.example/x"),
    ("![a picture](x.png)", "x.png"),
    ("[^1]", "1"),
    ("tall.[1]", "1"),
    ("[7](https://source.example)", "7https://source.example"),
    ("\n```py\nprint(1)\n```\n", "pyprint(1)"),
    ("\n| a | b |\n|---|---|\n| c | d |\n", ""),
    (" https://www.example.com/a/b?c=1 ", "https://www./a/b?c=1"),
    ("**bold**", ""),
    ("\n# Title\n", ""),
    ("\n- [ ] item\n", ""),
    ('<break time="300ms"/>', 'break time="300ms"'),
    ('<expression value="sad"/>', 'expression value="sad"'),
    ('<sub alias="bee">b</sub>', 'sub alias="bee"/sub'),
    ("<spell>A1</spell>", "spell/spell"),
    (" [laughs softly] ", "laughs softly"),
    (". *sighs* ", "sighs"),
    ("<!-- x -->", "x"),
]
"""Markup, and the characters of it that are not read: the rules of `text/filter.py`."""
plain = st.one_of(st.sampled_from(PLAIN), st.text("abXY19é你 .,'$%/-+()", max_size=6))
texts = st.lists(plain, max_size=10).map("".join)
marked = st.lists(
    st.one_of(plain.map(lambda text: (text, "")), st.sampled_from(MARKUP)), max_size=8
)


def spoken(text: str, name: str, filtered: bool = True) -> TextPipeline:
    pipeline = TextPipeline(TOKENIZER, filtered=filtered, language=language_for(name))
    pipeline.feed(text, 0.0)
    pipeline.finish(0.0)
    return pipeline


def sources(pipeline: TextPipeline) -> list[tuple[int, int]]:
    """The places in the source of each spoken character."""
    said = range(len(pipeline.spoken))
    return [(pipeline.source_start(at), pipeline.source_offset(at + 1)) for at in said]


def unspoken(text: str, name: str, filtered: bool = True) -> str:
    """The letters and digits of a text that belong to nothing that is spoken."""
    covered: set[int] = set()
    for start, end in sources(spoken(text, name, filtered)):
        covered.update(range(start, end))
    return "".join(c for at, c in enumerate(text) if c.isalnum() and at not in covered)


@given(texts, st.sampled_from(NAMES), st.booleans())
def test_every_letter_and_digit_belongs_to_something_that_is_spoken(
    text: str, name: str, filtered: bool
) -> None:
    assert unspoken(text, name, filtered) == ""


@given(marked, st.sampled_from(NAMES))
def test_only_what_markup_leaves_out_is_not_spoken(parts: list[tuple[str, str]], name: str) -> None:
    for text, left_out in parts:
        allowed = [char for char in left_out if char.isalnum()]
        for char in unspoken(f"so {text} so", name):
            assert char in allowed, text
            allowed.remove(char)


RUN = re.compile(r"[^\W\d_]+|\d+")
_SILENT = re.compile(r"0+|o|T")
"""Zeros that a number does not need ($5.00, 09:05), and the T of a timestamp."""
amounts = st.tuples(
    st.sampled_from(["", "$", "€", "£", "US$", "-$", "~$"]),
    st.integers(2, 98).map(str) | st.sampled_from(["1.5", "2.75", "1,250"]),
    st.sampled_from(["", "m", "k", "bn", "M", " million"]),
    st.sampled_from(
        ["", " min", " max", " gal", " m", " g", " lb", " L", " W", " hr", "/mo", "/user", " USD"]
        + [" km", "%", "°F", " MB/s", " km/h", " sq ft", "h 30m", " p.m.", " AD", "+", "'11\""]
    ),
    st.sampled_from([" order", ".", ", then", " a day", " EST.", ". Then", "\n"]),
).map("".join)


@given(amounts, st.sampled_from(["", "a ", "at ", "about "]))
def test_each_word_of_what_is_read_as_one_changes_what_is_said(text: str, before: str) -> None:
    """Where a piece stands for several words, to leave out any of them makes a difference."""
    text = f"It's {before}{text}"
    whole = spoken(text, "english").spoken
    places = sorted(
        {place for place in sources(spoken(text, "english")) if place[1] > place[0] + 1}
    )
    for start, end in sorted(places):
        for run in RUN.finditer(text, start, end):
            if _SILENT.fullmatch(run.group()) or (run.group() == "US" and " USD" in text):
                continue
            without = text[: run.start()] + text[run.end() :]
            assert spoken(without, "english").spoken != whole, run.group()


@pytest.mark.parametrize(
    "text", ["£3m", "€20m", "$20 min order", "$3 gal", "$40 g.", "$5bn", "$20 L each", "1.5M users"]
)
def test_what_used_to_be_lost_is_said(text: str) -> None:
    said = spoken(text, "english").spoken
    for run in RUN.finditer(text):
        without = text[: run.start()] + text[run.end() :]
        assert spoken(without, "english").spoken != said, run.group()
