"""A long text through a server, beside its sentences one by one: is all of it spoken, and as well?

    python -m tools.seams.served --url ws://127.0.0.1:8000 --layouts streaming full_text

10,000 characters are sent at once and heard as fast as the server makes them. The sound is cut
where it is silent between every ten sentences, near the times of the server's words, and each part
is compared with its text. The same sentences as turns of their own are the measure.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from realtime_tts.bench.observation import Observation
from realtime_tts.bench.sockets import speak
from realtime_tts.client import RealtimeTTS, SessionOptions
from tools.demo_voice.recognise import Recogniser, Recording
from tools.demo_voice.report import table
from tools.demo_voice.words import WordErrors, pooled, word_errors
from tools.seams.long import sentences_of
from tools.seams.speak import OUT, VOICES
from tools.seams.speaker import SAMPLE_RATE
from tools.seams.texts import vocabulary
from tools.seams.tracks import HOP, Tracks

_Layout = Literal["streaming", "full_text"]
_HEAD = ("layout", "voice", "turn", "words wrong", "single sentences", "not spoken", "seconds",
         "by tenths: words wrong", "pitch, semitones")  # fmt: skip
_LEAD_MS = 30_000
_TOGETHER = 10
_NEAR_SECONDS, _PAUSE_SECONDS = 0.8, 0.1


async def spoken(url: str, texts: Iterable[str], options: SessionOptions) -> list[Observation]:
    """Each text as a turn, whole, without waiting for a listener."""
    found = []
    async with RealtimeTTS(url, **options) as tts:
        for text in texts:
            found.append(await speak(tts, [(0.0, text)], paced=False, keep_sound=True))
    return found


def recording(seen: Observation) -> Recording:
    return Recording(np.frombuffer(bytes(seen.sound or b""), "<i2"), SAMPLE_RATE)


def parts_of(pieces: Sequence[str], seen: Observation) -> list[tuple[str, Recording]]:
    """Every ten pieces with their sound; all that is not told as spoken is with the last ones."""
    sound = recording(seen)
    level = Tracks.of(sound).level
    begin, said, parts = 0, 0, []
    for first in range(0, len(pieces), _TOGETHER):
        text = "".join(pieces[first : first + _TOGETHER])
        said += len(text)
        last = first + _TOGETHER >= len(pieces)
        end = len(sound.samples) if last else _silence_near(level, _end_of(said, seen))
        parts.append((text, Recording(sound.samples[begin:end], SAMPLE_RATE)))
        begin = max(begin, end)
    return parts


def _end_of(characters: int, seen: Observation) -> float:
    """When so many characters have been spoken, in seconds."""
    counted = 0
    for word in seen.words:
        counted += len(word.text)
        if counted >= characters:
            return word.end_ms / 1000
    return seen.words[-1].end_ms / 1000 if seen.words else 0.0


def _silence_near(level: np.ndarray, seconds: float) -> int:
    """The sample in the middle of the most silent tenth of a second near a time."""
    width = round(_PAUSE_SECONDS / HOP)
    first = max(0, round((seconds - _NEAR_SECONDS) / HOP))
    near = level[first : round((seconds + _NEAR_SECONDS) / HOP) + width]
    if len(near) < width:
        return round(seconds * SAMPLE_RATE)
    loudest = np.lib.stride_tricks.sliding_window_view(near, width).max(1)
    return round((first + int(np.argmin(loudest)) + width / 2) * HOP * SAMPLE_RATE)


def heard(recogniser: Recogniser, parts: Iterable[tuple[str, Recording]]) -> list[WordErrors]:
    return [word_errors(text, recogniser.transcribe(sound)) for text, sound in parts]


async def row(
    given: argparse.Namespace, recogniser: Recogniser, layout: _Layout, voice: str
) -> list[str]:
    """A line of the table; the sound of the turn is kept."""
    pieces = sentences_of(given.characters)
    options: SessionOptions = {
        "voice": voice, "layout": layout, "word_times": "on", "seed": 1, "lead_ms": _LEAD_MS
    }  # fmt: skip
    singly = list(dict.fromkeys(piece.strip() for piece in pieces))[: given.singles]
    alone = await spoken(given.url, singly, options)  # first: the server learns the voice's pace
    (turn,) = await spoken(given.url, ["".join(pieces)], options)
    given.out.mkdir(parents=True, exist_ok=True)
    recording(turn).write(given.out / f"served {layout} {voice}.wav")
    parts = parts_of(pieces, turn)
    errors = heard(recogniser, parts)
    measure = pooled(heard(recogniser, zip(singly, map(recording, alone), strict=True)))
    pitch = [np.nanmedian(Tracks.of(sound).pitch) for _, sound in (parts[0], parts[-1])]
    tenth = -(-len(errors) // 10)
    rates = [pooled(errors[at : at + tenth]).rate for at in range(0, len(errors), tenth)]
    said = sum(len(word.text) for word in turn.words)
    how = turn.error or (turn.result.reason if turn.result else "–")
    return [
        layout, voice, how, _rate(pooled(errors)), _rate(measure),
        f"{sum(map(len, pieces)) - said} characters", f"{recording(turn).seconds:.0f}",
        " ".join(f"{rate:.2f}" for rate in rates), " … ".join(f"{each:+.1f}" for each in pitch),
    ]  # fmt: skip


def _rate(errors: WordErrors) -> str:
    return f"{errors.rate:.3f} ({errors.errors} of {errors.words})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--url", default="ws://127.0.0.1:8000")
    parser.add_argument(
        "--layouts", nargs="+", choices=get_args(_Layout), default=get_args(_Layout)
    )
    parser.add_argument("--voices", nargs="+", choices=VOICES, default=list(VOICES))
    parser.add_argument("--characters", type=int, default=10_000)
    parser.add_argument("--singles", type=int, help="only so many single sentences")
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args()
    recogniser = Recogniser(vocabulary())
    asked = [(layout, voice) for layout in given.layouts for voice in given.voices]
    rows = [asyncio.run(row(given, recogniser, *each)) for each in asked]
    print("\n".join(table(_HEAD, rows)))


if __name__ == "__main__":
    main()
