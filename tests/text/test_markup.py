"""Tags, entities and stage directions: what is never spoken, what is text, and what they direct."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime_tts.text.directions import AS_THE_SESSION, Break, Change, Item, SayAs, Voicing
from realtime_tts.text.filter import MAX_HOLD_SECONDS, SpeechTextFilter
from realtime_tts.text.markup import MAX_DEPTH, PauseReader
from realtime_tts.text.spans import Piece
from tests.properties import examples


def run(parts: list[str]) -> list[Item]:
    filtered = SpeechTextFilter()
    items = [item for part in parts for item in filtered.feed(part, 0.0)]
    return items + filtered.flush(final=True)


def heard(items: list[Item]) -> str:
    """What is said, with a mark where it is parted."""
    shown = ""
    for item in items:
        if isinstance(item, Piece):
            shown += item.text
        elif isinstance(item, SayAs):
            shown += f"{{{item.kind}:{item.piece.text}}}"
        else:
            shown += f"[{item.seconds:g}]" if isinstance(item, Break) else "|"
    return shown


def voicings(text: str) -> list[Voicing]:
    return [item.voicing for item in run([text]) if isinstance(item, Change)]


NEVER_SPOKEN = {
    '<expression value="excited"/>Hello!': "|Hello!",
    "Hi <b>bold</b> and <i class='x'>it</i>": "Hi bold and it",
    "word<wbr>word": "word word",
    "un<b>believ</b>able": "unbelievable",
    '<unknown foo="1">Hello</unknown> there': "Hello there",
    "<smile> Hello <wave/>there": "Hello there",
    '<a href="https://x.example">label</a>': "label",
    "<p>One</p><p>Two</p>": "One\nTwo\n",
    "<ul>\n<li>one</li>\n<li>two</li>\n</ul>": "one\n\ntwo\n\n",
    "<table><tr><td>a</td><td>b</td></tr></table>": "a, b\n",
    "<speak>Hello</speak>": "Hello",
    '<?xml version="1.0"?><speak version="1.1" xml:lang="en-US">Hi</speak>': "Hi",
    "<!DOCTYPE html><html><body>Hi</body></html>": "Hi\n",
    "<!-- a -- comment > --> Hi": "Hi",
    "Hi <!-- never closed": "Hi ",
    "<![CDATA[5 < 6]]> ok": "5 < 6 ok",
    "<think>I should <b>greet</b> them</think>Hello": "Hello",
    "<thinking>never closed": "",
    '<tool_call>{"name": "x"}</tool_call>Done': "Done",
    "<|im_start|>user": "user",
    '<video src="x" controls>Hi': "Hi",
    '<emotion value=\\"happy\\"/>Hi': "|Hi",
    "<emotion value=“happy”/>Hi": "|Hi",
    "<em>yes</em >, </nothing> ok": "yes, ok",
    "That is funny [laughs] indeed": "That is funny indeed",
    "[sighs deeply] Well": "Well",
    "[Excited] Great": "|Great",
    "[clears throat] So, [long pause] yes": "So, yes",
    "[whispering] Listen [soft laughter]": "|Listen ",
    "*sighs* Well, *laughs nervously* ok": "Well, ok",
    "*smiles and nods at you* Hello": "Hello",
    "_giggles_ Hello": "Hello",
    "*deep breath* Right": "Right",
    "(laughs) Sure (clears throat)": "Sure ",
    "（笑）你好【叹气】吗": "你好吗",
    "*seufzt* Na gut": "Na gut",
    "*soupire* Bon": "Bon",
    "*suspira* Bueno": "Bueno",
    # Cut by the end of the text.
    "Hello <": "Hello ",
    "Hello <expr": "Hello ",
    '<b x="y\nHello': "Hello",
    'Hello <expression value="ha': "Hello ",
    'Hello <break time="3': "Hello ",
    "Hello </b": "Hello ",
    "Hello <!-": "Hello ",
    "Hello [lau": "Hello ",
    "Hello [laughs": "Hello ",
    "Hello *sigh": "Hello ",
    "Hello *sighs": "Hello ",
}
TEXT = [
    "a < b",
    "if a < b and c > d",
    "a <b and c> d",
    "x<y and y>z",
    "5 <6",
    "I <3 you",
    "List<String> and Map<K, V>",
    "vector<int>",
    "a <- b -> c <= d",
    "<your name>",
    "a <b",
    "list[int]",
    "items[0]",
    "[1]",
    "[Name]",
    "[your name] here",
    "Dear [Customer],",
    "[sic]",
    "see [the docs] for it",
    "[a, b]",
    "[0, 1)",
    "matrix[i][j]",
    "word[laughs]",
    "x*y*z",
    "2 * 3",
    "He laughs",
    "(see below)",
    "(in short)",
    "f(laughs)",
    "(he said)",
    "(laughs at 5 jokes)",
    "AT&T",
    "Q&A; R&B",
    "&unknown; & co",
    "a & b",
]
SAID = {
    "this is *very* good": "this is very good",
    "He *laughs* at them": "He laughs at them",
    "she *never sighs*": "she never sighs",
    "*Note* this": "Note this",
    "`<div>` and `a < b`": "div and a < b",
    "`List<int>` or `</p>`": "List<int> or p",
    "R&amp;D": "R&D",
    "5&nbsp;km &lt;b&gt; &#8364;5 &#x41;": "5 km <b> €5 A",
    "<bob@example.com> wrote": "bob@example.com wrote",
    "<https://www.example.com/x> or <www.example.org>": "example.com or example.org",
    "[laughs](https://x.example) label": "laughs label",
    "```html\n<b>never read</b>\n```\nDone": "Done",
}
DIRECTED = {
    'One<break time="300ms"/>two': "One[0.3] two",
    "One<break  time = '1s' />two": "One[1] two",
    'One<BREAK TIME=".25S"></BREAK>two': "One[0.25] two",
    'One<break strength="strong"/>two<break/>three': "One[0.7] two[0.4] three",
    'two<break/>three<break strength="none"/>': "two[0.4] three",
    'One<break time="soon"/>two': "One two",
    "PIN <spell>A1-2</spell>.": "PIN {characters:A1-2}.",
    '<say-as interpret-as="date" format="mdy">3/5/2024</say-as> ok': "{date:3/5/2024} ok",
    '<say-as interpret-as="address">5 Main St.</say-as>': "5 Main St.",
    '<sub alias="World Wide Web">W3</sub> yes': "World Wide Web yes",
    "H<sub>2</sub>O": "H2O",
    '<phoneme alphabet="respelling" ph="puh-KAHN">pecan</phoneme> pie': "puh-KAHN pie",
    '<phoneme alphabet="ipa" ph="pɪˈkɑːn">pecan</phoneme> pie': "pecan pie",
    "<spell>AB<b>1</b>&amp;2": "{characters:AB1&2}",
}
ALL = {**NEVER_SPOKEN, **{text: text for text in TEXT}, **SAID, **DIRECTED}


@pytest.mark.parametrize(("text", "said"), ALL.items(), ids=lambda text: ascii(text)[:50])
def test_what_is_heard_of_markup_and_of_what_looks_like_it(text: str, said: str) -> None:
    assert heard(run([text])) == said
    assert heard(run(list(text))) == said


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('<voice name="ray">Hi</voice> you', [Voicing(voice="ray"), AS_THE_SESSION]),
        ('<lang xml:lang="de-DE">ja</lang>', [Voicing(language="de-DE"), AS_THE_SESSION]),
        (
            '<voice name="ray" xml:lang="de">a<emotion value="sad">b</emotion></voice>',
            [
                Voicing(voice="ray", language="de"),
                Voicing(voice="ray", language="de", emotion="sad"),
                Voicing(voice="ray", language="de"),
                AS_THE_SESSION,
            ],
        ),
        (
            '<emotion value="sad"/>a<expression value="neutral"/>b',
            [Voicing(emotion="sad"), AS_THE_SESSION],
        ),
        ('<mstts:express-as style="cheerful">a', [Voicing(emotion="cheerful")]),
        ('<prosody rate="slow" volume="+6dB">a', [Voicing(rate=0.8, volume=1.9953)]),
        ('<prosody rate="120%" volume="80">a', [Voicing(rate=1.2, volume=0.8)]),
        ('<prosody rate="-10%" pitch="high">a', [Voicing(rate=0.9)]),
        (
            '<speed ratio="1.5"/>a<volume ratio="0.5"/>b',
            [Voicing(rate=1.5), Voicing(rate=1.5, volume=0.5)],
        ),
        ("[excited] a [laughs] b [whispers] c", [Voicing(cue="excited"), Voicing(cue="whispers")]),
        ('<prosody rate="often">a</prosody><voice>b</voice></voice>', []),
    ],
)
def test_tags_say_how_what_follows_is_spoken(text: str, expected: list[Voicing]) -> None:
    assert voicings(text) == expected


def test_elements_that_are_too_deep_change_nothing() -> None:
    deep = "".join(f'<emotion value="e{n}">x' for n in range(MAX_DEPTH + 5))
    assert len(voicings(deep)) == MAX_DEPTH


def test_a_half_tag_waits_for_its_rest_through_time_and_flush() -> None:
    filtered = SpeechTextFilter()
    assert heard(filtered.feed("Hi <expre", 0.0)) == "Hi "
    assert filtered.deadline() is None and filtered.poll(60.0) == []
    assert filtered.flush() == []
    assert heard(filtered.feed('ssion value="sad"/>you', 99.0)) == "|you"


def test_half_a_cue_waits_for_its_rest_but_not_through_a_flush() -> None:
    filtered = SpeechTextFilter()
    filtered.feed("Hi [laug", 0.0)
    assert filtered.deadline() is None and filtered.poll(60.0) == []
    assert filtered.flush() == []
    filtered.feed("Hi [so", 61.0)
    assert heard(filtered.flush()) == "[so"


@pytest.mark.parametrize("text", ["(si es que", "(se recomienda", "(takes two", '("clears'])
def test_what_begins_like_a_cue_of_several_words_is_held_until_it_differs(text: str) -> None:
    filtered = SpeechTextFilter()
    assert heard([item for char in text for item in filtered.feed(char, 0.0)]) == text


@pytest.mark.parametrize("text", ["a <", "a <b", "a <b and", "I [the docs", "a *b", "Q&A"])
def test_what_is_not_a_tag_is_held_for_a_few_characters_or_the_usual_time(text: str) -> None:
    filtered = SpeechTextFilter()
    filtered.feed(text, 0.0)
    later = heard(filtered.poll(MAX_HOLD_SECONDS)) + heard(filtered.feed(" and so on", 1.0))
    assert later.endswith(" and so on")


def test_a_tag_without_an_end_is_passed_over_up_to_one() -> None:
    long = '<expression value="' + "very " * 200 + '"/> Hello'
    assert heard(run([long])) == heard(run(list(long))) == "Hello"


def test_without_the_filter_only_a_pause_of_a_stated_time_is_markup() -> None:
    text = 'a **b** <b>c</b> <break time="1s"/> <break/> [laughs] <brea'
    for parts in ([text], list(text)):
        filtered = SpeechTextFilter(PauseReader)
        items = [item for part in parts for item in filtered.feed(part, 0.0)]
        items += filtered.flush(final=True)
        assert heard(items) == "a **b** <b>c</b> [1] <break/> [laughs] <brea"


FRAGMENTS = [
    *[
        "<",
        ">",
        "/",
        "</",
        "/>",
        "<b>",
        "</b>",
        "<br/>",
        "<x y",
        '="',
        '"',
        "'",
        "=",
        "<!--",
        "-->",
    ],
    *["<![CDATA[", "]]>", "<?", "<|", "|>", "&", "&amp;", "&lt", ";", "<think>", "</think>"],
    *['<break time="', '1s"/>', '<voice name="a">', "</voice>", '<emotion value="sad"/>'],
    *["<spell>", "</spell>", '<sub alias="b">', "</sub>", '<say-as interpret-as="date">'],
    *[
        "[",
        "]",
        "[laughs]",
        "[lau",
        "*sighs*",
        "*sig",
        "*",
        "_",
        "(laughs)",
        "(",
        ")",
        "（笑",
        "）",
    ],
    *[
        "laughs",
        " softly",
        "a",
        "Hello ",
        " ",
        "\n",
        "5",
        ".",
        "`",
        "**",
        "](u)",
        "x" * 150,
        "http",
    ],
]
texts = st.lists(
    st.one_of(st.sampled_from(FRAGMENTS), st.text("ab<>&[]*_/= \"'", max_size=4)), max_size=12
).map("".join)


@examples(800)
@given(texts, st.lists(st.integers(1, 9), min_size=1, max_size=4))
def test_any_split_of_any_markup_gives_what_the_whole_does(text: str, sizes: list[int]) -> None:
    parts, at, turn = [], 0, 0
    while at < len(text):
        size = sizes[turn % len(sizes)]
        parts.append(text[at : at + size])
        at, turn = at + size, turn + 1
    whole, pieces = run([text]), run(parts)
    assert heard(pieces) == heard(whole)
    assert [i for i in pieces if not isinstance(i, Piece)] == [
        i for i in whole if not isinstance(i, Piece)
    ]


@given(texts.filter(lambda text: "```" not in text))  # code is left out to its end
def test_nothing_that_a_tag_could_be_made_of_is_ever_lost_for_good(text: str) -> None:
    said = heard(run([text + "\n\n</think>-->]]></spell></sub></say-as>\n\n The end."]))
    assert said.endswith("The end.")
