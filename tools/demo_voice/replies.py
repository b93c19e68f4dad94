"""Short sentences, as the replies of an assistant hold them, to be joined to texts.

    python -m tools.demo_voice.replies --out build/demo_voice/replies.txt

They come from the grammar, again and again, half of them from its short events: what counts is
that one goes on behind another. With --questions, a share of them are questions that ask for yes or
no and may be longer: most that a voice says do not rise, and are left out of what it learns.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from random import Random

from tools.demo_voice import sources
from tools.demo_voice.cleaning import sentence_case
from tools.demo_voice.held_out import Guard, evaluation_texts
from tools.demo_voice.lexicon import Lexicon, frequent_words
from tools.demo_voice.mix import assistant
from tools.demo_voice.questions import rises
from tools.demo_voice.sentences import VOCABULARY, write
from tools.demo_voice.speech import ENDS

_MOST_WORDS = 5
_MOST_WORDS_OF_QUESTIONS = 12


def replies(lexicon: Lexicon, rng: Random, questions: float = 0.0) -> Iterator[str]:
    """Sentences of one to five words, without end; none is one of an evaluation text. `questions`:
    the share of those that ask for yes or no, beside the few that the grammar makes anyway."""
    grammars = assistant(lexicon, "say event"), assistant(lexicon)
    guard = Guard(evaluation_texts())
    while True:
        asks = rng.random() < questions
        most = _MOST_WORDS_OF_QUESTIONS if asks else _MOST_WORDS
        line = ""
        while not line.endswith(ENDS) or len(line.split()) > most or asks > rises(line):
            line = sentence_case(rng.choice(grammars).draw(rng))
        if not guard.forbids(line):
            yield line


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("build/demo_voice/replies.txt"))
    parser.add_argument("--count", type=int, default=150_000)
    parser.add_argument("--questions", type=float, default=0.0, metavar="SHARE")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    try:
        lexicon = Lexicon(sources.Places(), frequent_words(VOCABULARY))
    except sources.SourceMissing as error:
        sys.exit(str(error))
    lines = replies(lexicon, Random(given.seed), given.questions)
    write(given.out, list(islice(lines, given.count)))


if __name__ == "__main__":
    main()
