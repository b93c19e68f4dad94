"""Which of several checkpoints speaks best: quick figures, without the teacher and a server.

    python -m tools.demo_voice.compare build/demo_voice/one build/demo_voice/other --seeds 3

says all held-out texts, short turns and short replies with each checkpoint, by both voices and in
both layouts, and prints a row for each: how many words a greedy Whisper heard wrong; how long a
short text sounds behind a final stop; how far questions that ask for yes or no rise at their end;
in how many turns the aligning heads stepped back, which word times come from; how many turns were
cut off. Every turn is in --out. `evaluate` compares one checkpoint with its teacher.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import torch

from realtime_tts import demo_voice
from realtime_tts.engine.made_codes import unpacked
from realtime_tts.sampling import Sampling
from tools.demo_voice.codes import encoder, read_tokenizer
from tools.demo_voice.crowd import GPU_MEMORY, Crowd, Job, job
from tools.demo_voice.endings import ends_in_stop, release_seconds
from tools.demo_voice.phonetics import spelled_out
from tools.demo_voice.pitch import Pitch
from tools.demo_voice.questions import rises
from tools.demo_voice.recognise import PADDING_SECONDS, Recording
from tools.demo_voice.report import table
from tools.demo_voice.speech import VOICE_NAMES
from tools.demo_voice.student import LAYOUTS, SAMPLE_RATE, Layout
from tools.demo_voice.text_sets import TextSet
from tools.demo_voice.utterance import Utterance
from tools.demo_voice.whisper import Whispers, as_said
from tools.demo_voice.whisper_batches import WINDOW_SECONDS, WhisperBatches
from tools.demo_voice.words import word_errors

HERE = Path(__file__).parent
SETS = tuple(
    HERE / f"{name}.txt"
    for name in (
        "held_out",
        "held_out_harder",
        "held_out_questions",
        "held_out_letters",
        "held_out_replies",
        "short_turns",
        "short_replies",
    )
)
AT_ONCE = {"cuda": 128, "cpu": 4}
"""Recordings that Whisper hears."""
_LONG_RELEASE = 0.16
"""Seconds. The teacher's last for 0.06 to 0.12 s."""
_SHORT = 6
"""Words at most."""
_UNSPOKEN = 2
"""Tokens at the end of a text that need not be looked at: its punctuation."""


class Ears(Protocol):
    """Such as `WhisperBatches`."""

    def transcribe(self, sounds: Sequence[np.ndarray], sample_rate: int) -> list[str]: ...


@dataclass(frozen=True, slots=True)
class Request:
    """A text of a set, and the words that shall be heard."""

    set: str
    text: str
    words: str
    voice: int
    layout: Layout
    seed: int


@dataclass(frozen=True, slots=True)
class Heard:
    """How a text was said. `errors` of `words`; None: where there is nothing to measure."""

    request: Request
    heard: str
    words: int
    errors: int
    seconds: float
    release: float | None
    """Seconds of sound behind the final stop of a short text."""
    rise: float | None
    """Semitones, within the last quarter second of a question that asks for yes or no."""
    steps_back: int
    cut_off: bool
    """A guard ended it, or it did not come to the end of its text."""

    @classmethod
    def of(cls, request: Request, said: Utterance, heard: str) -> Heard:
        found = word_errors(request.words, as_said(heard))
        tokens = unpacked(bytes(said.tokens), 1)[:, 0]
        last = int(tokens.max(initial=-1))
        return cls(
            request,
            heard,
            found.words,
            found.errors,
            len(said.samples) / SAMPLE_RATE,
            release_seconds(said.samples) if _is_short(request.text) else None,
            _rise(said.samples) if rises(request.text) else None,
            int((np.diff(tokens) < 0).sum()),
            said.reason != "complete" or last < len(said.ids) - 1 - _UNSPOKEN,
        )


def _is_short(text: str) -> bool:
    """Whether it is short and ends in a stop. Long texts end softly: a whole word such as "band"
    would be taken for what sounds behind its first letter."""
    return ends_in_stop(text) and len(text.split()) <= _SHORT


def _rise(samples: np.ndarray) -> float | None:
    semitones = Pitch.of(Recording(samples, SAMPLE_RATE)).terminal()
    return None if math.isnan(semitones) else semitones


def requests(sets: Iterable[TextSet], seeds: int) -> Iterator[Request]:
    """Every text by every voice, in every layout and with every seed."""
    for texts in sets:
        for number, (text, words) in enumerate(zip(texts.texts, texts.words, strict=True)):
            for voice in range(len(VOICE_NAMES)):
                for layout in LAYOUTS:
                    for seed in range(1, seeds + 1):
                        yield Request(texts.name, text, words, voice, layout, 1000 * seed + number)


