"""Texts for a round of a voice's own speech: those that it says worst come most often.

    python -m tools.demo_voice.own_texts --out build/demo_voice/own.txt

It mixes what `sentences` and `replies --questions 0.2` have written, in turn a line of each kind:
sentences of one voice that begin with a short word, of which little is heard ("He", "There"); short
replies; other sentences; and questions of one voice that ask for yes or no, a third of them in the
words of a statement. `own_speech` deals its lines out to its processes, so each of four says one
kind.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from random import Random

from tools.demo_voice.own_speech import voice_of
from tools.demo_voice.phonetics import spelled_out
from tools.demo_voice.questions import rises
from tools.demo_voice.sentences import write
from tools.demo_voice.speech import VOICE_NAMES

_FIRST = frozenset("He She They There We My It His Her This That You Our Their".split())
_FIRST_ASKED = _FIRST | {"The", "I"}
_LONGEST = 16
"""Words of what begins with them."""
_ASKED = range(4, 10)
"""Words of a statement that is asked."""
_ASKED_SHARE = 1 / 3


def mixed(
    sentences: Sequence[str],
    replies: Sequence[str],
    count: int,
    begins: str,
    asks: str,
    rng: Random,
) -> Iterator[str]:
    """At most `count` lines of each kind, as many of each; none comes twice. `begins` and `asks`:
    the voices that say the first and the last kind."""
    both = _shuffled([*sentences, *replies], rng)

    def questions(lines: Iterable[str], most: int) -> list[str]:
        return list(islice(filter(rises, _said_by(asks, lines)), most))

    statements = (f"{line[:-1]}?" for line in both if _can_be_asked(line))
    asked = questions(statements, round(count * _ASKED_SHARE))
    asked += questions(dict.fromkeys(both), count - len(asked))
    kinds = (
        list(_said_by(begins, filter(_begins, both))),
        _shuffled(replies, rng),
        _shuffled(sentences, rng),
        _shuffled(asked, rng),
    )
    said: set[str] = set()
    parts = []
    for kind in kinds:
        new = [line for line in dict.fromkeys(kind) if line not in said][:count]
        said.update(new)
        parts.append(new)
    for lines in zip(*parts, strict=False):  # as many of each kind
        yield from lines


def _said_by(voice: str, lines: Iterable[str]) -> Iterator[str]:
    number = VOICE_NAMES.index(voice)
    return (line for line in lines if voice_of(spelled_out(line)) == number)


def _begins(line: str) -> bool:
    words = line.split()
    return words[0] in _FIRST and 3 <= len(words) <= _LONGEST and line.endswith((".", "!"))


def _can_be_asked(line: str) -> bool:
    words = line.split()
    plain = line.endswith(".") and line.count(".") == 1 and not {*line} & {*',"'}
    return plain and len(words) in _ASKED and words[0] in _FIRST_ASKED


def _shuffled(lines: Sequence[str], rng: Random) -> list[str]:
    return rng.sample(lines, len(lines))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    folder = Path("build/demo_voice")
    parser.add_argument("--sentences", type=Path, default=folder / "sentences.txt")
    parser.add_argument("--replies", type=Path, default=folder / "replies.txt")
    parser.add_argument("--out", type=Path, default=folder / "own.txt")
    parser.add_argument("--count", type=int, default=80_000, help="of each of the four kinds")
    parser.add_argument("--begins", choices=VOICE_NAMES, default="ava", help="says the first kind")
    parser.add_argument("--asks", choices=VOICE_NAMES, default="ray", help="says the questions")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    sentences = given.sentences.read_text("utf-8").splitlines()
    replies = given.replies.read_text("utf-8").splitlines()
    rng = Random(given.seed)
    write(given.out, [*mixed(sentences, replies, given.count, given.begins, given.asks, rng)])


if __name__ == "__main__":
    main()
