"""PLS files: the W3C's examples and what others write, and files that are made to do harm."""

from __future__ import annotations

import time
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime_tts.lexicons.errors import LexiconError
from realtime_tts.lexicons.pls import NAMESPACE, read_pls, write_pls
from realtime_tts.text.lexicon import Entry

W3C = """<?xml version="1.0" encoding="UTF-8"?>
<lexicon version="1.0"
      xmlns="http://www.w3.org/2005/01/pronunciation-lexicon"
      xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
      xsi:schemaLocation="http://www.w3.org/2005/01/pronunciation-lexicon
        http://www.w3.org/TR/2007/CR-pronunciation-lexicon-20071212/pls.xsd"
      alphabet="ipa" xml:lang="en-US">
  <meta name="author" content="nobody"/>
  <metadata><grapheme xmlns="urn:other">not one</grapheme></metadata>
  <lexeme>
    <grapheme>W3C</grapheme>
    <alias>World Wide Web Consortium</alias>
  </lexeme>
  <lexeme>
    <grapheme>colour</grapheme> <grapheme>color</grapheme>
    <alias>culler</alias>
    <example>a word that is <b>written</b> in two ways</example>
  </lexeme>
  <lexeme>
    <grapheme>Newton &amp; Co</grapheme>
    <phoneme>ˈnutən</phoneme>
    <alias>new ton
      and company</alias>
    <alias prefer="true">N and C</alias>
  </lexeme>
</lexicon>"""


def pls(inside: str) -> bytes:
    return f'<lexicon version="1.0" xmlns="{NAMESPACE}">{inside}</lexicon>'.encode()


def test_each_grapheme_is_an_entry_with_the_alias_that_is_preferred_or_the_first() -> None:
    assert read_pls(W3C.encode()) == [
        Entry("W3C", "World Wide Web Consortium"),
        Entry("colour", "culler"),
        Entry("color", "culler"),
        Entry("Newton & Co", "N and C"),
    ]
    assert read_pls(W3C.encode(), case_sensitive=True)[0] == Entry(
        "W3C", "World Wide Web Consortium", True
    )


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "iso-8859-1"])
def test_a_file_is_read_in_the_encoding_that_it_names(encoding: str) -> None:
    named = encoding.removesuffix("-sig")
    text = (
        f'<?xml version="1.0" encoding="{named}"?><p:lexicon xmlns:p="{NAMESPACE}" version="1.0">'
    )
    text += "<p:lexeme><p:grapheme>Zoë</p:grapheme><p:alias>Zowy</p:alias></p:lexeme></p:lexicon>"
    assert read_pls(text.encode(encoding)) == [Entry("Zoë", "Zowy")]


def test_phonemes_without_an_alias_are_refused_with_the_words_and_what_to_do() -> None:
    lexeme = "<lexeme><grapheme>{}</grapheme><phoneme>x</phoneme></lexeme>"
    with pytest.raises(LexiconError) as refused:
        read_pls(pls("".join(map(lexeme.format, "abcdefg"))))
    said = str(refused.value)
    assert "('a', 'b', 'c', 'd', 'e' and 2 others)" in said and "give an alias" in said


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "not a PLS file"),
        (b"SQL,sequel", "not a PLS file"),
        (b"<lexicon/>", "expected the element `lexicon`"),
        (b"<html xmlns='http://www.w3.org/1999/xhtml'/>", "expected the element `lexicon`"),
        (pls("<lexeme>")[:-10], "not a PLS file"),
        (pls("<lexeme><alias>x</alias></lexeme>"), "has no grapheme"),
        (pls("<lexeme><grapheme>x</grapheme></lexeme>"), "'x' has no alias"),
        (pls("<a>" * 40 + "</a>" * 40), "more than 32 deep"),
        (b'<?xml version="1.0" encoding="x-none"?>' + pls(""), "not a PLS file"),
        (b"\xff\xfe<\x00", "not a PLS file"),
    ],
)
def test_what_is_no_pls_file_is_refused_with_the_reason(data: bytes, says: str) -> None:
    with pytest.raises(LexiconError, match=says):
        read_pls(data)


BOMB = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))
HARMFUL = {
    "many laughs": f'<!DOCTYPE lexicon [<!ENTITY e0 "ha">{BOMB}]>',
    "one large entity": f'<!DOCTYPE lexicon [<!ENTITY e11 "{"ha" * 100_000}">]>',
    "a file": '<!DOCTYPE lexicon [<!ENTITY e11 SYSTEM "file:///etc/passwd">]>',
    "an address": '<!DOCTYPE lexicon SYSTEM "http://127.0.0.1:1/x.dtd">',
    "a parameter": '<!DOCTYPE lexicon [<!ENTITY % e SYSTEM "file:///etc/passwd"> %e;]>',
}


@pytest.mark.parametrize("kind", HARMFUL)
def test_a_file_that_would_become_more_than_it_is_is_refused_at_once(kind: str) -> None:
    inside = pls("<lexeme><grapheme>&e11;</grapheme><alias>x</alias></lexeme>").decode()
    began = time.process_time()
    with pytest.raises(LexiconError, match="DOCTYPE"):
        read_pls((HARMFUL[kind] + inside).encode())
    assert time.process_time() - began < 0.5


TEXT = st.text(st.characters(exclude_categories=("C", "Z")) | st.just(" "), min_size=1)
PLAIN = TEXT.filter(lambda text: " ".join(text.split()) == text)


@given(st.lists(st.tuples(PLAIN, PLAIN), max_size=5))
def test_what_is_written_is_read_again_here_and_elsewhere(entries: list[tuple[str, str]]) -> None:
    written = write_pls(Entry(*each) for each in entries)
    assert read_pls(written) == [Entry(*each) for each in entries]
    lexemes = ElementTree.fromstring(written).findall(f"{{{NAMESPACE}}}lexeme")
    assert [tuple(part.text for part in lexeme) for lexeme in lexemes] == entries


@given(st.binary(max_size=200) | st.text("<>/&;! lexmgrahi='\"").map(str.encode))
def test_no_bytes_do_more_than_be_refused(data: bytes) -> None:
    with pytest.raises(LexiconError):
        read_pls(data)
