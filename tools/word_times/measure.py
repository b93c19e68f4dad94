"""Measures how far the times in `turn.words` are from those that an aligner finds.

    python -m tools.word_times.measure                          # sentences, the demo voice
    python -m tools.word_times.measure --paragraphs 75          # turns of three minutes and more
    python -m tools.word_times.measure --checkpoint FOLDER --json out.json

A server with the checkpoint speaks held-out texts over a real socket, half of them as deltas of a
few characters and half of them whole; forced alignment (`aligned.py`) of the same recordings says
when each word is really spoken. The errors of the words' beginnings and ends are printed in
milliseconds, by their position in the turn. Texts with a word that the aligner does not know are
left out, and counted.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle, islice
from pathlib import Path

import numpy as np

from realtime_tts import demo_voice
from realtime_tts.client import RealtimeTTS
from realtime_tts.engine.in_process import InProcessEngine
from realtime_tts.engine.load import engine_loader, load_tokenizer
from realtime_tts.server.run import running
from tools.demo_voice.recognise import Recording, read_texts
from tools.demo_voice.student import LAYOUTS, SAMPLE_RATE, Layout, StudentSettings, deltas
from tools.word_times.aligned import Aligner

_TEXTS = Path(__file__).parent.parent / "demo_voice"
_PARAGRAPHS = 6  # one for each voice in each layout
_SETS = [_TEXTS / name for name in ("held_out.txt", "held_out_harder.txt")]


@dataclass(frozen=True, slots=True)
class SpokenTurn:
    """A turn: its sound, and its words with the seconds that the server reported."""

    text: str
    layout: Layout
    recording: Recording
    words: list[tuple[str, float, float]]
    exact: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Error:
    """Seconds by which a word's reported begin and end are too late; `at`: when it is spoken."""

    at: float
    begin: float
    end: float


def texts_of(files: Sequence[Path], paragraphs: int, limit: int | None) -> list[str]:
    """Return the sentences of the files, or texts of `paragraphs` sentences each. A text begins
    where the one before ended; after the last sentence, the first follows again."""
    sentences = [line.partition("\t")[0] for path in files for line in read_texts(path)]
    sentences = [each for each in sentences if not any(map(str.isdigit, each))]
    if not paragraphs:
        return sentences[:limit]
    known = Aligner()
    sentences = [each for each in sentences if known.knows(each)]
    endless = cycle(sentences)
    return [" ".join(islice(endless, paragraphs)) for _ in range(limit or _PARAGRAPHS)]


async def speak(settings: StudentSettings, texts: Sequence[str]) -> list[SpokenTurn]:
    """Speak all texts one after another, alternating between layouts and voices."""
    engine = settings.engine()
    link = InProcessEngine(engine_loader(engine), engine.scheduler, guards=engine.guards)
    spoken = []
    async with (
        running(settings.server(), link, partial(load_tokenizer, engine)) as server,
        RealtimeTTS(server.websocket_url, word_times="on", reply_timeout=3_600) as tts,
    ):
        voices = tts.ready.voices
        for number, text in enumerate(texts):
            layout = LAYOUTS[number % len(LAYOUTS)]
            voice = voices[number // len(LAYOUTS) % len(voices)]
            await tts.configure(voice=voice, layout=layout, seed=number)
            speech = tts.speak(deltas(text, number) if layout == "streaming" else text)
            pcm = b"".join([packet async for packet in speech])
            turn = speech.turn
            assert turn is not None and turn.result is not None, "it was spoken to its end"
            words = [(w.text, w.start_ms / 1000, w.end_ms / 1000) for w in turn.words]
            recording = Recording(np.frombuffer(pcm, "<i2"), SAMPLE_RATE)
            spoken.append(
                SpokenTurn(text, layout, recording, words, turn.words_exact, turn.result.reason)
            )
    return spoken


def errors_of(turn: SpokenTurn, aligner: Aligner) -> list[Error] | None:
    """Return the error of each word, or None if alignment fails or the words differ."""
    placed = aligner.place(turn.text, turn.recording)
    if placed is None or [word.strip() for word, _, _ in turn.words] != turn.text.split():
        return None
    found = [(turn.words[each.index], each.found) for each in placed]
    return [Error(it.begin, word[1] - it.begin, word[2] - it.end) for word, it in found]


def summary(errors: Sequence[Error]) -> dict[str, float]:
    """Return the count and, in ms, the median, percentiles and bias of the errors."""
    figures: dict[str, float] = {"words": len(errors)}
    for name in ("begin", "end"):
        off = np.array([getattr(error, name) for error in errors]) * 1000
        median, p90, p99 = np.quantile(abs(off), (0.5, 0.9, 0.99)).round().tolist()
        figures |= {f"{name}_median": median, f"{name}_p90": p90, f"{name}_p99": p99}
        figures[f"{name}_bias"] = float(np.median(off).round())
    return figures


def report(spoken: Sequence[SpokenTurn]) -> dict[str, object]:
    """Return the figures of all words, of each quarter of the turns, and of each minute."""
    aligner = Aligner()
    judged = [(each, errors) for each in spoken if (errors := errors_of(each, aligner))]
    every = [error for _, errors in judged for error in errors]
    quarters: list[list[Error]] = [[], [], [], []]
    minutes: dict[int, list[Error]] = {}
    for each, errors in judged:
        for error in errors:
            share = error.at / each.recording.seconds
            quarters[min(3, int(4 * share))].append(error)
            minutes.setdefault(int(error.at / 60), []).append(error)
    return {
        "turns": len(judged),
        "left_out": len(spoken) - len(judged),
        "exact": all(each.exact for each, _ in judged),
        "spoken": len(spoken),
        "not_complete": sum(each.reason != "complete" for each in spoken),
        "seconds": round(sum(each.recording.seconds for each, _ in judged), 1),
        "longest": round(max(each.recording.seconds for each, _ in judged), 1),
        "all": summary(every),
        "layouts": {
            name: summary([e for each, errors in judged if each.layout == name for e in errors])
            for name in LAYOUTS
            if any(each.layout == name for each, _ in judged)
        },
        "quarters": [summary(part) for part in quarters if part],
        "minutes": {f"{minute}": summary(part) for minute, part in sorted(minutes.items())},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    add = parser.add_argument
    add("--checkpoint", type=Path, default=demo_voice.FOLDER, help="default: the embedded one")
    add("--paragraphs", type=int, default=0, metavar="N", help="join N sentences to a text")
    add("--texts", type=Path, nargs="+", default=_SETS, help="files of one sentence a line")
    add("--limit", type=int, help="only the first texts")
    add("--threads", type=int)
    add("--json", type=Path, help="write the figures here, too")
    given = parser.parse_args()
    settings = StudentSettings(given.checkpoint, threads=given.threads, sessions=1)
    found = report(
        asyncio.run(speak(settings, texts_of(given.texts, given.paragraphs, given.limit)))
    )
    lines = json.dumps(found, indent=2)
    print(lines)
    if given.json is not None:
        given.json.write_text(lines + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
