"""docs/official-package.md: what it says of texts and recordings is what is done."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from realtime_tts.text.pipeline import TextPipeline
from realtime_tts.text.tokenizer import Qwen2Tokenizer
from realtime_tts.voices.audio import MAX_SECONDS, MIN_SECONDS

ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / "docs" / "official-package.md").read_text("utf-8")
ROWS = re.findall(
    r'^\| `("[^`]+")` \| (?:`("[^`]+")`|nothing is spoken) \| .+ \|$', DOCUMENT, re.MULTILINE
)
FOLDER = ROOT / "tests" / "text" / "data" / "tiny_tokenizer"
TOKENIZER = Qwen2Tokenizer.from_folder(FOLDER)


@pytest.mark.parametrize(("text", "becomes"), ROWS)
def test_a_row_is_true(text: str, becomes: str) -> None:
    source, wanted = (json.loads(each.replace("\\|", "|") or '""') for each in (text, becomes))
    pipeline = TextPipeline(TOKENIZER, filtered=False)
    ids = pipeline.feed(source, 0.0) + pipeline.finish(0.0)
    assert pipeline.has_speech is bool(wanted)
    if wanted:
        assert ids == TOKENIZER.encode(wanted)
        assert not set(ids) & set(TOKENIZER.added_tokens.values())


def test_every_difference_of_texts_has_its_row() -> None:
    assert len(ROWS) == 5


def test_the_length_of_a_recording_is_the_one_that_is_checked() -> None:
    assert f"| length of a recording | {MIN_SECONDS:g} to {MAX_SECONDS:g} s |" in DOCUMENT


def test_the_protocol_says_which_white_space_is_not_spoken() -> None:
    of_text = (ROOT / "PROTOCOL.md").read_text("utf-8").split("### `text`")[1].split("\n#")[0]
    assert "white space before the first word of a turn" in " ".join(of_text.split())
    assert "nothing is stripped:" not in of_text
