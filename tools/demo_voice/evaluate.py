"""How well a checkpoint speaks, next to its teacher.

    python -m tools.demo_voice.evaluate --checkpoint build/demo_voice/checkpoint

writes report.md, report.json and a picture to build/demo_voice/evaluation: word error rates by two
recognisers of the teacher and of the checkpoint in both layouts (texts whole, and as deltas of a
few characters), how it sounds (pitch, noise, bandwidth, loudness), durations against the teacher's,
turns that ended wrongly. --long adds texts of minutes, heard by Whisper alone. All speech is kept
below it, in wavs/SET/SOURCE/NNN_voice.wav. With --codec-audio, a folder of such files, made by the
codec from wavs/held_out/teacher (--teacher-only writes no more than that), the codec's figures too.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random

import torch

from realtime_tts import demo_voice
from tools.demo_voice import recognise, teacher, whisper
from tools.demo_voice.cleaning import sentences_of
from tools.demo_voice.durations import Turn
from tools.demo_voice.phonetics import Phonetics
from tools.demo_voice.pictures import draw, mel_distance
from tools.demo_voice.recognise import Recording
from tools.demo_voice.report import Report, Scored
from tools.demo_voice.sound import Listening, Sound
from tools.demo_voice.speech import joined
from tools.demo_voice.student import LAYOUTS, Layout, Request, Spoken, StudentSettings, speak_all
from tools.demo_voice.text_sets import TextSet

HERE = Path(__file__).parent
LONG_FROM = (HERE / "held_out.txt", HERE / "held_out_harder.txt")
_BUILD = Path("build/demo_voice")
Heard = dict[tuple[str, str], list[Recording]]
"""By source (teacher, codec or a layout) and voice; one recording a text."""
RECOGNISERS = ("pocketsphinx", whisper.NAME)


class Teacher:
    """The teacher's speech, made once for every text and voice, and always the same: its noise is
    seeded. Sentences are spoken one by one and joined, as for training."""

    def __init__(self, weights: Path, styles: Path, seed: int = 1) -> None:
        self._teacher = teacher.Teacher(weights, styles, torch.device("cpu"))
        self._phonetics, self._seed = Phonetics(), seed
        self._spoken: dict[tuple[str, str], Recording] = {}

    def speak(self, text: str, voice: str) -> Recording:
        """Raises ValueError for a text that the teacher cannot read."""
        key = (text, voice)
        if key not in self._spoken:
            readings = self._phonetics.read(sentences_of(text))
            known = [reading for reading in readings if reading is not None]
            if not known or len(known) < len(readings):
                raise ValueError(f"the teacher cannot read {text!r}")
            torch.manual_seed(self._seed)
            spoken = dict(self._teacher.speak(known, voice))
            sentences = [(reading.text, spoken[reading]) for reading in known]
            _, speech = joined(sentences, Random(self._seed))
            self._spoken[key] = Recording(speech.samples, teacher.SAMPLE_RATE)
        return self._spoken[key]


def read_codec_audio(folder: Path, voices: Sequence[str], count: int) -> Heard:
    """NNN_voice.wav, numbered from 000 in the order of the texts; voices that are there.

    Raises FileNotFoundError if a voice has some files and not all.
    """
    found = [voice for voice in voices if list(folder.glob(f"*_{voice}.wav"))]
    if not found:
        raise FileNotFoundError(f"{folder} has no NNN_voice.wav of the voices {', '.join(voices)}")
    return {
        ("codec", voice): [
            Recording.read(folder / f"{number:03d}_{voice}.wav") for number in range(count)
        ]
        for voice in found
    }


def requests_for(
    texts: Sequence[str],
    voices: Sequence[str],
    layouts: Sequence[Layout],
    seed: int,
    *,
    rotate: bool = False,
) -> list[Request]:
    """Every text in every layout by every voice, or with `rotate` by one voice after the other.

    Each text has a seed of its own.
    """
    return [
        Request(text, voice, layout, seed + number)
        for layout in layouts
        for place, voice in enumerate(voices)
        for number, text in enumerate(texts)
        if not rotate or number % len(voices) == place
    ]


def score_set(
    texts: TextSet, heard: Heard, jobs: int, recogniser: str = RECOGNISERS[0]
) -> list[Scored]:
    """Word errors of every source and voice, teacher first; mel distance of the codec."""
    words = [each for recordings in heard.values() for each in texts.words[: len(recordings)]]
    flat = [recording for recordings in heard.values() for recording in recordings]
    score = whisper.score if recogniser == whisper.NAME else recognise.score
    results = iter(score(words, flat, jobs))
    scored = []
    for (source, voice), recordings in heard.items():
        mine = tuple(next(results) for _ in recordings)
        distance = None
        if source == "codec":
            distances = map(mel_distance, heard["teacher", voice], recordings)
            distance = sum(distances) / len(recordings)
        scored.append(Scored(texts.name, source, voice, texts.texts, mine, distance, recogniser))
    return scored


def sounds_of(texts: TextSet, heard: Heard) -> list[Sound]:
    """How every source and voice sounds, next to the teacher's speech of the same texts."""
    listening = Listening(texts.name, texts.texts)
    return [
        listening.sound(source, voice, recordings, heard["teacher", voice])
        for (source, voice), recordings in heard.items()
    ]