class Speaker:
    """Says requests with the checkpoint's own sampling."""

    def __init__(
        self, checkpoint: Path, wanted: Iterable[Request], device: torch.device, memory: str
    ) -> None:
        self._crowd = Crowd(checkpoint, self._next_job, device, memory)
        self._encode = encoder(read_tokenizer(checkpoint))
        self._wanted = iter(wanted)
        self._said: list[tuple[Request, Utterance]] = []

    async def spoken(self) -> list[tuple[Request, Utterance]]:
        """All of them, in their order."""
        async with aclosing(self._crowd.spoken()) as spoken:
            async for _ in spoken:
                pass  # each is known by then
        return self._said

    def _next_job(self, sampling: Sampling) -> Job | None:
        request = next(self._wanted, None)
        if request is None:
            return None
        text = (spelled_out(request.text),)
        found = job(self._encode, text, request.voice, request.layout, request.seed, sampling)
        self._said.append((request, found[0]))
        return found


def listen(said: Sequence[tuple[Request, Utterance]], ears: Ears, at_once: int) -> list[Heard]:
    """What is heard of each."""
    heard = transcripts([utterance for _, utterance in said], ears, at_once)
    return [Heard.of(*one, text) for one, text in zip(said, heard, strict=True)]


def transcripts(said: Sequence[Utterance], ears: Ears, at_once: int) -> Iterator[str]:
    """What is heard of each, with silence around it, in its first half minute."""
    silence, window = round(PADDING_SECONDS * SAMPLE_RATE), WINDOW_SECONDS * SAMPLE_RATE
    for begin in range(0, len(said), at_once):
        some = said[begin : begin + at_once]
        sounds = [np.pad(one.samples, silence)[:window] for one in some]
        yield from ears.transcribe(sounds, SAMPLE_RATE)


def header(heard: Sequence[Heard]) -> list[str]:
    """The names of the columns."""
    words: Counter[str] = Counter()
    for one in heard:
        words[one.request.set] += one.words
    return [
        "checkpoint",
        *(f"{name}, of {count}" for name, count in words.items()),
        f"behind a stop, ms; longer than {1000 * _LONG_RELEASE:.0f} ms",
        *(f"{name}: rise, semitones" for name in VOICE_NAMES),
        f"steps back, turns of {len(heard)}",
        "cut off",
    ]


def row(name: str, heard: Sequence[Heard]) -> list[str]:
    """A checkpoint's figures, as in `header`."""
    errors: Counter[str] = Counter()
    for one in heard:
        errors[one.request.set] += one.errors
    releases = [one.release for one in heard if one.release is not None]
    long = sum(release > _LONG_RELEASE for release in releases)
    return [
        name,
        *map(str, errors.values()),
        f"{1000 * _mean(releases):.0f}; {long} of {len(releases)}",
        *(f"{_mean(_rises_of(heard, voice)):.1f}" for voice in range(len(VOICE_NAMES))),
        str(sum(one.steps_back > 0 for one in heard)),
        str(sum(one.cut_off for one in heard)),
    ]


def _rises_of(heard: Sequence[Heard], voice: int) -> list[float]:
    return [one.rise for one in heard if one.request.voice == voice and one.rise is not None]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else math.nan


def main() -> None:
    given = _arguments()
    device = torch.device(given.device)
    sets = [TextSet.read(path, given.limit) for path in given.sets]
    ears, at_once = _ears(given.beam, device)
    rows: list[list[str]] = []
    found: dict[str, list[dict[str, object]]] = {}
    given.out.parent.mkdir(parents=True, exist_ok=True)
    for checkpoint in given.checkpoints:
        began = time.monotonic()
        speaker = Speaker(checkpoint, requests(sets, given.seeds), device, given.gpu_memory)
        heard = listen(asyncio.run(speaker.spoken()), ears, at_once)
        rows.append(row(checkpoint.name, heard))
        found[str(checkpoint)] = [asdict(one) for one in heard]
        given.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        print(f"{checkpoint}: {len(heard)} turns in {time.monotonic() - began:.0f} s", flush=True)
    print("\n".join(table(header(heard), rows)))


def _ears(beam: int | None, device: torch.device) -> tuple[Ears, int]:
    """A recogniser, and how many recordings it shall get at once."""
    if beam is None:
        return WhisperBatches(device), AT_ONCE[device.type]
    return Whispers(beam), 64 * beam


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("checkpoints", type=Path, nargs="*", default=[demo_voice.FOLDER])
    add("--sets", type=Path, nargs="+", default=SETS, help="files of texts")
    add("--seeds", type=int, default=1, help="of each text")
    add("--limit", type=int, help="only the first texts of each file")
    add("--out", type=Path, default=Path("build/demo_voice/compared.json"))
    add("--beam", type=int, metavar="PROCESSES", help="hear as `evaluate` does: slower, on the CPU")
    add("--gpu-memory", default=GPU_MEMORY, help="of the engine")
    add("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    return parser.parse_args()


if __name__ == "__main__":
    main()
