"""docs/text.md: every line of its tables is what is said."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

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


def test_every_language_has_its_table() -> None:
    assert {name for name, _, _ in ROWS} == set(NAMES) and len(ROWS) > 40
