"""tests/data/replies: replies of language models, and what a listener should hear of each.

A file for each language: the reply, what is said, and, where we are known to say another thing, the
reason. ⏎ stands for a newline in a reply, ‖ for the beginning of another voicing in what is said,
and a number in brackets for a pause in seconds. How much white space there is does not count.
"""

from __future__ import annotations

import random
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from realtime_tts.text.directions import Voicing
from realtime_tts.text.languages import Language, language_for
from realtime_tts.text.pipeline import TextPipeline
from realtime_tts.text.tokenizer import Qwen2Tokenizer

TOKENIZER = Qwen2Tokenizer.from_folder(Path(__file__).parent / "data" / "tiny_tokenizer")
DATA = Path(__file__).parents[1] / "data" / "replies"
NAMES = sorted(path.stem for path in DATA.glob("*.tsv"))
AT_LEAST = 300
KNOWN_WRONG = 12
"""How many replies have a reason. May only shrink."""
_BEFORE_MARK = re.compile(r" +(?=[.,!?;:])")


class Reply(NamedTuple):
    language: str
    kind: str
    text: str
    said: str
    reason: str


@cache
def replies() -> list[Reply]:
    found, kind = [], ""
    for name in NAMES:
        for row in (DATA / f"{name}.tsv").read_text("utf-8").splitlines():
            if row.startswith("# ") and "\t" not in row:
                kind = row[2:]
                continue
            text, said, *reason = row.split("\t")
            text = text.replace("⏎", "\n")
            found.append(Reply(name, kind, text, said, reason[0] if reason else ""))
    return found


def spoken(language: str, parts: list[str]) -> str:
    """What is said by a checkpoint that can do all that is asked."""

    def language_of(voicing: Voicing) -> Language | None:
        return language_for(voicing.language or language)

    text = TextPipeline(
        TOKENIZER,
        language=language_for(language),
        able=lambda voicing: voicing,
        language_of=language_of,
    )
    for part in parts:
        text.feed(part, 0.0)
    text.finish(0.0)
    said, voicing = "", text.segments[0].voicing
    ends = [segment.start for segment in text.segments[1:]] + [len(text.spoken)]
    for segment, end in zip(text.segments, ends, strict=True):
        words = text.spoken[segment.start : end].strip()
        if segment.pause:
            said += f" [{segment.pause:g}]"
        if segment.voicing != voicing and said.strip() and words:
            said += " ‖"
        voicing = segment.voicing if words else voicing
        said += f" {words}"
    return " ".join(said.split())


def alike(said: str, wanted: str) -> bool:
    """A space before a mark, where something was left out, is not heard."""
    return _BEFORE_MARK.sub("", said) == _BEFORE_MARK.sub("", wanted)


@pytest.mark.parametrize(
    ("language", "kind"), dict.fromkeys((reply.language, reply.kind) for reply in replies())
)
def test_each_reply_is_said_as_it_should_be_heard(language: str, kind: str) -> None:
    for reply in replies():
        if (reply.language, reply.kind) == (language, kind) and not reply.reason:
            said = spoken(language, [reply.text])
            assert alike(said, reply.said), (reply.text, said)


@pytest.mark.parametrize("language", NAMES)
def test_a_reply_is_said_alike_however_it_is_cut(language: str) -> None:
    chance = random.Random(19)
    for reply in (each for each in replies() if each.language == language):
        whole, text = spoken(language, [reply.text]), reply.text
        for most in (1, 4, 9):
            parts, at = [], 0
            while at < len(text):
                size = chance.randint(1, most)
                parts.append(text[at : at + size])
                at += size
            assert spoken(language, parts) == whole, parts


def test_what_is_known_to_be_wrong_is_wrong_and_never_more() -> None:
    known = [reply for reply in replies() if reply.reason]
    mended = [
        reply.text for reply in known if alike(spoken(reply.language, [reply.text]), reply.said)
    ]
    assert not mended, "take the reason away from these replies"
    assert len(known) <= KNOWN_WRONG


def test_there_are_as_many_replies_as_we_say_and_none_twice() -> None:
    texts = [(reply.language, reply.text) for reply in replies()]
    assert len(texts) >= AT_LEAST
    assert len(texts) == len(set(texts))
