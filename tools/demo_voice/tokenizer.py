"""Trains the demo voice's text tokenizer: byte-level BPE in the files of Qwen2.

    python -m tools.demo_voice.tokenizer --sentences build/demo_voice/sentences.txt \
        --out build/demo_voice/tokenizer --entries 2048

The sentences show rare words far more often than people use them, so words by their true frequency
are added to them. It cuts text as `realtime_tts.text.tokenizer` does. Control tokens follow the BPE
entries in a fixed order, so that with 2048 entries `<|endoftext|>` is 2048 and `<tts_text_eod>`
2055.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

from realtime_tts.text.pretokens import SPLIT
from realtime_tts.text.tokenizer import Qwen2Tokenizer
from tools.demo_voice.lexicon import Drawer, frequent_words

CONTROL_TOKENS = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|audio_start|>",
    "<|audio_end|>",
    "<tts_pad>",
    "<tts_text_bos>",
    "<tts_text_eod>",
    "<tts_text_bos_single>",
    "<|audio_pad|>",
)
_SAMPLE = 300_000
_DRAWN_WORDS = 3  # per sentence of the sample
_RANKED_WORDS = 20_000
_RANK_OFFSET = 50  # the very first words need no help
# Prompts say "assistant\n", which must be two tokens; so often in the sample, it surely is.
_PROMPT_WORD, _PROMPT_SHARE = "assistant\n", 0.005


def sample(sentences: Sequence[str], ranked: Sequence[str], count: int, seed: int) -> list[str]:
    """At most `count` of the sentences, as many lines of frequent words, the word of every prompt.

    `ranked`: words, the most frequent first; by Zipf's law, their frequency falls as their rank.
    """
    rng = Random(seed)
    chosen = rng.sample(sentences, min(count, len(sentences)))
    plain = [word for word in ranked if word.isascii() and word.isalpha() and word != "i"]
    drawer = Drawer({word: 1 / (rank + _RANK_OFFSET) for rank, word in enumerate(plain)})
    drawn = [
        " " + " ".join(drawer.draw(rng) for _ in range(_DRAWN_WORDS)) for _ in range(len(chosen))
    ]
    return chosen + drawn + [_PROMPT_WORD] * (2 + int(len(chosen) * _PROMPT_SHARE))


def train(texts: Sequence[str], entries: int) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """(vocabulary, merges) of `entries` tokens, the 256 bytes among them."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([SPLIT, byte_level])
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=entries, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(_in_turn(texts), trainer)
    model = json.loads(tokenizer.to_str())["model"]
    return model["vocab"], [(first, second) for first, second in model["merges"]]


def _in_turn(texts: Sequence[str]) -> Iterator[list[str]]:
    for start in range(0, len(texts), 1000):
        yield list(texts[start : start + 1000])


def write(folder: Path, vocabulary: dict[str, int], merges: Sequence[tuple[str, str]]) -> None:
    """The three files of a Qwen2 tokenizer, each replaced as a whole."""
    folder.mkdir(parents=True, exist_ok=True)
    ordered = dict(sorted(vocabulary.items(), key=lambda item: item[1]))
    lines = ["#version: 0.2", *(f"{first} {second}" for first, second in merges)]
    config = json.dumps(_config(len(vocabulary)), indent=2, ensure_ascii=False)
    for name, text in (
        ("vocab.json", json.dumps(ordered, ensure_ascii=False)),
        ("merges.txt", "\n".join(lines) + "\n"),
        ("tokenizer_config.json", config + "\n"),
    ):
        unfinished = folder / f"{name}.unfinished"
        unfinished.write_text(text, encoding="utf-8")
        os.replace(unfinished, folder / name)


def _config(first_id: int) -> dict[str, object]:
    flags = {"lstrip": False, "normalized": False, "rstrip": False, "single_word": False}
    added = {
        str(first_id + place): {"content": content, **flags, "special": True}
        for place, content in enumerate(CONTROL_TOKENS)
    }
    return {
        "add_bos_token": False,
        "add_prefix_space": False,
        "added_tokens_decoder": added,
        "additional_special_tokens": list(CONTROL_TOKENS[1:]),
        "bos_token": None,
        "clean_up_tokenization_spaces": False,
        "eos_token": "<|im_end|>",
        "errors": "replace",
        "model_max_length": 32768,
        "pad_token": "<|endoftext|>",
        "split_special_tokens": False,
        "tokenizer_class": "Qwen2Tokenizer",
        "unk_token": None,
    }


def report(folder: Path, texts: Sequence[str]) -> str:
    """Characters per token, and what some texts become. Asserts what prompts rely on."""
    tokenizer = Qwen2Tokenizer.from_folder(folder)
    tokens = {index: token for token, index in tokenizer.vocabulary.ids.items()}
    prompt = tokenizer.encode(_PROMPT_WORD)
    assert [tokens[index] for index in prompt] == ["assistant", "\u010a"], prompt
    ratio = sum(map(len, texts)) / sum(len(tokenizer.encode(text)) for text in texts)
    shown = "Good morning! I'm your assistant; wouldn't it cost $12.50, beautiful neighbors?"
    cut = "|".join(tokens[index] for index in tokenizer.encode(shown)).replace("\u0120", " ")
    return f"{ratio:.2f} characters per token; 'assistant' is {prompt[0]}\n{cut}"


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="Train the demo voice's text tokenizer.")
    parser.add_argument("--sentences", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--entries", type=int, default=2048)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    sentences = arguments.sentences.read_text(encoding="utf-8").splitlines()
    texts = sample(sentences, frequent_words(_RANKED_WORDS), _SAMPLE, arguments.seed)
    vocabulary, merges = train(texts, arguments.entries)
    write(arguments.out, vocabulary, merges)
    sys.stdout.write(report(arguments.out, sentences[:20_000]) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