def turns_of(spoken: Sequence[Spoken], reference: Teacher) -> list[Turn]:
    """The turns with the teacher's durations for the same texts."""
    return [
        Turn(
            each.request.text,
            each.request.voice,
            each.request.layout,
            round(each.recording.seconds, 3),
            round(reference.speak(each.request.text, each.request.voice).seconds, 3),
            each.reason,
        )
        for each in spoken
    ]


def heard_of(spoken: Sequence[Spoken]) -> Heard:
    """The recordings by layout and voice, in the order of the texts."""
    heard: Heard = {}
    for each in spoken:
        key = (each.request.layout, each.request.voice)
        heard.setdefault(key, []).append(each.recording)
    return heard


def save(heard: Heard, folder: Path) -> None:
    """For people and for the codec: SOURCE/NNN_voice.wav."""
    for (source, voice), recordings in heard.items():
        (folder / source).mkdir(parents=True, exist_ok=True)
        for number, recording in enumerate(recordings):
            recording.write(folder / source / f"{number:03d}_{voice}.wav")


class Evaluation:
    """One run: the settings, and what was measured so far."""

    def __init__(self, given: argparse.Namespace) -> None:
        self._given = given
        self._teacher = Teacher(given.weights, given.styles)
        self._settings = StudentSettings(
            given.checkpoint, given.device, given.threads, given.sessions
        )
        self.report = Report(
            {
                "voices": ", ".join(given.voices),
                "seed of the first text": given.seed,
                "sampling": "the checkpoint's own generation_config.json",
                "recognisers": ", ".join(given.recognisers),
            }
        )

    def held_out(self, texts: TextSet, codec_audio: Path | None) -> None:
        """Word errors, sound, durations and a picture of one set."""
        heard = self._heard(texts)
        if codec_audio is not None:
            heard |= read_codec_audio(codec_audio, self._given.voices, len(texts.texts))
        for recogniser in self._given.recognisers:
            self._score(texts, heard, recogniser)
        self.report.sounds += sounds_of(texts, heard)
        self._draw(texts, heard)

    def minutes(self, texts: TextSet) -> None:
        """Word errors of Whisper, which hears speech of any length, and durations."""
        self._score(texts, self._heard(texts), whisper.NAME)

    def _heard(self, texts: TextSet) -> Heard:
        """The teacher's and the checkpoint's speech, kept and timed."""
        heard: Heard = {
            ("teacher", voice): [self._teacher.speak(text, voice) for text in texts.texts]
            for voice in self._given.voices
        }
        spoken = self._speak(texts)
        heard |= heard_of(spoken)
        save(heard, self._given.out / "wavs" / texts.name)
        self.report.turns[texts.name] = turns_of(spoken, self._teacher)
        return heard

    def _score(self, texts: TextSet, heard: Heard, recogniser: str) -> None:
        self._say(f"{texts.name}: {recogniser}, {sum(map(len, heard.values()))} recordings")
        self.report.scored += score_set(texts, heard, self._given.jobs, recogniser)

    def endings(self, texts: TextSet) -> None:
        """Durations only."""
        spoken = self._speak(texts, rotate=self._given.rotate)
        self.report.turns[texts.name] = turns_of(spoken, self._teacher)

    def _speak(self, texts: TextSet, *, rotate: bool = False) -> list[Spoken]:
        given = self._given
        if given.teacher_only:
            return []
        requests = requests_for(texts.texts, given.voices, given.layouts, given.seed, rotate=rotate)
        began = time.monotonic()

        def progress(done: int, total: int) -> None:
            if done % 50 == 0 or done == total:
                seconds = time.monotonic() - began
                self._say(f"{texts.name}: {done} of {total} turns spoken in {seconds:.0f} s")

        return speak_all(self._settings, requests, progress)

    def _draw(self, texts: TextSet, heard: Heard) -> None:
        number = min(self._given.picture, len(texts.texts) - 1)
        rows: dict[str, dict[str, Recording]] = {voice: {} for voice in self._given.voices}
        for (source, voice), recordings in heard.items():
            if source != "streaming":
                rows[voice]["student" if source == "full_text" else source] = recordings[number]
        draw(rows, texts.texts[number], self._given.out / f"spectra_{texts.name}.png")

    def _say(self, line: str) -> None:
        sys.stderr.write(f"{line}\n")


