"""Counts wrong words in speech with commits, and in the same texts without a commit.

    python -m tools.seams.committed --url ws://127.0.0.1:8000

The texts are those of `speak.py`: sentences, and pieces of sentences, by all voices. They are sent
whole, with a flush after each piece, and slowly, so that clauses or words are spoken one by one.
"""

from __future__ import annotations

import argparse
import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from urllib.request import urlopen

from realtime_tts.bench.deltas import DeltaTiming, schedule
from realtime_tts.client import RealtimeTTS, SessionOptions, Turn
from tools.demo_voice.recognise import Recogniser
from tools.demo_voice.report import table
from tools.demo_voice.words import WordErrors, interval, pooled, word_errors
from tools.seams.served import LEAD_MS, Spoken
from tools.seams.speak import OUT, VOICES
from tools.seams.speaker import SAMPLE_RATE
from tools.seams.texts import PiecedText, pieced_texts, vocabulary

_HEAD = (
    "way",
    "turns",
    "utterances",
    "turns not told in full",
    "words wrong",
    "interval of 95 %",
    "texts of sentences / of a cut clause",
)
_PREFILLS = "tts_engine_prefills_total "


@dataclass(frozen=True, slots=True)
class Way:
    """How texts are sent: whole, in pieces with a flush after each, or in tokens at a rate."""

    name: str
    options: SessionOptions
    flush: bool = False
    tokens_per_second: float | None = None

    async def send(self, turn: Turn, text: PiecedText) -> None:
        """Send the text in this way, and end the turn."""
        if self.flush:
            for piece in text.pieces:
                await turn.send(piece)
                await turn.flush()
        elif self.tokens_per_second is not None:
            timing = DeltaTiming(tokens_per_second=self.tokens_per_second)
            for gap, delta in schedule(text.text, timing, Random(text.text)):
                await asyncio.sleep(gap)
                await turn.send(delta)
        else:
            await turn.send(text.text, end=True)
            return
        await turn.end()

    def path(self, number: int, voice: str) -> Path:
        """Return where a turn is stored."""
        return Path(self.name.replace("/", " a ")) / f"{number:03d}_{voice}"

    @property
    def count(self) -> Path:
        """The file with the number of utterances that the engine made."""
        return self.path(0, "").with_name("utterances")


WAYS = (
    Way("whole", {"layout": "streaming"}),
    Way("flushed at the seams", {"layout": "streaming"}, flush=True),
    Way("5 tokens/s, by the clause", {"pacing": "clause"}, tokens_per_second=5),
    Way("5 tokens/s, by the word", {"pacing": "token"}, tokens_per_second=5),
)


async def speak_texts(
    url: str, way: Way, voice: str, texts: Sequence[PiecedText], out: Path
) -> None:
    """Speak the texts that are not stored yet in one session. Raises RealtimeTTSError."""
    options: SessionOptions = {"voice": voice, "word_times": "on", "seed": 1, "lead_ms": LEAD_MS}
    options.update(way.options)
    async with RealtimeTTS(url, **options) as tts:
        for number, text in enumerate(texts):
            path = out / way.path(number, voice)
            if not path.with_suffix(".json").exists():
                turn = await tts.turn()
                sending = asyncio.create_task(way.send(turn, text))
                sound = b"".join([packet async for packet in turn])
                await sending
                await turn.played(turn.samples_received / SAMPLE_RATE * 1000)
                Spoken.of(turn.result, turn.words, sound).write(path)


async def speak_all(url: str, way: Way, texts: Sequence[PiecedText], out: Path) -> None:
    """Speak all voices at once, and store how many utterances the engine made."""
    before = _utterances(url)
    await asyncio.gather(*(speak_texts(url, way, voice, texts, out) for voice in VOICES))
    if made := _utterances(url) - before:
        (out / way.count).write_text(f"{made}\n")


def _utterances(url: str) -> int:
    with urlopen(url.replace("ws", "http", 1) + "/metrics") as answer:
        lines = answer.read().decode().splitlines()
    return int(float(next(line for line in lines if line.startswith(_PREFILLS)).split()[1]))


def row(recogniser: Recogniser, way: Way, texts: Sequence[PiecedText], out: Path) -> list[str]:
    """Return a line of the table."""
    errors: list[WordErrors] = []
    ended, untold = Counter[str](), 0
    by_kind: dict[str, list[int]] = {}
    for number, text in enumerate(texts):
        for voice in VOICES:
            turn = Spoken.read(out / way.path(number, voice))
            ended[turn.how] += 1
            untold += "".join(word for word, _ in turn.words) != text.text
            by_kind.setdefault(text.kind, []).append(len(errors))
            errors.append(word_errors(text.text, recogniser.transcribe(turn.sound)))
    total, (low, high) = pooled(errors), interval(errors)
    return [
        way.name,
        ", ".join(f"{count} {how}" for how, count in ended.items()),
        (out / way.count).read_text().strip(),
        str(untold),
        f"{total.rate:.3f} ({total.errors} of {total.words})",
        f"{low:.3f} to {high:.3f}",
        " / ".join(f"{pooled(errors[at] for at in which).rate:.3f}" for which in by_kind.values()),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--url", default="ws://127.0.0.1:8000")
    parser.add_argument("--every", type=int, default=1, help="every n-th text only")
    parser.add_argument("--out", type=Path, default=OUT / "committed")
    given = parser.parse_args()
    texts = pieced_texts()[:: given.every]
    for way in WAYS:
        asyncio.run(speak_all(given.url, way, texts, given.out))
    recogniser, rows = Recogniser(vocabulary()), []
    for way in WAYS:
        rows.append(row(recogniser, way, texts, given.out))
        print("\n".join(table(_HEAD, rows)), flush=True)


if __name__ == "__main__":
    main()
