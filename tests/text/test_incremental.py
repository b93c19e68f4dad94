"""However a text is cut, the ids are those of the whole, and none waits longer than it must."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from realtime_tts.text.incremental import IncrementalTokenizer
from realtime_tts.text.tokenizer import Qwen2Tokenizer
from tests.properties import examples

Train = Callable[..., Qwen2Tokenizer]

DATA = Path(__file__).parent / "data" / "tiny_tokenizer"
TOKENIZER = Qwen2Tokenizer.from_folder(DATA)
PARITY = json.loads((DATA / "parity_ids.json").read_text(encoding="utf-8"))
HUGGING_FACE = json.loads((DATA / "huggingface_ids.json").read_text(encoding="utf-8"))
TEXTS = sorted({c["text"] for c in PARITY["cases"]} | {c["text"] for c in HUGGING_FACE})

FRAGMENTS = [
    *["She", " said", " would", "could", " brown fox", "the", "ing", "Q", "é", "e", "ß"],
    *[
        "你好",
        "，",
        "我是一个特别善于观察别人情绪的人",
        "其实",
        "。",
        "か",
        "ありがとう",
        "한국어",
        "가",
    ],
    *["สวัสดี", "ก", "\u0e48", "\u0e38", "नमस्ते", "مرحبا", "שָׁלוֹם"],
    *["\u0301", "\u0323", "\u0338", "\u3099", "\u11a8", "ᄀ", "ᅡ", "\u0344", "\u212b"],
    *["🙂", "👩\u200d🚀", "🇩🇪", "1️⃣", "\u200d", "\ufe0f"],
    *[" ", "  ", "\t", "\n", "\r\n", "\n\n", "\u00a0", "\u3000", " \n "],
    *["0", "42", "½", "3.14", "-5", "$9.99"],
    *["'", "'s", "'LL", "'Ve", "n't", "’s", "'ſ", "!", "...", "?!", "-", "_", "=", "(", '"'],
    *["<|im_start|>", "<|im_end|>", "<tool_call>", "<|", "|>"],
]
texts = st.lists(
    st.one_of(st.sampled_from(FRAGMENTS), st.text(st.characters(exclude_categories=["Cs"]))),
    max_size=12,
).map("".join)


def feed_in_pieces(text: str, sizes: list[int]) -> list[int]:
    incremental = IncrementalTokenizer(TOKENIZER)
    released: list[int] = []
    done, turn = 0, 0
    while done < len(text):
        size = sizes[turn % len(sizes)]
        released += incremental.feed(text[done : done + size])
        done += size
        turn += 1
    return released + incremental.flush()


@examples(500)
@given(texts, st.lists(st.integers(1, 7), min_size=1, max_size=5))
@example("e" + "\u0301" * 6 + "\u0323", [1])
def test_any_split_of_any_text_gives_the_ids_of_the_whole(text: str, sizes: list[int]) -> None:
    assert feed_in_pieces(text, sizes) == TOKENIZER.encode(text)


@given(texts, texts)
def test_released_ids_stay_whatever_follows(text: str, more: str) -> None:
    released = IncrementalTokenizer(TOKENIZER).feed(text)
    assert TOKENIZER.encode(text + more)[: len(released)] == released


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: ascii(text)[:30])
@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_the_official_ids_come_out_of_deltas(text: str, size: int) -> None:
    assert feed_in_pieces(text, [size]) == TOKENIZER.encode(text)


@pytest.mark.parametrize("marker", sorted(TOKENIZER.added_tokens))
def test_control_markers_split_over_deltas_are_plain_text(marker: str) -> None:
    first_control = min(TOKENIZER.added_tokens.values())
    for cut in range(1, len(marker)):
        incremental = IncrementalTokenizer(TOKENIZER)
        ids = incremental.feed("a" + marker[:cut]) + incremental.feed(marker[cut:] + "b")
        ids += incremental.flush()
        assert ids == TOKENIZER.encode(f"a{marker}b")
        assert max(ids) < first_control


@pytest.mark.parametrize(
    ("deltas", "released"),
    [
        (["She", " said"], "She"),  # a word ends when the next begins
        (["She", " "], "She"),  # or white space comes
        (["4", "2"], "42"),  # digits are ids of their own
        (["(", "5"], "(5"),  # a digit ends what was before it
        (["She", "'s"], "She'"),  # no token begins with ', and the s may still take a cedilla
        (["She", "'s", " "], "She's"),
        (["a", "\n"], "a"),
        (["a", "\n", "b"], "a\n"),  # it is a letter, whatever mark it takes
        (["!", "\n", " "], "!\n"),
        (["你"], "你"),  # no token begins with it and goes on
        (["你好"], "你好"),
        (["a b", "\n"], "a b"),
    ],
)
def test_an_id_is_released_as_soon_as_it_is_certain(deltas: list[str], released: str) -> None:
    incremental = IncrementalTokenizer(TOKENIZER)
    ids = [index for delta in deltas for index in incremental.feed(delta)]
    assert ids == TOKENIZER.encode(released)


@pytest.mark.parametrize("letters", ["qe !", "q5 !", "'sre", "qe5!"])
def test_an_id_waits_only_if_a_continuation_changes_it(letters: str, trained: Train) -> None:
    # White space at the end is left out: a run of it waits for its end.
    follow = ["".join(t) for n in range(4) for t in itertools.product(letters + "\u0301", repeat=n)]
    waits = 0
    for seed in range(40):
        rng = random.Random(seed)
        tokenizer = trained(rng, letters, rng.randint(1, 10), 4)
        incremental, released, text = IncrementalTokenizer(tokenizer), list[int](), ""
        for char in rng.choices(letters, k=6):
            text += char
            released += incremental.feed(char)
            if text[-1] != " " and len(tokenizer.encode(text)) > len(released):
                waits += 1
                changed = {tuple(tokenizer.encode(text + m)[: len(released) + 1]) for m in follow}
                assert len(changed) > 1, f"seed {seed}: {text!r} holds an id without need"
    assert waits > 30


def test_a_run_without_spaces_is_released_long_before_its_end() -> None:
    incremental = IncrementalTokenizer(TOKENIZER)
    ids = incremental.feed("今天我们去公园散步吧其实我真的有发现" * 3)
    assert len(ids) > 0.8 * len(TOKENIZER.encode("今天我们去公园散步吧其实我真的有发现" * 3))
    assert incremental.held_characters < 18


def test_flush_ends_a_segment_and_later_text_starts_afresh() -> None:
    incremental = IncrementalTokenizer(TOKENIZER)
    ids = incremental.feed("She sa") + incremental.flush()
    assert ids == TOKENIZER.encode("She sa")
    assert incremental.flush() == []
    assert incremental.held_characters == 0
    ids = incremental.feed("\u0301id.") + incremental.flush()
    assert ids == TOKENIZER.encode("\u0301id.")


@given(texts)
def test_held_characters_are_those_that_have_no_ids(text: str) -> None:
    incremental = IncrementalTokenizer(TOKENIZER)
    incremental.feed(text)
    held = incremental.held_characters
    assert 0 <= held <= len(text)
    assert bool(incremental.flush()) == bool(held)
    assert incremental.held_characters == 0


@pytest.mark.parametrize("unit", ["a", "的", "かé", "\u0301", " ", "\n", "!", "0", "e\u0301"])
def test_eight_thousand_characters_one_by_one_take_bounded_steps(unit: str) -> None:
    text = (unit * 8000)[:8000]
    incremental = IncrementalTokenizer(TOKENIZER)
    ids = [index for char in text for index in incremental.feed(char)] + incremental.flush()
    assert ids == TOKENIZER.encode(text)
    assert incremental.steps <= 100 * len(text)
