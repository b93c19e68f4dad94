"""Ids released from inside an open pre-token: certain, as early as possible, at a bounded cost."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable

import pytest

from realtime_tts.text import stable_bpe
from realtime_tts.text.stable_bpe import ALPHABET, OpenPreToken, to_alphabet
from realtime_tts.text.tokenizer import Qwen2Tokenizer

Train = Callable[..., Qwen2Tokenizer]

# Letters that no mark can change, of 1, 2 and 3 bytes, sharing first bytes or not.
ALPHABETS = [("qQ", 5, 5), ("qß", 6, 6), ("你好", 9, 4), ("q你", 8, 6), ("你佡好", 9, 4)]


def continuations(letters: str, longest: int) -> list[str]:
    return [
        "".join(text)
        for length in range(longest + 1)
        for text in itertools.product(letters, repeat=length)
    ]


@pytest.mark.parametrize(("letters", "longest_token", "longest_continuation"), ALPHABETS)
def test_an_id_is_released_exactly_when_no_continuation_changes_it(
    trained: Train, letters: str, longest_token: int, longest_continuation: int
) -> None:
    follow = continuations(letters, longest_continuation)
    waits = 0
    for seed in range(40):
        rng = random.Random(seed)
        tokenizer = trained(rng, letters, rng.randint(1, 14), longest_token)
        open_pretoken, released, text = OpenPreToken(tokenizer.vocabulary), list[int](), ""
        for char in rng.choices(letters, k=8):
            text += char
            released += open_pretoken.feed(to_alphabet(char))
            now = tokenizer.encode(text)
            later = [tokenizer.encode(text + more) for more in follow]
            assert all(ids[: len(released)] == released for ids in later), (seed, text)
            if len(now) > len(released):
                waits += 1
                next_ids = {tuple(ids[len(released) : len(released) + 1]) for ids in later}
                assert len(next_ids) > 1, f"seed {seed}: {text!r} holds an id without need"
    assert waits > 40


@pytest.mark.parametrize("letters", ["qQ", "qß", "你好", "q你"])
def test_released_ids_are_right_for_merges_in_any_order(trained: Train, letters: str) -> None:
    for seed in range(150):
        rng = random.Random(seed)
        tokenizer = trained(rng, letters, 12, 9, shuffled=True)
        text = "".join(rng.choices(letters, k=14))
        open_pretoken, released, done = OpenPreToken(tokenizer.vocabulary), list[int](), 0
        while done < len(text):
            size = rng.choice((1, 1, 2, 9))
            released += open_pretoken.feed(to_alphabet(text[done : done + size]))
            done += size
            assert tokenizer.encode(text)[: len(released)] == released, (seed, text)
        assert released + open_pretoken.close("") == tokenizer.encode(text), (seed, text)


def test_one_token_made_by_several_merges_is_understood() -> None:
    ids = {char: index for index, char in enumerate(ALPHABET)} | {"qQ": 256, "Qx": 257, "qQx": 258}
    merges = [("q", "Q"), ("Q", "x"), ("q", "Qx"), ("qQ", "x")]
    for order in itertools.permutations(merges):
        tokenizer = Qwen2Tokenizer(ids, list(order))
        for text in continuations("qQx", 5)[1:]:
            open_pretoken, released = OpenPreToken(tokenizer.vocabulary), list[int]()
            for char in text:
                released += open_pretoken.feed(char)
            assert released + open_pretoken.close("") == tokenizer.encode(text), (order, text)


def steps_for(tokenizer: Qwen2Tokenizer, text: str, size: int = 1) -> int:
    open_pretoken = OpenPreToken(tokenizer.vocabulary)
    for start in range(0, len(text), size):
        open_pretoken.feed(to_alphabet(text[start : start + size]))
    return open_pretoken.steps


RUNS = [
    "a",
    "ab",
    "aab",
    "she",
    "我是一个特别善于观察别人情绪的人",
    "你好",
    "the",
    "ä",
    "!",
    "。你好",
]


@pytest.mark.parametrize("unit", RUNS)
def test_work_grows_with_the_length_of_a_run_not_with_its_square(
    tokenizer: Qwen2Tokenizer, unit: str
) -> None:
    short, long = ((unit * 8000)[:length] for length in (1000, 8000))
    assert steps_for(tokenizer, long) <= 8 * steps_for(tokenizer, short) + 1000
    assert steps_for(tokenizer, long) <= 100 * len(to_alphabet(long))


def test_doubt_reaches_back_no_further_than_a_chain_of_merges() -> None:
    # Each pair of neighbours merges, the later the sooner: one more letter turns them all over.
    letters = "bqQzZvVkK"
    ids = {char: index for index, char in enumerate(ALPHABET)}
    merges = [(first, second) for first, second in zip(letters, letters[1:], strict=False)][::-1]
    ids |= {"".join(pair): 256 + index for index, pair in enumerate(merges)}
    tokenizer = Qwen2Tokenizer(ids, merges)
    open_pretoken, held = OpenPreToken(tokenizer.vocabulary), list[int]()
    for char in letters * 500:
        open_pretoken.feed(char)
        held.append(open_pretoken.held_characters)
    assert max(held) == len(letters) - 1
    assert open_pretoken.steps < 40 * len(held)


@pytest.mark.parametrize("letters", ["qQ", "你好", "q你"])
def test_a_long_run_at_once_releases_what_single_characters_release(
    trained: Train, letters: str
) -> None:
    for seed in range(100):
        rng = random.Random(seed)
        tokenizer = trained(rng, letters, 10, 6, shuffled=bool(seed % 2))
        text = "".join(rng.choices(letters, k=40))
        whole, single = OpenPreToken(tokenizer.vocabulary), OpenPreToken(tokenizer.vocabulary)
        one_by_one = [index for char in text for index in single.feed(to_alphabet(char))]
        at_once = whole.feed(to_alphabet(text))
        # One by one may be less sure (a refuted token stays refuted), never more.
        assert at_once == one_by_one, (seed, text)
        assert whole.close("") == single.close("")


def test_a_long_run_at_once_costs_no_more_than_its_end(tokenizer: Qwen2Tokenizer) -> None:
    text = "我是一个特别善于观察别人情绪的人" * 500
    assert steps_for(tokenizer, text, size=len(text)) < 20 * 2 * tokenizer.vocabulary.longest


def test_the_cache_of_words_stays_small_and_takes_no_long_runs(
    trained: Train, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stable_bpe, "_MOST_WORDS", 3)
    vocabulary = trained(random.Random(0), "qQ", 8, 5).vocabulary
    words = ["q" * length for length in range(1, 40)]
    alone = [vocabulary.encode(to_alphabet(word)) for word in words]
    for _ in range(2):
        assert vocabulary.encode_whole(words) == list(itertools.chain.from_iterable(alone))
        kept = vars(vocabulary)["_words"]
        assert len(kept) <= 3 and max(map(len, kept)) <= 24