def main() -> None:
    given = _arguments()
    evaluation = Evaluation(given)
    codec_audio = given.codec_audio
    for path in given.held_out:
        evaluation.held_out(TextSet.read(path, given.limit), codec_audio)
        codec_audio = None  # it belongs to the first set
        evaluation.report.write(given.out)
    sentences = [text for path in LONG_FROM for text in TextSet.read(path).texts]
    for minutes in given.long:
        evaluation.minutes(TextSet.long(sentences, minutes))
        evaluation.report.write(given.out)
    if given.texts is not None and not given.teacher_only:
        evaluation.endings(TextSet.read(given.texts, given.limit))
    evaluation.report.write(given.out)
    print(evaluation.report.markdown())


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("--checkpoint", type=Path, default=demo_voice.FOLDER, help="default: the embedded one")
    add("--held-out", type=Path, nargs="+", default=[HERE / "held_out.txt"])
    add("--texts", type=Path, help="texts whose durations are compared as well")
    add("--long", type=int, nargs="+", default=[], metavar="MINUTES", help="texts so long as well")
    add("--recognisers", nargs="+", choices=RECOGNISERS, default=list(RECOGNISERS))
    add("--rotate", action="store_true", help="each of --texts by one voice, not by all")
    add("--codec-audio", type=Path, help="NNN_voice.wav of the first held-out set")
    add("--out", type=Path, default=_BUILD / "evaluation")
    add("--weights", type=Path, default=_BUILD / "kokoro.pt", help="the teacher's")
    add("--styles", type=Path, default=_BUILD / "styles", help="the teacher's, of kokoro-js")
    add("--voices", nargs="+", choices=list(teacher.VOICES), default=list(teacher.VOICES))
    add("--layouts", nargs="+", choices=LAYOUTS, default=list(LAYOUTS))
    add("--limit", type=int, help="only the first texts of each file")
    add("--seed", type=int, default=1)
    add("--picture", type=int, default=0, metavar="N", help="which text the picture shows")
    add("--teacher-only", action="store_true", help="leave the checkpoint out")
    add("--jobs", type=int, default=max(1, (os.cpu_count() or 2) - 1), help="recognisers")
    add("--device", default="cpu")
    add("--threads", type=int)
    add("--sessions", type=int, default=8, help="turns at the same time")
    return parser.parse_args()


if __name__ == "__main__":
    main()
