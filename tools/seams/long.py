"""Measures how long one utterance may be, and how stable a turn of many sentences is.

    python -m tools.seams.long --whole whole "full, whole"        where words begin to vanish
    python -m tools.seams.long --turn rewritten "full, rewritten" 10,000 characters

The first, middle and last tenth of a turn are transcribed sentence by sentence; pace and endings
are measured over all its sentences.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from itertools import accumulate, cycle
from pathlib import Path

import numpy as np

from tools.demo_voice.recognise import Recogniser, Recording
from tools.demo_voice.report import table
from tools.demo_voice.words import WordErrors, pooled, word_errors
from tools.seams.hearing import place
from tools.seams.speak import OUT, VOICES, folder_of, load_speaker
from tools.seams.speaker import SAMPLE_RATE, Request, Speaker, Spoken
from tools.seams.texts import sentences, spaced, vocabulary
from tools.seams.tracks import Tracks
from tools.seams.ways import WAYS

_WHOLE_CHARACTERS, _TURN_CHARACTERS = 1_300, 10_000
_FRAME_SECONDS = 0.08
_BIN_POSITIONS = 100


def sentences_of(characters: int) -> tuple[str, ...]:
    """Repeat the held-out sentences as pieces of a text of at least `characters`."""
    lengths = accumulate(len(sentence) + 1 for sentence in cycle(sentences()))
    count = 1 + next(number for number, length in enumerate(lengths) if length >= characters)
    again = cycle(sentences())
    return spaced([next(again) for _ in range(count)])


def speak(
    speaker: Speaker, ways: Sequence[str], characters: int, out: Path
) -> Iterator[tuple[str, list[Spoken]]]:
    """Speak one text with all voices in each way, and store the sound."""
    pieces = sentences_of(characters)
    requests = [Request(pieces, voice, 1, WAYS[way]) for way in ways for voice in VOICES]
    spoken = speaker.speak(requests)
    for number, way in enumerate(ways):
        mine = spoken[number * len(VOICES) :][: len(VOICES)]
        folder = folder_of(f"long {way}", out)
        folder.mkdir(parents=True, exist_ok=True)
        for voice, each in zip(VOICES, mine, strict=True):
            Recording(each.samples, SAMPLE_RATE).write(folder / f"{voice}.wav")
        yield way, mine


def whole_rows(way: str, spoken: Sequence[Spoken], recogniser: Recogniser) -> Iterator[list[str]]:
    """Yield a line for each voice: wrong words in each hundred positions."""
    text = "".join(sentences_of(_WHOLE_CHARACTERS))
    for voice, each in zip(VOICES, spoken, strict=True):
        placed = place(text, recogniser.timed_words(Recording(each.samples, SAMPLE_RATE)))
        prompt = each.positions[0]
        cells = []
        last = prompt + each.ends[-1] / SAMPLE_RATE / _FRAME_SECONDS
        for begin in range(0, int(last) + 1, _BIN_POSITIONS):
            here = [
                word
                for word in placed
                if begin <= prompt + word.seconds / _FRAME_SECONDS < begin + _BIN_POSITIONS
            ]
            wrong, words = sum(w.errors for w in here), sum(w.index is not None for w in here)
            cells.append(f"{wrong}/{words}")
        yield [way, voice, f"{len(text)}", f"{last:.0f}", " ".join(cells)]


def turn_rows(way: str, spoken: Sequence[Spoken], recogniser: Recogniser) -> Iterator[list[str]]:
    """Yield lines for each voice: the first, middle and last tenth of its turn, and all of it."""
    pieces = sentences_of(_TURN_CHARACTERS)
    for voice, each in zip(VOICES, spoken, strict=True):
        begins = (0, *each.ends[:-1])
        tenth = len(pieces) // 10
        for name, first in (
            ("first", 0),
            ("middle", (len(pieces) - tenth) // 2),
            ("last", len(pieces) - tenth),
        ):
            chosen = range(first, first + tenth)
            heard: list[WordErrors] = []
            for number in chosen:
                sound = Recording(each.samples[begins[number] : each.ends[number]], SAMPLE_RATE)
                heard.append(word_errors(pieces[number], recogniser.transcribe(sound)))
            span = slice(begins[first], each.ends[first + tenth - 1])
            pitch = Tracks.of(Recording(each.samples[span], SAMPLE_RATE)).pitch
            seconds = (span.stop - span.start) / SAMPLE_RATE
            tokens = sum(each.tokens[number] for number in chosen)
            total = pooled(heard)
            yield [
                way,
                voice,
                name,
                f"{total.rate:.3f} ({total.errors} of {total.words})",
                f"{np.nanmedian(pitch):+.2f}",
                f"{1000 * seconds / tokens:.0f}",
            ]
        stopped, ratio = each.ended.count(False), _slowest(each)
        positions = f"at most {max(each.positions)} positions prefilled"
        yield [
            way,
            voice,
            "all",
            f"{stopped} of {len(pieces)} pieces stopped by a guard",
            positions,
            f"slowest / quickest piece {ratio}",
        ]


def _slowest(spoken: Spoken) -> str:
    seconds = np.diff((0, *spoken.ends)) / SAMPLE_RATE / np.array(spoken.tokens)
    return f"{1000 * seconds.max():.0f} / {1000 * seconds.min():.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--whole", nargs="+", choices=WAYS, default=[])
    parser.add_argument("--turn", nargs="+", choices=WAYS, default=[])
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args()
    speaker, recogniser = load_speaker(), Recogniser(vocabulary())
    whole = ("way", "voice", "characters", "positions", "words wrong / words, by 100 positions")
    rows: list[list[str]] = []
    for way, spoken in speak(speaker, given.whole, _WHOLE_CHARACTERS, given.out):
        rows += whole_rows(way, spoken, recogniser)
    print("\n".join(table(whole, rows)), flush=True)
    turn = ("way", "voice", "tenth", "words wrong", "pitch, semitones", "ms a token")
    rows = []
    for way, spoken in speak(speaker, given.turn, _TURN_CHARACTERS, given.out):
        rows += turn_rows(way, spoken, recogniser)
    print("\n".join(table(turn, rows)), flush=True)


if __name__ == "__main__":
    main()
