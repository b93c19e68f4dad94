"""docs/text.md: every line of its tables is what is said."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from realtime_tts.text.filter import SpeechTextFilter
from realtime_tts.text.languages import NAMES, language_for
from realtime_tts.text.normalizer import SpeechNormalizer
from realtime_tts.text.spans import Piece

DOCUMENT = (Path(__file__).parents[2] / "docs" / "text.md").read_text("utf-8")
ROW = re.compile(r"^\| `(?P<text>[^`]+)` \| (?P<said>.+) \|$", re.MULTILINE)
ROWS = [
    (name, row["text"], row["said"])
    for name in NAMES
    for row in ROW.finditer(DOCUMENT.split(f"## {name.title()}\n")[1].split("\n## ")[0])
]


@pytest.mark.parametrize(("name", "text", "said"), ROWS)
def test_a_row_is_true(name: str, text: str, said: str) -> None:
    normalizer = SpeechNormalizer(language_for(name))
    out = normalizer.feed([Piece(text, 0, len(text))], 0.0) + normalizer.flush()
    assert "".join(piece.text for piece in out if isinstance(piece, Piece)) == said


MARKUP = DOCUMENT.split("## Markup\n")[1].split("**What is a tag.**")[0]
HEARD = [(row["text"], row["said"]) for row in ROW.finditer(MARKUP)]


@pytest.mark.parametrize(("text", "heard"), HEARD)
def test_a_row_about_markup_is_true(text: str, heard: str) -> None:
    filtered = SpeechTextFilter()
    items = filtered.feed(text, 0.0) + filtered.flush(final=True)
    said = "".join(item.text for item in items if isinstance(item, Piece))
    assert " ".join(said.strip().replace("\n", " ⏎ ").split()) == heard
    assert len(HEARD) > 5


def test_every_language_has_its_table() -> None:
    assert {name for name, _, _ in ROWS} == set(NAMES) and len(ROWS) > 40
