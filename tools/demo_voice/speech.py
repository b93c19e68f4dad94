"""Speech of the teacher with its labels, in shards of about ten minutes.

    python -m tools.demo_voice.speech --hours 100

Sentences are spoken thousands at a time and joined to texts of one to many sentences, of one
voice each. A shard appears under its final name only when complete, so that training can read the
folder while it fills; a run that is started again makes the same ones again. Several processes may
share the work (`--part 0 --parts 3`).
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tools.demo_voice.phonetics import Reading, readings
from tools.demo_voice.teacher import LABEL_SAMPLES, SAMPLE_RATE, VOICES, Speech, Teacher

SHARD_SECONDS = 600
VOICE_NAMES = tuple(VOICES)
_LONGEST_SECONDS = 85.0
LENGTHS = ((0.55, 1, 1), (0.20, 2, 2), (0.13, 3, 5), (0.08, 6, 14), (0.04, 15, 30))
"""Share of the texts, fewest and most sentences."""
_BLOCK = 1024
"""Sentences that are spoken before any of them is joined: the more, the more alike in length."""
_LEAD_LABELS = 8
"""Silence before a text, in labels of 20 ms. A frame is made from the text tokens so far, and one
more comes with every frame: a voice that spoke in its first frame would begin "Yes" when it knows
nothing but "Y"."""
_PAUSE_LABELS = (6, 20)
"""Silence between the sentences of a text, beside that at their ends, in labels of 20 ms."""
ENDS = (".", "!", "?")


@dataclass(frozen=True, slots=True, eq=False)
class Shard:
    """Utterances one after the other.

    samples [N] int16 at 24 kHz; phones, words and pitch [N / 480]; lengths [U] in samples;
    voices [U], index into VOICE_NAMES; texts, U of them.
    """

    samples: np.ndarray
    phones: np.ndarray
    words: np.ndarray
    pitch: np.ndarray
    lengths: np.ndarray
    voices: np.ndarray
    texts: list[str]

    def save(self, path: Path) -> None:
        texts = np.frombuffer("\n".join(self.texts).encode(), np.uint8)
        store_arrays(path, asdict(self) | {"texts": texts})

    @classmethod
    def load(cls, path: Path) -> Shard:
        with np.load(path) as held:
            parts = {name: held[name] for name in held.files}
        texts = parts.pop("texts").tobytes().decode().split("\n")
        return cls(texts=texts, **parts)


def store_arrays(path: Path, arrays: dict[str, Any]) -> None:
    """Write them as an npz file, which appears under its name when it is complete."""
    partial = path.with_suffix(".partial")
    with partial.open("wb") as file:
        np.savez(file, **arrays)
    partial.rename(path)


Spoken = tuple[str, Speech]


def texts(spoken: Sequence[Spoken], chance: random.Random) -> Iterator[Spoken]:
    """Sentences in this order, joined to texts of different lengths."""
    waiting = list(spoken)
    while waiting:
        _, fewest, most = chance.choices(LENGTHS, [share for share, _, _ in LENGTHS])[0]
        picked, seconds = [waiting.pop()], 0.0
        for _ in range(chance.randint(fewest, most) - 1):
            seconds += len(picked[-1][1].samples) / SAMPLE_RATE + 0.5
            if not waiting or not picked[-1][0].endswith(ENDS):
                break
            if seconds + len(waiting[-1][1].samples) / SAMPLE_RATE > _LONGEST_SECONDS:
                break
            picked.append(waiting.pop())
        yield joined(picked, chance)


def joined(sentences: Sequence[Spoken], chance: random.Random) -> Spoken:
    """One text of sentences: silence, and a pause after each sentence but the last."""
    parts, before = [_silence(_LEAD_LABELS)], 0
    for number, (text, speech) in enumerate(sentences):
        words = np.where(speech.words >= 0, speech.words + before, -1).astype(np.int16)
        parts.append(Speech(speech.samples, speech.phones, words, speech.pitch))
        before += len(text.split())
        if number + 1 < len(sentences):
            parts.append(_silence(chance.randint(*_PAUSE_LABELS)))
    return " ".join(text for text, _ in sentences), _in_a_row(parts)


def _in_a_row(parts: Sequence[Speech]) -> Speech:
    return Speech(
        np.concatenate([part.samples for part in parts]),
        np.concatenate([part.phones for part in parts]),
        np.concatenate([part.words for part in parts]),
        np.concatenate([part.pitch for part in parts]),
    )


def _silence(labels: int) -> Speech:
    return Speech(
        np.zeros(labels * LABEL_SAMPLES, np.int16),
        np.zeros(labels, np.uint8),
        np.full(labels, -1, np.int16),
        np.zeros(labels, np.float16),
    )


def _shard(spoken: Sequence[tuple[Spoken, int]]) -> Shard:
    speeches = [speech for (_, speech), _ in spoken]
    whole = _in_a_row(speeches)
    return Shard(
        samples=whole.samples,
        phones=whole.phones,
        words=whole.words,
        pitch=whole.pitch,
        lengths=np.array([len(speech.samples) for speech in speeches], np.int32),
        voices=np.array([voice for _, voice in spoken], np.uint8),
        texts=[text for (text, _), _ in spoken],
    )


def produce(
    teacher: Teacher,
    source: Sequence[Reading],
    out: Path,
    name: str,
    hours: float,
    seed: int,
) -> None:
    """Shards named `name`-00000 and so on, until there are `hours` of them."""
    made, number, block = 0.0, 0, 0
    waiting: list[tuple[Spoken, int]] = []
    while made < hours * 3600:
        chance = random.Random(f"{seed} {name} {block}")
        voice = block % len(VOICE_NAMES)
        start = block * _BLOCK % len(source)
        chosen = source[start : start + _BLOCK]
        block += 1
        spoken = [(r.text, s) for r, s in teacher.speak(chosen, VOICE_NAMES[voice])]
        chance.shuffle(spoken)
        waiting += [(text, voice) for text in texts(spoken, chance)]
        while (found := _cut(waiting)) is not None:
            _shard(waiting[:found]).save(out / f"{name}-{number:05d}.npz")
            waiting = waiting[found:]
            number, made = number + 1, made + SHARD_SECONDS


def _cut(waiting: Sequence[tuple[Spoken, int]]) -> int | None:
    """How many of the texts make a shard; None if they are too few."""
    seconds = 0.0
    for count, ((_, speech), _) in enumerate(waiting, 1):
        seconds += len(speech.samples) / SAMPLE_RATE
        if seconds >= SHARD_SECONDS:
            return count
    return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    folder = Path("build/demo_voice")
    parser.add_argument("--readings", type=Path, default=folder / "readings.jsonl")
    parser.add_argument("--weights", type=Path, default=folder / "kokoro.pt")
    parser.add_argument("--styles", type=Path, default=folder / "styles")
    parser.add_argument("--out", type=Path, default=folder / "speech")
    parser.add_argument("--hours", type=float, default=100.0)
    parser.add_argument("--part", type=int, default=0)
    parser.add_argument("--parts", type=int, default=1)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    given.out.mkdir(parents=True, exist_ok=True)
    source = list(readings(given.readings))[given.part :: given.parts]
    teacher = Teacher(given.weights, given.styles, torch.device(given.device))
    begun = time.monotonic()
    hours = given.hours / given.parts
    produce(teacher, source, given.out, f"speech-{given.part:02d}", hours, given.seed)
    print(f"{hours:.1f} h in {time.monotonic() - begun:.0f} s", flush=True)


if __name__ == "__main__":
    main()
