"""Speech of a checkpoint's own that Whisper understands, as codes that `train_voice` learns from.

    python -m tools.demo_voice.own_speech --checkpoint build/demo_voice/checkpoint --minutes 4

The last thing a voice learns, by rejection sampling: it says many texts, and learns from those that
were said right. What was misheard is said once more, with more chance.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import time
import zlib
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import aclosing
from pathlib import Path

import torch
from msgspec.structs import replace

from realtime_tts.sampling import Sampling
from tools.demo_voice.codes import encoder, read_tokenizer
from tools.demo_voice.crowd import GPU_MEMORY, Crowd, Job, job
from tools.demo_voice.judge import Judge
from tools.demo_voice.phonetics import spelled_out
from tools.demo_voice.speech import ENDS, LENGTHS, VOICE_NAMES
from tools.demo_voice.student import LAYOUTS
from tools.demo_voice.utterance import Kept, Text, Utterance, coded

_TEMPERATURES = (0.3, 0.5)
"""Of the first try, and of the second."""
_MOST_WORDS = 200  # of a text: 80 seconds
_SHARD = 200  # utterances


def texts(sentences: Iterable[str], seed: int) -> Iterator[Text]:
    """Sentences in this order, joined to texts of different lengths, as the teacher's are."""
    chance = random.Random(seed)
    picked: list[str] = []
    wanted = 0
    for sentence in sentences:
        words = len(" ".join((*picked, sentence)).split())
        if picked and not (
            len(picked) < wanted and picked[-1].endswith(ENDS) and words <= _MOST_WORDS
        ):
            yield tuple(picked)
            picked = []
        if not picked:
            _, fewest, most = chance.choices(LENGTHS, [share for share, _, _ in LENGTHS])[0]
            wanted = chance.randint(fewest, most)
        picked.append(sentence)
    if picked:
        yield tuple(picked)


def voice_of(sentence: str) -> int:
    """Return the place in `VOICE_NAMES` of the voice that says a text with this first sentence."""
    return zlib.crc32(sentence.encode()) % len(VOICE_NAMES)


class Speaker:
    """Says texts, each by one of the voices and in one of the layouts. `memory`: as of a crowd."""

    def __init__(
        self,
        checkpoint: Path,
        texts: Iterable[Text],
        seed: int,
        device: torch.device,
        memory: str,
    ) -> None:
        self._crowd = Crowd(checkpoint, self._next_job, device, memory)
        self._encode = encoder(read_tokenizer(checkpoint))
        self._texts = iter(texts)
        self._again: list[tuple[Text, int]] = []
        self._seed, self._said = seed, 0

    def again(self, utterance: Utterance) -> None:
        """Say this text next, if it has not been said as often as there are temperatures."""
        if utterance.attempt + 1 < len(_TEMPERATURES):
            self._again.append((utterance.text, utterance.attempt + 1))

    def spoken(self) -> AsyncGenerator[Utterance]:
        """As of a crowd."""
        return self._crowd.spoken()

    def _next_job(self, sampling: Sampling) -> Job | None:
        text, attempt = self._again.pop() if self._again else (next(self._texts, None), 0)
        if text is None:
            return None
        self._said += 1
        return job(
            self._encode,
            text,
            voice_of(text[0]),
            LAYOUTS[self._said % len(LAYOUTS)],
            1_000_000 * self._seed + self._said,
            replace(sampling, temperature=_TEMPERATURES[attempt]),
            attempt,
        )


class Shelf:
    """A folder of shards, named `name`-0000 and so on."""

    def __init__(self, folder: Path, name: str, leave_out: int = 0) -> None:
        """`leave_out`: as in `coded`."""
        self._folder, self._name, self._number = folder, name, 0
        self._leave_out = leave_out
        self._kept: list[Kept] = []

    def put(self, kept: Sequence[Kept]) -> None:
        """Keep what has a sentence to learn."""
        self._kept += [(one, right) for one, right in kept if any(right)]
        if len(self._kept) >= _SHARD:
            self.store()

    def store(self) -> None:
        """Write what no shard holds yet."""
        if self._kept:
            path = self._folder / f"{self._name}-{self._number:04d}.npz"
            coded(self._kept, self._leave_out).save(path)
            self._number, self._kept = self._number + 1, []


async def keep(speaker: Speaker, judge: Judge, shelf: Shelf, seconds: float) -> None:
    """Put what is understood on the shelf, for so many seconds or until no text is left."""
    begun, said, learnt = time.monotonic(), 0, 0
    waiting: list[Utterance] = []
    async with aclosing(speaker.spoken()) as spoken:
        async for utterance in spoken:
            waiting.append(utterance)
            if sum(len(one.pcm) for one in waiting) < 2 * judge.samples:
                continue
            judged, waiting = await asyncio.to_thread(heard, judge, waiting), []
            for one, right in judged:
                if not any(right):
                    speaker.again(one)
                said, learnt = said + len(right), learnt + sum(right)
            shelf.put(judged)
            took = time.monotonic() - begun
            print(f"{took:5.0f} s: {said} sentences, {learnt} understood", flush=True)
            if took > seconds:
                break
    shelf.put(heard(judge, waiting))
    shelf.store()


def heard(judge: Judge, utterances: Sequence[Utterance]) -> list[Kept]:
    """What the judge thinks of each. Nothing is right where an utterance was cut off."""
    whole = [one for one in utterances if one.reason == "complete"]
    for one in whole:
        one.end_in_time()
    cut_off = [(one, [False]) for one in utterances if one.reason != "complete"]
    return [*cut_off, *zip(whole, judge.right(whole), strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    folder = Path("build/demo_voice")
    parser.add_argument("--checkpoint", type=Path, default=folder / "checkpoint")
    parser.add_argument("--sentences", type=Path, default=folder / "sentences.txt")
    parser.add_argument("--out", type=Path, default=folder / "own")
    parser.add_argument("--minutes", type=float, default=4.0)
    parser.add_argument("--part", type=int, default=0)
    parser.add_argument("--parts", type=int, default=1, help="processes, which share the sentences")
    parser.add_argument(
        "--leave-out", type=int, default=0, metavar="N", help="silent frames of every beginning"
    )
    parser.add_argument(
        "--sure", type=float, default=0.0, help="how probable Whisper finds each part of a word"
    )
    parser.add_argument("--gpu-memory", default=GPU_MEMORY, help="of the engine")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    lines = given.sentences.read_text("utf-8").splitlines()[given.part :: given.parts]
    sentences = map(spelled_out, lines)
    device = torch.device(given.device)
    speaker = Speaker(
        given.checkpoint, texts(sentences, given.part), given.part, device, given.gpu_memory
    )
    shelf = Shelf(given.out, f"speech-own-{given.part}", given.leave_out)
    judge = Judge(device, sure=given.sure)
    asyncio.run(keep(speaker, judge, shelf, 60 * given.minutes))


if __name__ == "__main__":
    main()
