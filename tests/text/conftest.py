"""A small tokenizer of the official kind, and texts that make streaming hard."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from realtime_tts.text.pretokens import split
from realtime_tts.text.stable_bpe import ALPHABET, to_alphabet
from realtime_tts.text.tokenizer import Qwen2Tokenizer

DATA = Path(__file__).parent / "data" / "tiny_tokenizer"


@pytest.fixture(scope="session")
def tokenizer_folder() -> Path:
    return DATA


@pytest.fixture(scope="session")
def tokenizer() -> Qwen2Tokenizer:
    return Qwen2Tokenizer.from_folder(DATA)


@pytest.fixture(scope="session")
def trained() -> Callable[..., Qwen2Tokenizer]:
    """Makes tokenizers with up to `merges` random merges, learned from random text.

    As in real vocabularies, every token is part of a valid text.
    """

    def train(
        rng: random.Random, letters: str, merges: int, longest: int, shuffled: bool = False
    ) -> Qwen2Tokenizer:
        ids = {char: index for index, char in enumerate(ALPHABET)}
        learned: list[tuple[str, str]] = []
        lines = ("".join(rng.choices(letters, k=12)) for _ in range(4))
        corpus = [list(to_alphabet(pretoken)) for line in lines for pretoken in split(line)]
        for _ in range(merges):
            pairs = [
                (first, second)
                for word in corpus
                for first, second in zip(word, word[1:], strict=False)
                if len(first + second) <= longest
            ]
            if not pairs:
                break
            pair = rng.choice(pairs)
            learned.append(pair)
            ids.setdefault("".join(pair), len(ids))
            for word in corpus:
                _merge(word, pair)
        learned = list(dict.fromkeys(learned))
        if shuffled:
            rng.shuffle(learned)
        return Qwen2Tokenizer(ids, learned)

    return train


def _merge(word: list[str], pair: tuple[str, str]) -> None:
    index = 0
    while index + 1 < len(word):
        if (word[index], word[index + 1]) == pair:
            word[index : index + 2] = ["".join(pair)]
        index += 1
