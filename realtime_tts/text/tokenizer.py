"""The Qwen2 text tokenizer, built from `vocab.json` and `merges.txt`.

Official checkpoints ship no `tokenizer.json`, so the pipeline is put together here: NFC, Qwen2's
pre-tokeniser, byte-level BPE. Control tokens are deliberately not part of it: whatever the user
writes, `<|im_start|>` included, is encoded as plain text. A prompt is built by encoding user text
on its own and putting control ids, which config.json names, around it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from realtime_tts.errors import CheckpointError
from realtime_tts.text.pretokens import SPLIT
from realtime_tts.text.stable_bpe import ALPHABET, ByteVocabulary

_CLASSES = ("Qwen2Tokenizer", "Qwen2TokenizerFast")
_IDS = 1 << 32


class Qwen2Tokenizer:
    """Turns text into ids. Immutable, so any number of sessions share one.

    `vocabulary` serves `IncrementalTokenizer`; `added_tokens` maps the checkpoint's control tokens
    to their ids, which `encode` never returns.
    """

    def __init__(
        self,
        vocabulary: Mapping[str, int],
        merges: list[tuple[str, str]],
        added_tokens: Mapping[str, int] | None = None,
    ) -> None:
        """Make a tokenizer of a `vocabulary` and `merges` that are consistent, in the byte
        alphabet.

        `from_folder` reads and checks them.
        """
        model = models.BPE(vocab=dict(vocabulary), merges=merges)
        self._tokenizer = Tokenizer(model)
        self._tokenizer.normalizer = normalizers.NFC()
        self._tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [SPLIT, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
        )
        used = [*ALPHABET, *(first + second for first, second in merges)]
        self.vocabulary = ByteVocabulary(model, vocabulary, used)
        self.largest_id = max(vocabulary[token] for token in used)
        """The largest id that `encode` can return."""
        self._sizes = {vocabulary[token]: len(token) for token in used}
        self.added_tokens: Mapping[str, int] = MappingProxyType(dict(added_tokens or {}))

    @classmethod
    def from_folder(cls, folder: str | Path) -> Qwen2Tokenizer:
        """Read `vocab.json`, `merges.txt` and, if there, `tokenizer_config.json` of a checkpoint.

        Raises CheckpointError if files are missing, unreadable or contradict each other.
        """
        folder = Path(folder)
        vocabulary = _read_vocabulary(folder / "vocab.json")
        merges = _read_merges(folder / "merges.txt", vocabulary)
        added = _read_added_tokens(folder / "tokenizer_config.json", vocabulary)
        return cls(vocabulary, merges, added)

    def encode(self, text: str) -> list[int]:
        """Return the ids of a whole text, none a control token. Lone surrogates are U+FFFD."""
        whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        return list(self._tokenizer.encode(whole, add_special_tokens=False).ids)

    def sizes(self, ids: Iterable[int]) -> list[int]:
        """Return the bytes of the text of each of these ids, which `encode` returned."""
        return list(map(self._sizes.__getitem__, ids))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise CheckpointError(
            f"{path} is missing: a Qwen2 tokenizer needs vocab.json and merges.txt"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise CheckpointError(f"{path} cannot be read as UTF-8 text: {error}") from error


def _read_json_object(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(_read(path))
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} is not valid JSON: {error}") from error
    if not isinstance(value, dict):
        raise CheckpointError(f"{path} must hold a JSON object, not {type(value).__name__}")
    return value


def _read_vocabulary(path: Path) -> dict[str, int]:
    vocabulary = _read_json_object(path)
    if not all(type(index) is int and 0 <= index < _IDS for index in vocabulary.values()):
        raise CheckpointError(
            f"{path} must map every token to an id, an integer from 0 to {_IDS - 1}"
        )
    try:
        "".join(vocabulary).encode()
    except UnicodeEncodeError as error:
        raise CheckpointError(f"{path} has a token that is no Unicode text: {error}") from None
    if len(set(vocabulary.values())) != len(vocabulary):
        raise CheckpointError(f"{path} gives one id to several tokens")
    missing = [char for char in ALPHABET if char not in vocabulary]
    if missing:
        raise CheckpointError(
            f"{path} lacks {len(missing)} of the 256 single bytes, {missing[0]!r} for one: "
            "it is not the vocabulary of a byte-level tokenizer"
        )
    return vocabulary


def _read_merges(path: Path, vocabulary: Mapping[str, int]) -> list[tuple[str, str]]:
    merges: list[tuple[str, str]] = []
    for number, line in enumerate(_read(path).split("\n"), start=1):
        if not line.strip() or (number == 1 and line.startswith("#version")):
            continue
        parts = line.rstrip("\r").split(" ")
        if len(parts) != 2:
            raise CheckpointError(f"{path}:{number}: expected two tokens, got {line!r}")
        first, second = parts
        unknown = [token for token in (first, second, first + second) if token not in vocabulary]
        if unknown:
            raise CheckpointError(
                f"{path}:{number}: {unknown[0]!r} is not in vocab.json: "
                "the two files are not of one checkpoint"
            )
        merges.append((first, second))
    return merges


def _read_added_tokens(path: Path, vocabulary: Mapping[str, int]) -> dict[str, int]:
    if not path.exists():
        return {}
    config = _read_json_object(path)
    kind = config.get("tokenizer_class", _CLASSES[0])
    if kind not in _CLASSES:
        raise CheckpointError(f"{path}: tokenizer_class {kind!r}; this server knows {_CLASSES[0]}")
    added: dict[str, int] = {}
    taken = {index: token for token, index in vocabulary.items()}
    try:
        entries = [
            (int(key), str(entry["content"]))
            for key, entry in config.get("added_tokens_decoder", {}).items()
        ]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{path}: added_tokens_decoder is malformed: {error!r}") from error
    for index, content in entries:
        if taken.get(index, content) != content:
            raise CheckpointError(
                f"{path}: id {index} is {content!r} there, but {taken[index]!r} in vocab.json"
            )
        added[content] = index
    return added


LoadTokenizer = Callable[[], Qwen2Tokenizer] | Mapping[str, Callable[[], Qwen2Tokenizer]]
"""Loads the tokenizer of all models, or of each by the name of its model."""
