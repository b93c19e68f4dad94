"""Speech of the teacher with its labels, made by many processes and kept in shards.

    python -m tools.demo_voice.speech --sentences build/demo_voice/sentences.txt --hours 1

Sentences become texts of one to many sentences, each spoken once by one voice. A shard holds
about ten minutes; it appears under its final name only when complete, so that training can read
the folder while it fills, and a run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tools.demo_voice.teacher import SAMPLE_RATE, VOICES, Speech, Teacher

SHARD_SECONDS = 600
_LONGEST_SECONDS = 55.0
_CHARACTERS_PER_SECOND = 15.0
_LENGTHS = ((0.62, 1, 1), (0.20, 2, 2), (0.12, 3, 5), (0.06, 6, 24))
"""Share of the texts, fewest and most sentences."""
VOICE_NAMES = tuple(VOICES)


@dataclass(frozen=True, slots=True, eq=False)
class Shard:
    """Utterances one after the other.

    samples [N] int16; phones and words [N / 320]; lengths [U] in samples; voices [U], index into
    VOICE_NAMES; texts, U of them.
    """

    samples: np.ndarray
    phones: np.ndarray
    words: np.ndarray
    lengths: np.ndarray
    voices: np.ndarray
    texts: list[str]

    def save(self, path: Path) -> None:
        partial = path.with_suffix(".partial")
        with partial.open("wb") as file:
            np.savez(
                file,
                samples=self.samples,
                phones=self.phones,
                words=self.words,
                lengths=self.lengths,
                voices=self.voices,
                texts=np.frombuffer("\n".join(self.texts).encode(), np.uint8),
            )
        partial.rename(path)

    @classmethod
    def load(cls, path: Path) -> Shard:
        with np.load(path) as held:
            parts = {name: held[name] for name in held.files}
        texts = parts.pop("texts").tobytes().decode().split("\n")
        return cls(texts=texts, **parts)


def texts(sentences: Sequence[str], chance: random.Random) -> Iterator[str]:
    """Endlessly: the sentences in random order, joined to texts of different lengths."""
    while True:
        order = list(range(len(sentences)))
        chance.shuffle(order)
        while order:
            _, fewest, most = chance.choices(_LENGTHS, [share for share, _, _ in _LENGTHS])[0]
            picked = [order.pop() for _ in range(min(len(order), chance.randint(fewest, most)))]
            yield _joined([sentences[index] for index in picked])


def _joined(sentences: Sequence[str]) -> str:
    """One text; a sentence within ends with a mark that makes the teacher pause."""
    room = int(_LONGEST_SECONDS * _CHARACTERS_PER_SECOND)
    text = sentences[0]
    for sentence in sentences[1:]:
        if text[-1] not in ".!?,;:":
            text += "."
        if len(text) + 1 + len(sentence) > room:
            break
        text += " " + sentence
    return text


def _produce(
    worker: int, sentences: Sequence[str], out: Path, seed: int, seconds: float, stop: Path
) -> None:
    os.nice(10)
    teacher, number, made = Teacher(), 0, 0.0
    while made < seconds and not stop.exists():
        path = out / f"speech-{worker:03d}-{number:05d}.npz"
        if not path.exists():
            chance = random.Random(f"{seed} {worker} {number}")
            # Each shard begins elsewhere: all sentences are read before one comes again.
            first = (number * 157) % max(1, len(sentences) - 157)
            source = texts(sentences[first : first + 157] or sentences, chance)
            _shard(teacher, source, chance).save(path)
        number, made = number + 1, made + SHARD_SECONDS


def _shard(teacher: Teacher, source: Iterator[str], chance: random.Random) -> Shard:
    speeches: list[Speech] = []
    spoken, voices, seconds = [], [], 0.0
    while seconds < SHARD_SECONDS:
        text, voice = next(source), chance.randrange(len(VOICE_NAMES))
        try:
            speech = teacher.synthesize(text, VOICE_NAMES[voice])
        except ValueError:  # nothing to say
            continue
        if len(speech.samples) > _LONGEST_SECONDS * SAMPLE_RATE:
            continue
        speeches.append(speech)
        spoken.append(text)
        voices.append(voice)
        seconds += len(speech.samples) / SAMPLE_RATE
    return Shard(
        np.concatenate([speech.samples for speech in speeches]),
        np.concatenate([speech.phones for speech in speeches]),
        np.concatenate([speech.words for speech in speeches]),
        np.array([len(speech.samples) for speech in speeches], np.int32),
        np.array(voices, np.uint8),
        spoken,
    )


class Producer:
    """Processes that fill a folder with shards until there are `hours` or `stop` is called."""

    def __init__(
        self, sentences: Sequence[str], out: Path, *, workers: int, hours: float, seed: int
    ) -> None:
        out.mkdir(parents=True, exist_ok=True)
        self._stop = out / "stop"
        self._stop.unlink(missing_ok=True)
        context = multiprocessing.get_context("fork")
        each = hours * 3600 / workers
        self._processes = [
            context.Process(
                target=_produce,
                args=(worker, sentences[worker::workers], out, seed, each, self._stop),
                daemon=True,
            )
            for worker in range(workers)
        ]
        for process in self._processes:
            process.start()

    def busy(self) -> bool:
        return any(process.is_alive() for process in self._processes)

    def stop(self) -> None:
        self._stop.touch()
        for process in self._processes:
            process.join()


def read_sentences(path: Path) -> list[str]:
    return [line for line in path.read_text("ascii").split("\n") if line]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sentences", type=Path, default=Path("build/demo_voice/sentences.txt"))
    parser.add_argument("--out", type=Path, default=Path("build/demo_voice/speech"))
    parser.add_argument("--hours", type=float, default=400.0)
    parser.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 2) - 1))
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    producer = Producer(
        read_sentences(given.sentences),
        given.out,
        workers=given.workers,
        hours=given.hours,
        seed=given.seed,
    )
    begun = time.monotonic()
    while producer.busy():
        time.sleep(5)
        shards = len(list(given.out.glob("speech-*.npz")))
        hours = shards * SHARD_SECONDS / 3600
        print(f"{time.monotonic() - begun:6.0f} s: {hours:.1f} h of speech", flush=True)


if __name__ == "__main__":
    main()
