"""Compares a long text through a server with its sentences one by one: completeness and errors.

    python -m tools.seams.served --url ws://127.0.0.1:8000 --layouts streaming full_text

10,000 characters are sent, whole or (streaming layout) in tokens as a language model writes them,
and received as fast as the server makes them; the sound is stored. Groups of ten sentences are
transcribed with a few seconds before and after them, since the server's word times are estimates.
The reference is the same sentences as turns of their own, joined in groups of ten. Each of several
`--seeds` repeats everything: one text has too few errors to tell a third more from chance.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from random import Random
from typing import Literal, get_args

import numpy as np

from realtime_tts.bench.deltas import DeltaTiming, schedule
from realtime_tts.bench.observation import Schedule
from realtime_tts.bench.sockets import speak
from realtime_tts.client import RealtimeTTS, SessionOptions, TurnResult, Word
from tools.demo_voice.recognise import Recogniser, Recording
from tools.demo_voice.report import table
from tools.demo_voice.words import WordErrors, normalise, pooled
from tools.seams.long import sentences_of
from tools.seams.speak import OUT, VOICES
from tools.seams.speaker import SAMPLE_RATE
from tools.seams.texts import vocabulary
from tools.seams.tracks import HOP, Tracks

_Layout = Literal["streaming", "full_text"]
_HEAD = (
    "layout",
    "voice",
    "turn",
    "told as spoken",
    "seconds",
    "words wrong",
    "single sentences",
    "by parts: words wrong",
    "pitch by minutes, semitones",
    "level by minutes, dB",
)
LEAD_MS = 30_000
_TOGETHER = 10
_AROUND = 4.0  # seconds
_MINUTE = round(60 / HOP)


@dataclass(frozen=True, slots=True)
class Spoken:
    """A turn as it is stored. `how`: the reason for its end. `words`: the words that the server
    reported, with the seconds at which they end."""

    how: str
    words: list[tuple[str, float]]
    sound: Recording

    @classmethod
    def of(cls, result: TurnResult | None, words: Sequence[Word], sound: bytes) -> Spoken:
        ends = [(word.text, word.end_ms / 1000) for word in words]
        samples = np.frombuffer(sound, "<i2")
        return cls(result.reason if result else "–", ends, Recording(samples, SAMPLE_RATE))

    def write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.sound.write(path.with_suffix(".wav"))
        path.with_suffix(".json").write_text(json.dumps([self.how, self.words]), encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> Spoken:
        how, words = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        return cls(how, words, Recording.read(path.with_suffix(".wav")))


async def speak_kept(
    url: str, texts: Mapping[Path, Schedule], voice: str, layout: _Layout, seed: int
) -> None:
    """Speak the texts that are not stored yet as turns of one session, as fast as possible."""
    missing = {path: text for path, text in texts.items() if not path.with_suffix(".json").exists()}
    options: SessionOptions = {
        "voice": voice,
        "layout": layout,
        "word_times": "on",
        "seed": seed,
        "lead_ms": LEAD_MS,
    }
    async with RealtimeTTS(url, **options) as tts:
        for path, text in missing.items():
            seen = await speak(tts, text, paced=False, keep_sound=True)
            if seen.error:
                raise RuntimeError(f"{path}: the turn failed: {seen.error}")
            Spoken.of(seen.result, seen.words, bytes(seen.sound or b"")).write(path)


def parts_of(pieces: Sequence[str], turn: Spoken) -> list[tuple[str, Recording]]:
    """Return each group of ten pieces with the sound around it, found by the server's words."""
    samples, rate = turn.sound.samples, turn.sound.sample_rate
    tens = ["".join(pieces[at : at + _TOGETHER]) for at in range(0, len(pieces), _TOGETHER)]
    ends = [_end_of(count, turn) for count in accumulate(map(len, tens))]
    spans = [
        slice(round(max(0.0, begin - _AROUND) * rate), round((end + _AROUND) * rate))
        for begin, end in pairwise([0.0, *ends])
    ]
    return [(text, Recording(samples[span], rate)) for text, span in zip(tens, spans, strict=True)]


def _end_of(characters: int, turn: Spoken) -> float:
    """Return the seconds after which `characters` have been spoken, or all reported words."""
    counts = accumulate(len(text) for text, _ in turn.words)
    ends = (end for (_, end), count in zip(turn.words, counts, strict=True) if count >= characters)
    return next(ends, turn.words[-1][1] if turn.words else 0.0)


def errors_inside(text: str, heard: str) -> WordErrors:
    """Return the fewest errors between the text and any part of `heard` (Sellers' algorithm).

    A compound may be written as one word or as two, as in `word_errors`.
    """
    wanted, found = normalise(text), normalise(heard)
    rows = [[0] * (len(found) + 1)]
    for count, word in enumerate(wanted, 1):
        row = [count]
        for at, other in enumerate(found, 1):
            ways = [rows[-1][at - 1] + (word != other), rows[-1][at] + 1, row[-1] + 1]
            if count > 1 and wanted[count - 2] + word == other:
                ways.append(rows[-2][at - 1])
            if at > 1 and found[at - 2] + other == word:
                ways.append(rows[-1][at - 2])
            row.append(min(ways))
        rows.append(row)
    return WordErrors(len(wanted), substitutions=min(rows[-1]), heard=heard)


