"""Transcribes and measures what `speak.py` stored, and prints a table of all ways.

    python -m tools.seams.measure --ways whole new rewritten --markdown build/seams/table.md

Transcripts are stored beside the sound, in heard.jsonl, so nothing is transcribed twice.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import astuple
from pathlib import Path

from tools.demo_voice.recognise import Recogniser, Recording, TimedWord
from tools.seams.report import Measured, markdown
from tools.seams.seam import Judged, Whole, judge
from tools.seams.speak import OUT, Turn, folder_of, read_turns
from tools.seams.texts import vocabulary
from tools.seams.tracks import Tracks
from tools.seams.ways import WAYS


class Ears:
    """The turns of one way, with their transcripts and their tracks."""

    def __init__(self, way: str, out: Path, recogniser: Recogniser) -> None:
        self._folder, self._recogniser = folder_of(way, out), recogniser
        self.turns = {turn.wav: turn for turn in read_turns(way, out)}
        self._kept = self._folder / "heard.jsonl"
        self._heard: dict[str, list[TimedWord]] = {}
        if self._kept.exists():
            for line in self._kept.read_text(encoding="utf-8").splitlines():
                wav, words = json.loads(line)
                self._heard[wav] = [TimedWord(*word) for word in words]

    def words(self, turn: Turn) -> list[TimedWord]:
        if turn.wav not in self._heard:
            found = self._recogniser.timed_words(self.recording(turn))
            self._heard[turn.wav] = found
            with self._kept.open("a", encoding="utf-8") as file:
                file.write(json.dumps([turn.wav, [astuple(word) for word in found]]) + "\n")
        return self._heard[turn.wav]

    def recording(self, turn: Turn) -> Recording:
        return Recording.read(self._folder / turn.wav)

    def tracks(self, turn: Turn) -> Tracks:
        return Tracks.of(self.recording(turn))


def judged(ears: Ears, whole: Ears, every: int, *, cut: bool) -> Iterator[Judged]:
    """Measure a way's turns of every n-th text, in comparison with the texts spoken whole."""
    for wav, turn in ears.turns.items():
        if int(wav.partition("_")[0]) % every == 0 and wav in whole.turns:
            uncut = whole.turns[wav]
            beside = Whole.of(uncut, whole.words(uncut), whole.tracks(uncut))
            yield judge(turn, ears.words(turn), ears.tracks(turn), beside, cut=cut)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--every", type=int, default=1, help="every n-th text only")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--markdown", type=Path, help="where the table goes, too")
    given = parser.parse_args()
    recogniser, measured = Recogniser(vocabulary()), []
    for name in given.ways:
        began, way = time.monotonic(), WAYS[name]
        ears = Ears(name, given.out, recogniser)
        uncut = "full, whole" if way.full_text else "whole"
        whole = ears if name == uncut else Ears(uncut, given.out, recogniser)
        measured.append(Measured(name, list(judged(ears, whole, given.every, cut=way.cut))))
        sys.stderr.write(f"{name}: {time.monotonic() - began:.0f} s\n")
    table = markdown(measured)
    if given.markdown:
        given.markdown.write_text(table, encoding="utf-8")
    print(table)


if __name__ == "__main__":
    main()
