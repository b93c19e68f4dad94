"""Lines are joined as they would stand in a transcript."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from realtime_tts.text.pipeline import TextPipeline
from realtime_tts.text.tokenizer import Qwen2Tokenizer

TOKENIZER = Qwen2Tokenizer.from_folder(Path(__file__).parent / "data" / "tiny_tokenizer")
JOINED = {
    "It is open.\nCome in.": "It is open. Come in.",
    "It is open.\n\n\nCome in.\n": "It is open. Come in.",
    'He said "no."\nThen he left.': 'He said "no." Then he left.',
    "Here is the plan:\n\nWe go.": "Here is the plan: We go.",
    "It is open. \nCome in.": "It is open. Come in.",
    "## Hours\nOpen daily": "Hours. Open daily",
    "Options:\n- red\n- green!\n- blue\n\nPick one.": "Options: red. green! blue. Pick one.",
    "Do this:\n1. Go in\n2. **Sit**!\n3) Eat\n\nDone.": "Do this: 1. Go in. 2. Sit! 3) Eat. Done.",
    "It rained\n1.5 litres\nin May": "It rained\n1.5 litres\nin May",
    "- red 🍎\n- green! 🍏\n- blue🫐\n1. tea \n\nYes.": "red . green! blue. 1. tea . Yes.",
    '- tea (hot)\n- "cola" \n- ($)\n\nYes.': 'tea (hot). "cola" . ($)\n\nYes.',
    "- „Blau“\n- »Rot«\n\n‚Gelb‘\n\nJa.": "„Blau“. »Rot«. ‚Gelb‘. Ja.",
    "Er sagt: „Ja.“\nDann geht er.": "Er sagt: „Ja.“ Dann geht er.",
    "## Horario\n¿Cuándo abre?\n\n¡Hoy!": "Horario. ¿Cuándo abre? ¡Hoy!",
    "「はい」\n\n次です": "「はい」。次です",
    "Roses are red 🌹\nviolets are blue": "Roses are red \nviolets are blue",
    "你好 🙂\n\n世界": "你好 。世界",
    "你好\u3000\n\n世界": "你好\u3000。世界",
    "| a | b |\n|---|---|\n| c | d |\nSo.": "a, b. c, d. So.",
    "Dear Ann\n\nHow are you?": "Dear Ann. How are you?",
    "Dear Ann\n\n(a letter)": "Dear Ann. (a letter)",
    "Dear Ann\n\n— she wrote": "Dear Ann\n\n— she wrote",
    "Roses are red\nviolets are blue": "Roses are red\nviolets are blue",
    "你好。\n世界": "你好。世界",
    "「はい。」\n次です。": "「はい。」次です。",
    "你好\n\n世界": "你好。世界",
}


def spoken(parts: list[str], *, filtered: bool = True) -> TextPipeline:
    pipeline = TextPipeline(TOKENIZER, filtered=filtered)
    for part in parts:
        pipeline.feed(part, 0.0)
    pipeline.finish(0.0)
    return pipeline


@pytest.mark.parametrize("text", JOINED)
def test_lines_are_joined_however_they_are_cut(text: str) -> None:
    chance = random.Random(3)
    for _ in range(20):
        cuts = sorted(chance.choices(range(len(text) + 1), k=chance.randint(0, 6)))
        parts = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
        assert spoken(parts).spoken == JOINED[text], parts


@pytest.mark.parametrize("text", JOINED)
def test_text_that_is_not_filtered_stays_as_it_is(text: str) -> None:
    assert spoken([text], filtered=False).spoken == text


def test_what_was_spoken_is_found_in_the_text() -> None:
    text = "# Hours\n\nOpen daily\n\n- Monday"
    pipeline = spoken([text])
    assert pipeline.spoken == "Hours. Open daily. Monday"
    for word in ("Hours", "Open", "daily", "Monday"):
        at = pipeline.spoken.index(word)
        assert pipeline.source_start(at) == text.index(word)
        assert pipeline.source_offset(at + len(word)) == text.index(word) + len(word)
