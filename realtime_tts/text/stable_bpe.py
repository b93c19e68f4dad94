"""Which ids of an unfinished pre-token are already certain.

A pre-token that is still open may be long: Chinese, Japanese and Thai have no spaces. Waiting for
its end would starve the model, so ids are released from inside it as soon as they are certain.

Byte-pair encoding merges, again and again, the adjacent pair with the lowest rank (the leftmost of
equals), and never undoes a merge. Write E(s) for the ids of a byte string s. Two facts follow.

1. *Restriction.* If no token of E(s) crosses position p, then E(s) = E(s[:p]) + E(s[p:]). No merge
   crossed p; among the merges left of p each was the best of all pairs, so the best of the left
   ones; hence encoding s[:p] alone makes the same choices in the same order and stops at the same
   place. The same holds on the right.
2. *Pairs.* A sequence of tokens is E of its own text if, and only if, each adjacent pair is. One
   way is restriction. The other: consider the first merge that crosses a boundary of the
   sequence. Until then both neighbours evolved as they would in their pair alone, and this merge,
   best of all, is best there; so it would cross in the pair, too.

Let w be the open bytes. Whatever text follows, the token that covers the end of w starts at some p
with w[p:] a proper prefix of a token t, or a boundary falls on p = len(w). By fact 1 the final ids
begin with E(w[:p]). So the ids that E(w[:p]) share over all possible p are certain, and nothing
else is: each p that passes both tests below is reached by a continuation, w[:p] + t, whose
encoding is E(w[:p]) + [t] by fact 2.

- After w[p:], t goes on with a byte that may follow w: not with a continuation byte of UTF-8, for w
  ends on a whole character, nor with a byte that the caller knows to be impossible.
- (last id of E(w[:p]), t) is a valid pair.

Only the next byte is looked at, and at most `_LOOKS` tokens; where a later byte of t could not
follow, an id may wait longer than it must. None is ever released too early.

E of all prefixes is a tree: by fact 1, E(w[:i]) = E(w[:q]) + [token of w[q:i]] for one q, the
parent of i, which fact 2 finds. The certain ids lead from the root to the lowest common ancestor
of the possible p; that ancestor becomes the new root and the bytes before it are forgotten.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import chain

from tokenizers import models

_LOOKS = 32
"""Tokens tried to refute one possible boundary before it counts as possible. Bounds the work per
character; a boundary kept in doubt only means that ids are released a little later."""


_REMEMBERED = 24
"""The most characters of a pre-token whose ids are cached: words recur, long runs do not."""
_MOST_WORDS = 1 << 14


def byte_alphabet() -> list[str]:
    """Return the printable characters by which byte-level vocabularies write the 256 bytes."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    alphabet = [""] * 256
    for byte in printable:
        alphabet[byte] = chr(byte)
    for shift, byte in enumerate(byte for byte in range(256) if not alphabet[byte]):
        alphabet[byte] = chr(0x100 + shift)
    return alphabet


ALPHABET = byte_alphabet()
CONTINUATION_BYTES = frozenset(ALPHABET[0x80:0xC0])
_TO_ALPHABET = {byte: char for byte, char in enumerate(ALPHABET) if ord(char) != byte}


def to_alphabet(text: str) -> str:
    """Return the UTF-8 bytes of `text`, one character of the byte alphabet each."""
    return text.encode().decode("latin-1").translate(_TO_ALPHABET)


class _Words(dict[str, list[int]]):
    """Caches the ids of recent words. A known one is looked up without a call in Python."""

    def __init__(self, model: models.BPE) -> None:
        self._model = model

    def __missing__(self, text: str) -> list[int]:
        ids = _ids(self._model, to_alphabet(text))
        if len(text) <= _REMEMBERED:
            if len(self) >= _MOST_WORDS:
                self.clear()
            self[text] = ids
        return ids


def _ids(model: models.BPE, text: str) -> list[int]:
    return [token.id for token in model.tokenize(text)]


