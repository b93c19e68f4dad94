"""Ids of whole texts: those of the official package, and never a control id for user text."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from realtime_tts.errors import CheckpointError
from realtime_tts.text.stable_bpe import ALPHABET, ByteVocabulary
from realtime_tts.text.tokenizer import Qwen2Tokenizer

DATA = Path(__file__).parent / "data" / "tiny_tokenizer"
PARITY = json.loads((DATA / "parity_ids.json").read_text(encoding="utf-8"))
HUGGING_FACE = json.loads((DATA / "huggingface_ids.json").read_text(encoding="utf-8"))
CONFIG = json.loads((DATA / "tokenizer_config.json").read_text(encoding="utf-8"))
ADDED_TOKENS = [entry["content"] for entry in CONFIG["added_tokens_decoder"].values()]


def text_of(tokenizer: Qwen2Tokenizer, ids: list[int]) -> str:
    tokens = {index: token for token, index in tokenizer.vocabulary.ids.items()}
    data = bytes(ALPHABET.index(char) for index in ids for char in tokens[index])
    return data.decode()


@pytest.mark.parametrize("case", PARITY["cases"], ids=lambda case: str(case["case"]))
def test_text_alone_spliced_into_the_template_gives_the_official_ids(
    tokenizer: Qwen2Tokenizer, case: dict[str, object]
) -> None:
    control = PARITY["control_ids"]
    start, end = control["im_start_token_id"], control["im_end_token_id"]
    opening = tokenizer.encode("assistant\n")
    newline = tokenizer.encode("\n")
    assert opening == [control["assistant_token_id"], *newline]
    text = tokenizer.encode(str(case["text"]))
    assert [start, *opening, *text, end, *newline, start, *opening] == case["input_ids"]
    if "instruct" in case:
        user = tokenizer.encode("user\n") + tokenizer.encode(str(case["instruct"]))
        assert [start, *user, end, *newline] == case["instruct_ids"]


@pytest.mark.parametrize("case", HUGGING_FACE, ids=lambda case: ascii(case["text"])[:30])
def test_ids_are_those_of_transformers_when_it_splits_special_tokens(
    tokenizer: Qwen2Tokenizer, case: dict[str, object]
) -> None:
    assert tokenizer.encode(str(case["text"])) == case["ids"]


@pytest.mark.parametrize("marker", ADDED_TOKENS)
@pytest.mark.parametrize("template", ["{}", "a{}b", "say {} now", "{}{}", "\n{}"])
def test_control_markers_in_user_text_are_plain_text(
    tokenizer: Qwen2Tokenizer, marker: str, template: str
) -> None:
    text = template.format(marker, marker)
    ids = tokenizer.encode(text)
    assert max(ids) < min(tokenizer.added_tokens.values())
    assert text_of(tokenizer, ids) == text


def test_the_control_tokens_of_the_checkpoint_are_known_by_name(tokenizer: Qwen2Tokenizer) -> None:
    control = PARITY["control_ids"]
    assert tokenizer.added_tokens["<|im_start|>"] == control["im_start_token_id"]
    assert tokenizer.added_tokens["<|im_end|>"] == control["im_end_token_id"]
    assert set(tokenizer.added_tokens) == set(ADDED_TOKENS)


def test_lone_surrogates_become_replacement_characters(tokenizer: Qwen2Tokenizer) -> None:
    assert tokenizer.encode("a\ud83db\ude00") == tokenizer.encode("a\ufffdb\ufffd")
    assert tokenizer.encode("\ud83d\ude00") == tokenizer.encode("\U0001f600")


def test_the_prefix_index_copies_no_token(tokenizer: Qwen2Tokenizer) -> None:
    ids = {"ab": 256} | {char: index for index, char in enumerate(ALPHABET)}
    keys = {id(token) for token in ids}
    vocabulary = ByteVocabulary(tokenizer.vocabulary._model, ids, ["".join("ab"), *ALPHABET])
    assert {id(token) for token in vocabulary.tokens} == keys


def edit_json(name: str, change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        value = json.loads((folder / name).read_text(encoding="utf-8"))
        change(value)
        (folder / name).write_text(json.dumps(value), encoding="utf-8")

    return edit


def write(name: str, data: bytes) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        (folder / name).write_bytes(data)

    return edit


def append_merge(line: str) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        with (folder / "merges.txt").open("a", encoding="utf-8") as file:
            file.write(line + "\n")

    return edit


BROKEN = {
    "no vocabulary": (lambda f: (f / "vocab.json").unlink(), "vocab.json is missing"),
    "no merges": (lambda f: (f / "merges.txt").unlink(), "merges.txt is missing"),
    "not JSON": (write("vocab.json", b"{"), "not valid JSON"),
    "nested too deep": (write("vocab.json", b"[" * 100_000), "not valid JSON"),
    "not an object": (write("vocab.json", b"[]"), "must hold a JSON object, not list"),
    "not UTF-8": (write("merges.txt", b"\xff\xfe"), "cannot be read as UTF-8"),
    "id is text": (edit_json("vocab.json", lambda v: v.update(a="1")), "an integer from 0"),
    "id is a truth value": (edit_json("vocab.json", lambda v: v.update(a=True)), "an integer"),
    "negative id": (edit_json("vocab.json", lambda v: v.update(a=-1)), "an integer from 0"),
    "id too large": (edit_json("vocab.json", lambda v: v.update(a=1 << 32)), "0 to 4294967295"),
    "half a character": (
        edit_json("vocab.json", lambda v: v.update({"\ud83d": 600})),
        "no Unicode text",
    ),
    "one id twice": (edit_json("vocab.json", lambda v: v.update(a=v["b"])), "several tokens"),
    "a byte is missing": (edit_json("vocab.json", lambda v: v.pop("a")), "single bytes, 'a'"),
    "unknown merge": (append_merge("zzz qqq"), "'zzz' is not in vocab.json"),
    "three parts": (append_merge("a b c"), "expected two tokens"),
    "marker takes an id": (
        edit_json(
            "tokenizer_config.json",
            lambda c: c["added_tokens_decoder"].update({"3": {"content": "<x>"}}),
        ),
        "id 3 is '<x>' there",
    ),
    "markers malformed": (
        edit_json("tokenizer_config.json", lambda c: c.update(added_tokens_decoder={"x": 1})),
        "malformed",
    ),
    "other tokenizer": (
        edit_json("tokenizer_config.json", lambda c: c.update(tokenizer_class="LlamaTokenizer")),
        "LlamaTokenizer",
    ),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_checkpoint_is_refused_with_its_fault(
    tmp_path: Path, tokenizer_folder: Path, fault: str
) -> None:
    break_it, message = BROKEN[fault]
    folder = tmp_path / "checkpoint"
    shutil.copytree(tokenizer_folder, folder)
    break_it(folder)
    with pytest.raises(CheckpointError, match=message):
        Qwen2Tokenizer.from_folder(folder)


def test_the_configuration_file_may_be_missing(tmp_path: Path, tokenizer_folder: Path) -> None:
    for name in ("vocab.json", "merges.txt"):
        shutil.copy(tokenizer_folder / name, tmp_path)
    tokenizer = Qwen2Tokenizer.from_folder(tmp_path)
    assert tokenizer.added_tokens == {}
    assert tokenizer.encode("Hello there.") == HUGGING_FACE[0]["ids"]


def test_trained_tokenizers_of_the_tests_round_trip(
    trained: Callable[[random.Random, str, int, int], Qwen2Tokenizer],
) -> None:
    made = trained(random.Random(1), "q你", 12, 8)
    assert len(made.vocabulary.tokens) > 260
    assert text_of(made, made.encode("q你你q")) == "q你你q"
