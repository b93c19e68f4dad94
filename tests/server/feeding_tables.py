"""What simulated feeds sound like: the tables of scheduler/README.md and docs/performance.md.

    python -m tests.server.feeding_tables

prints for feeds of so many tokens a second what is heard when; and for replies of two sentences by
how much they are heard before those of the client in `realtime_tts.bench.sentence_client`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from random import Random
from statistics import mean

from realtime_tts import demo_voice
from realtime_tts.bench.feeds import TWO_SENTENCES
from realtime_tts.bench.sentence_client import whole_sentences
from realtime_tts.text.tokenizer import Qwen2Tokenizer
from realtime_tts.text.unspoken import End
from tests.server.feeding import TEXTS, Delta, Feeding, at_pace, by_sentence
from tts_scheduler import FeedPace


def by_sentence_client(deltas: Iterable[Delta]) -> Iterator[Delta]:
    """As the client of `realtime_tts.bench.sentence_client` sends them, each with a flush."""
    waiting, waited = "", 0.0
    for after, text in deltas:
        waited += after
        sentences, waiting = whole_sentences(waiting + text)
        for sentence in sentences:
            yield waited, sentence + " "
            yield 0.0, ""
            waited = 0.0
    yield waited, waiting.strip() + " "
    yield 0.0, ""


def row_of(rate: float, way: str, tokenizer: Qwen2Tokenizer) -> str:
    """A line of the table: an even feed, then turns of a session whose feed is not."""
    runs = []
    for jitter in (0.0, 0.5):
        pace = FeedPace() if jitter else None
        for seed in range(12):
            deltas = at_pace(TEXTS[seed % 3], rate, Random(seed), jitter)
            whole = way == "sentences"
            turn = Feeding(tokenizer, pacing="auto" if whole else way, pace=pace)
            turn.run(list(by_sentence(deltas)) if whole else deltas)
            runs.append(turn)
    figures = (
        f"{mean(run.first_at for run in runs):.2f}",
        f"{mean(run.ended_at for run in runs):.1f}",
        f"{sum(gap.after is None for run in runs for gap in run.gaps)}",
        f"{mean(run.silence(End.WORD) for run in runs):.2f}",
        f"{mean(run.silence(End.CLAUSE, End.SENTENCE) for run in runs):.2f}",
        f"{mean(run.seams(End.WORD) for run in runs):.1f}",
    )
    return f"| {rate:.0f} | {way} | {' | '.join(figures)} |"


def earlier_row(reply: str, rate: float, tokenizer: Qwen2Tokenizer) -> str:
    """A line of the other table: means and worst of 24 uneven feeds, each a new session's."""
    first, end = [], []
    for seed in range(24):
        deltas = at_pace(reply, rate, Random(seed), 0.5)
        ours, theirs = Feeding(tokenizer), Feeding(tokenizer)
        ours.run(deltas)
        theirs.run(list(by_sentence_client(deltas)))
        first.append(ours.first_at - theirs.first_at)
        end.append(ours.ended_at - theirs.ended_at)
    words = len(whole_sentences(reply)[0][0].split())
    figures = f"{mean(first):+.2f} / {max(first):+.2f} | {mean(end):+.2f} / {max(end):+.2f}"
    return f"| {words} | {rate:.0f} | {figures} |"


def main() -> None:
    tokenizer = Qwen2Tokenizer.from_folder(demo_voice.FOLDER)
    lines = [
        "| tokens/s | pacing | first sound, s | heard by, s | gaps in words "
        "| silence in clauses, s | between clauses, s | cuts in clauses |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for rate in (60.0, 30.0, 15.0, 10.0, 5.0, 3.0):
        for way in ("auto", "token", "clause", "sentence", "sentences"):
            lines.append(row_of(rate, way, tokenizer))
    lines += [
        "",
        "| words of the first sentence | tokens/s | first sound, mean / worst, s "
        "| end, mean / worst, s |",
        "| ---: | ---: | ---: | ---: |",
    ]
    lines += [
        earlier_row(reply, rate, tokenizer) for rate in (30.0, 15.0) for reply in TWO_SENTENCES
    ]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