class ByteVocabulary:
    """The tokens of a byte-level BPE model, sorted, so that those with a given prefix are adjacent.

    Texts and tokens are strings of the byte alphabet.
    """

    def __init__(self, model: models.BPE, ids: Mapping[str, int], used: Iterable[str]) -> None:
        """Prepare a vocabulary.

        `used` are the tokens that encoding can produce: the bytes and what merges make.
        """
        wanted = set(used)
        self.tokens = sorted(token for token in ids if token in wanted)
        self.ids = ids
        self.longest = max(map(len, self.tokens))
        self._model = model
        self.starting = {
            char: (bisect_left(self.tokens, char), bisect_left(self.tokens, chr(ord(char) + 1)))
            for char in ALPHABET
        }
        """By first character, the range (low, high) of tokens[low:high] that start with it."""
        self.is_pair = lru_cache(maxsize=1 << 15)(self._is_pair)
        self._words = _Words(model)

    def encode_whole(self, pretokens: Iterable[str]) -> list[int]:
        """Return the ids of pre-tokens of plain text; those of words are cached."""
        return list(chain.from_iterable(map(self._words.__getitem__, pretokens)))

    def encode(self, text: str) -> list[int]:
        """Return the ids of one pre-token, or of the rest of one after a certain boundary."""
        return _ids(self._model, text) if text else []

    def split(self, text: str) -> list[str]:
        """Return the tokens of one pre-token."""
        return [token.value for token in self._model.tokenize(text)]

    def find(self, prefix: str, low: int, high: int) -> int | None:
        """Return the index of the first of tokens[low:high] with this prefix, if any."""
        low = bisect_left(self.tokens, prefix, low, high)
        return low if low < high and self.tokens[low].startswith(prefix) else None

    def _is_pair(self, first: str, second: str) -> bool:
        """Return whether both are the encoding of their text. `first` may be empty."""
        return self.split(first + second) == ([first, second] if first else [second])


class _Start:
    """A position where a token that reaches past the end of the open bytes may begin."""

    __slots__ = ("at", "high", "low")

    def __init__(self, at: int, low: int, high: int) -> None:
        self.at = at
        self.low = low  # the first token that starts with the bytes from `at` to the end and is
        self.high = high  # not refuted; all such tokens are in tokens[low:high]


