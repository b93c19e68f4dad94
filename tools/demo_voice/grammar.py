"""Sentences from a grammar: a text file of named lists whose entries refer to one another.

    # a comment
    [drink] tea | coffee
    | hot chocolate
    [say order]
    Could I have {a/one} {drink}{, please/}?

A list begins with its name in brackets; its entries are the lines, or parts of lines between
vertical bars. In an entry, `{name}` is a random entry of that list or a terminal, and `{a/b/}` one
of the texts between the slashes, which may hold braces in turn. Sentences come from the
lists whose name begins with "say".
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Callable, Iterable, Mapping
from itertools import accumulate
from random import Random

from tools.demo_voice.cleaning import with_articles

Terminal = Callable[[Random], str]

_TWO_STOPS = re.compile(r"\.\.(?!\.)")  # of "p.m." and of the sentence
_HEADER = re.compile(r"\[([A-Za-z0-9 _]+)\]\s*")
# A list is drawn by this power of the number of its texts: more texts, more often, within reason.
_SIZE_POWER = 0.12
_TERMINAL_SIZE = 5000
_LARGEST = 10**15


class GrammarError(Exception):
    """A grammar file is malformed. The message says where and what."""


class Grammar:
    """Draws sentences. `rules`: the lines of one or more files; `terminals`: words made by code."""

    def __init__(
        self, rules: Iterable[str], terminals: Mapping[str, Terminal], only: str = "say"
    ) -> None:
        """`only`: how the names of the lists begin that sentences come from.

        Raises GrammarError if an entry refers to nothing.
        """
        self._lists = _parse(rules)
        self._terminals = terminals
        self._sizes: dict[str, int] = {}
        self._entries: list[str] = []
        weights: list[float] = []
        for name in self._lists:
            size = self._size_of(name)
            if name.startswith(only):
                entries = self._lists[name]
                self._entries += entries
                weights += [self._entry_size(entry) ** _SIZE_POWER for entry in entries]
            assert size > 0
        self._sums = list(accumulate(weights))
        self._compiled: dict[str, tuple[str | tuple[str, ...] | Terminal, ...]] = {}

    def draw(self, rng: Random) -> str:
        """One sentence."""
        entry = self._entries[bisect(self._sums, rng.random() * self._sums[-1])]
        text = with_articles(self._expand(entry, rng))
        return _TWO_STOPS.sub(".", text)

    def draw_from(self, name: str, rng: Random) -> str:
        """One entry of list `name`."""
        return with_articles(self._expand(rng.choice(self._lists[name]), rng))

    def _expand(self, entry: str, rng: Random) -> str:
        parts = self._compiled.get(entry)
        if parts is None:
            parts = self._compiled[entry] = self._compile(entry)
        said = []
        for part in parts:
            if isinstance(part, str):
                said.append(part)
            elif isinstance(part, tuple):
                said.append(self._expand(part[int(rng.random() * len(part))], rng))
            else:
                said.append(part(rng))
        return "".join(said)

    def _compile(self, entry: str) -> tuple[str | tuple[str, ...] | Terminal, ...]:
        """Plain text, tuples of entries to choose from, and terminals."""
        parts: list[str | tuple[str, ...] | Terminal] = []
        for place, piece in enumerate(_pieces(entry)):
            if place % 2 == 0:
                parts.append(piece)
            elif "/" in piece:
                parts.append(_options(piece))
            elif piece in self._lists:
                parts.append(tuple(self._lists[piece]))
            else:
                parts.append(self._terminals[piece])
        return tuple(part for part in parts if part != "")

    def _size_of(self, name: str) -> int:
        if name not in self._sizes:
            self._sizes[name] = 1  # a list may not contain itself, but must not hang us either
            self._sizes[name] = sum(self._entry_size(entry) for entry in self._lists[name])
        return self._sizes[name]

    def _entry_size(self, entry: str) -> int:
        size = 1
        for piece in _pieces(entry)[1::2]:
            if "/" in piece:
                size *= sum(self._entry_size(option) for option in _options(piece))
            elif piece in self._lists:
                size *= self._size_of(piece)
            elif piece in self._terminals:
                size *= _TERMINAL_SIZE
            else:
                raise GrammarError(f"{entry!r} refers to {piece!r}, which no list is named")
        return min(size, _LARGEST)


def _parse(rules: Iterable[str]) -> dict[str, list[str]]:
    lists: dict[str, list[str]] = {}
    entries: list[str] | None = None
    for line in rules:
        if not line.strip() or line.startswith("#"):
            continue
        header = _HEADER.match(line)
        if header:
            entries = lists.setdefault(header[1], [])
            line = line[header.end() :]
        if entries is None:
            raise GrammarError(f"{line!r} stands before the first [name]")
        entries += [part.strip() for part in line.split("|") if part.strip()]
    return lists


def _pieces(entry: str) -> list[str]:
    """Plain text and what stands in outer braces, in turn."""
    pieces, depth = [""], 0
    for char in entry:
        outer = depth == 0
        depth += (char == "{") - (char == "}")
        if depth < 0:
            raise GrammarError(f"{entry!r} closes a brace that it did not open")
        if outer and char == "{" or not outer and depth == 0:
            pieces.append("")
        else:
            pieces[-1] += char
    if depth:
        raise GrammarError(f"{entry!r} leaves a brace open")
    return pieces


def _options(piece: str) -> tuple[str, ...]:
    """The texts between the slashes that are in no further braces."""
    options, depth = [""], 0
    for char in piece:
        depth += (char == "{") - (char == "}")
        if char == "/" and depth == 0:
            options.append("")
        else:
            options[-1] += char
    return tuple(options)