def by_minutes(sound: Recording) -> tuple[list[float], list[float]]:
    """Return the medians of pitch (semitones above 100 Hz) and level (dB) of each minute, where
    there is voice. A last part of less than half a minute is left out."""
    tracks = Tracks.of(sound)
    pitches, levels = [], []
    for begin in range(0, len(tracks.pitch) - _MINUTE // 2, _MINUTE):
        pitch = tracks.pitch[begin : begin + _MINUTE]
        voiced = ~np.isnan(pitch)
        pitches.append(float(np.median(pitch[voiced])))
        levels.append(float(np.median(tracks.level[begin : begin + _MINUTE][voiced])))
    return pitches, levels


class Run:
    """A run with one text of many sentences. Every n-th group of ten is transcribed."""

    def __init__(self, characters: int, every: int, seeds: Sequence[int], out: Path) -> None:
        self.pieces = sentences_of(characters)
        self._every, self._seeds, self._out = every, seeds, out
        heard = [
            piece.strip()
            for at in range(0, len(self.pieces), _TOGETHER * every)
            for piece in self.pieces[at : at + _TOGETHER]
        ]
        self.singles = list(dict.fromkeys(heard))
        self._recogniser = Recogniser(vocabulary())
        self._known: dict[tuple[str, str, int], WordErrors] = {}

    def _turn(self, layout: str, voice: str, seed: int) -> Path:
        return self._out / f"seed_{seed}" / f"{layout}_{voice}"

    def _single(self, sentence: str, voice: str, seed: int) -> Path:
        number = self.singles.index(sentence)
        return self._out / f"seed_{seed}" / "singles" / f"{number:03d}_{voice}"

    async def speak(self, url: str, layouts: Sequence[_Layout], voices: Sequence[str]) -> None:
        """Speak what is not stored yet, everything of a seed at once: single sentences first, so
        that the server knows the pace of the voices."""
        for seed in self._seeds:
            await self._speak(url, layouts, voices, seed)

    async def _speak(
        self, url: str, layouts: Sequence[_Layout], voices: Sequence[str], seed: int
    ) -> None:
        singly = {
            voice: {self._single(each, voice, seed): [(0.0, each)] for each in self.singles}
            for voice in voices
        }
        await asyncio.gather(
            *(speak_kept(url, texts, voice, "streaming", seed) for voice, texts in singly.items())
        )
        text = "".join(self.pieces)
        deltas = schedule(text, DeltaTiming(), Random(1))
        sent: dict[_Layout, Schedule] = {"streaming": deltas, "full_text": [(0.0, text)]}
        await asyncio.gather(
            *(
                speak_kept(
                    url, {self._turn(layout, voice, seed): sent[layout]}, voice, layout, seed
                )
                for layout in layouts
                for voice in voices
            )
        )

    def row(self, layout: _Layout, voice: str) -> list[str]:
        """Return a line of the table."""
        turns = [Spoken.read(self._turn(layout, voice, seed)) for seed in self._seeds]
        errors = [self._heard_in(turn) for turn in turns]
        singles = [
            self._singly(first, voice, seed) for seed in self._seeds for first in self._firsts()
        ]
        spans = [by_minutes(turn.sound) for turn in turns]
        pitch = [value for values, _ in spans for value in values]
        level = [value for _, values in spans for value in values]
        said = ["".join(text for text, _ in turn.words) for turn in turns]
        untold = sum(each != "".join(self.pieces) for each in said)
        seconds = sum(turn.sound.seconds for turn in turns) / len(turns)
        return [
            layout,
            voice,
            ", ".join(sorted({turn.how for turn in turns})),
            "all" if not untold else f"not all of {untold} turns",
            f"{seconds:.0f}",
            _rate([each for one in errors for each in one]),
            _rate(singles),
            " ".join(f"{pooled(part).rate:.2f}" for part in zip(*errors, strict=True)),
            _span(pitch),
            _span(level),
        ]

    def _heard_in(self, turn: Spoken) -> list[WordErrors]:
        """Return the errors of the turn's parts that are transcribed."""
        return [self._heard(*part) for part in parts_of(self.pieces, turn)[:: self._every]]

    def _firsts(self) -> range:
        return range(0, len(self.pieces), _TOGETHER * self._every)

    def _singly(self, first: int, voice: str, seed: int) -> WordErrors:
        """Return the errors of ten sentences that were turns of their own, joined."""
        tens = self.pieces[first : first + _TOGETHER]
        text = "".join(tens)
        if (text, voice, seed) not in self._known:
            paths = [self._single(piece.strip(), voice, seed) for piece in tens]
            samples = np.concatenate([Spoken.read(path).sound.samples for path in paths])
            self._known[text, voice, seed] = self._heard(text, Recording(samples, SAMPLE_RATE))
        return self._known[text, voice, seed]

    def _heard(self, text: str, sound: Recording) -> WordErrors:
        return errors_inside(text, self._recogniser.transcribe(sound))


def _span(values: Sequence[float]) -> str:
    return f"{values[0]:+.1f} at first, {min(values):+.1f} to {max(values):+.1f}"


def _rate(results: Sequence[WordErrors]) -> str:
    all_of_them = pooled(results)
    return f"{all_of_them.rate:.3f} ({all_of_them.errors} of {all_of_them.words})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--url", default="ws://127.0.0.1:8000")
    parser.add_argument(
        "--layouts", nargs="+", choices=get_args(_Layout), default=get_args(_Layout)
    )
    parser.add_argument("--voices", nargs="+", choices=VOICES, default=list(VOICES))
    parser.add_argument("--characters", type=int, default=10_000)
    parser.add_argument("--every", type=int, default=1, help="hear every n-th ten sentences only")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1])
    parser.add_argument("--out", type=Path, default=OUT / "served")
    given = parser.parse_args()
    run = Run(given.characters, given.every, given.seeds, given.out)
    asyncio.run(run.speak(given.url, given.layouts, given.voices))
    rows = []
    for layout in given.layouts:
        for voice in given.voices:
            rows.append(run.row(layout, voice))
            print("\n".join(table(_HEAD, rows)), flush=True)


if __name__ == "__main__":
    main()