class OpenPreToken:
    """The bytes of an open pre-token that follow the last certain boundary.

    The work per byte is bounded by the longest token and `_LOOKS`, not by the length of the text.
    """

    def __init__(self, vocabulary: ByteVocabulary) -> None:
        self.steps = 0  # starts narrowed, tokens tried, parents climbed: what a test counts
        self._vocabulary = vocabulary
        self._reset()

    def _reset(self) -> None:
        self._bytes = ""
        self._parents = [0]  # parent of each position in the tree of encodings
        self._starts: list[_Start] = []
        self._impossible = CONTINUATION_BYTES

    @property
    def held_characters(self) -> int:
        """Characters of which at least one byte has not become part of an id."""
        begun = self._bytes[:1] in CONTINUATION_BYTES
        return begun + sum(byte not in CONTINUATION_BYTES for byte in self._bytes)

    def feed(self, text: str, impossible: frozenset[str] = CONTINUATION_BYTES) -> list[int]:
        """Add whole characters of the pre-token, in the byte alphabet; return certain ids.

        `impossible` are bytes that cannot follow in this pre-token, continuation bytes included.
        """
        self._bytes += text
        self._impossible = impossible
        if not self._bytes:
            return []
        if len(self._parents) == 1:
            if self._may_be_one_token():
                return []  # the usual case: an open word
            if len(self._bytes) > 2 * self._vocabulary.longest:
                return self._feed_long_run()
        return self._grow_and_release()

    def close(self, text: str) -> list[int]:
        """Add the last characters; return all ids that are left, and start afresh."""
        rest = self._bytes + text
        self._reset()
        return self._vocabulary.encode(rest)

    def _grow_and_release(self) -> list[int]:
        for position in range(len(self._parents) - 1, len(self._bytes)):
            self._grow(position)
        return self._release(self._common_ancestor())

    def _feed_long_run(self) -> list[int]:
        """Feed many bytes at once: guess a root near the end, and prove it.

        The root is a boundary of E(w) at least one longest token before the end. If what follows
        it has a first id that is certain, then all possible encodings share the pair around the
        root with E(w), where it is valid; by fact 2 the root is a boundary of them all.
        """
        whole = self._bytes
        tokens = self._vocabulary.split(whole)
        root = len(whole)
        while tokens and len(whole) - root < self._vocabulary.longest:
            root -= len(tokens.pop())
        self._bytes = whole[root:]
        ids = self._grow_and_release()
        if ids:
            return [self._vocabulary.ids[token] for token in tokens] + ids
        self._bytes, self._parents, self._starts = whole, [0], []
        return self._grow_and_release()

    def _may_be_one_token(self) -> bool:
        low, high = self._vocabulary.starting[self._bytes[0]]
        found = self._vocabulary.find(self._bytes, low, high)
        return found is not None and self._is_possible(_Start(0, found, high))

    def _grow(self, position: int) -> None:
        """Take in the byte at `position`: narrow every start and find the parent of its end."""
        vocabulary, data, end = self._vocabulary, self._bytes, position + 1
        self._starts.append(_Start(position, *vocabulary.starting[data[position]]))
        self.steps += len(self._starts)
        alive, parent = [], None
        for start in self._starts:
            text = data[start.at : end]
            low = vocabulary.find(text, start.low, start.high)
            if low is None:
                continue
            start.low = low
            alive.append(start)
            if parent is None and vocabulary.tokens[low] == text:
                if vocabulary.is_pair(self._token_before(start.at), text):
                    parent = start.at
        assert parent is not None, f"no encoding of {end} bytes ends in a token"
        self._parents.append(parent)
        self._starts = alive

    def _common_ancestor(self) -> int:
        """Return the last boundary that is certain: the ancestor of all possible ones."""
        ancestor = len(self._bytes)
        for start in list(self._starts):
            lower = self._meet(ancestor, start.at)
            if lower == ancestor:
                continue  # it would change nothing
            if self._is_possible(start):
                ancestor = lower
            else:
                self._starts.remove(start)
        return ancestor

    def _meet(self, first: int, second: int) -> int:
        """Return the lowest common ancestor of two positions."""
        while first != second:
            self.steps += 1
            if first > second:
                first = self._parents[first]
            else:
                second = self._parents[second]
        return first

    def _is_possible(self, start: _Start) -> bool:
        """Return whether some token that begins at `start` can reach past the end of the bytes."""
        vocabulary, text = self._vocabulary, self._bytes[start.at :]
        before = self._token_before(start.at)
        for _ in range(_LOOKS):
            self.steps += 1
            if start.low == start.high:
                return False
            token = vocabulary.tokens[start.low]
            if not token.startswith(text):
                return False
            if (
                len(token) > len(text)
                and token[len(text)] not in self._impossible
                and vocabulary.is_pair(before, token)
            ):
                return True
            start.low += 1  # refuted for good: later bytes only narrow what may follow
        return True

    def _token_before(self, position: int) -> str:
        return self._bytes[self._parents[position] : position]

    def _release(self, root: int) -> list[int]:
        """Return the ids from the old root to `root`, which becomes position 0."""
        ids: list[int] = []
        end = root
        while end > 0:
            ids.append(self._vocabulary.ids[self._token_before(end)])
            end = self._parents[end]
        self._bytes = self._bytes[root:]
        self._parents = [0] + [parent - root for parent in self._parents[root + 1 :]]
        for start in self._starts:
            start.at -= root
        return ids[::-1]
