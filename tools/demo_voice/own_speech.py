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
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from realtime_tts.engine.interface import UtteranceSpec
from realtime_tts.engine.link import (
    Append,
    Audio,
    Command,
    Ended,
    EngineLink,
    Event,
    Failed,
    Finish,
    Open,
    Refused,
)
from realtime_tts.engine.links import make_links
from realtime_tts.errors import CheckpointError, EngineError
from realtime_tts.metrics import Metrics
from realtime_tts.sampling import PredictorSampling, Sampling
from tools.demo_voice.codes import encoder, read_tokenizer, word_tokens
from tools.demo_voice.judge import Judge
from tools.demo_voice.phonetics import spelled_out
from tools.demo_voice.speech import ENDS, LENGTHS, VOICE_NAMES
from tools.demo_voice.student import LAYOUTS, StudentSettings
from tools.demo_voice.utterance import Kept, Text, Utterance, coded

_ON_GPU: dict[str, Any] = {"kind": "process", "dtype": "bfloat16", "gpu_memory": "30%"}
"""Of the engine: it needs the interpreter as much as the judge does. One process uses two fifths of
a GPU, so two share it, and their judges need memory as well."""
_SESSIONS = {"cuda": 256, "cpu": 24}
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


class Speaker:
    """Says texts with an engine of its own, many at a time."""

    def __init__(
        self, checkpoint: Path, texts: Iterable[Text], seed: int, device: torch.device
    ) -> None:
        self._sessions = _SESSIONS[device.type]
        settings = StudentSettings(checkpoint, device.type, threads=1, sessions=self._sessions)
        on_gpu = _ON_GPU if device.type == "cuda" else {}
        self._config = replace(settings.engine(), **on_gpu)
        self._encode = encoder(read_tokenizer(checkpoint))
        self._texts = iter(texts)
        self._again: list[tuple[Text, int]] = []
        self._seed, self._opened = seed, 0
        self._link: EngineLink | None = None
        self._speaking: dict[str, Utterance] = {}
        self._over: asyncio.Queue[Utterance] = asyncio.Queue()

    def again(self, utterance: Utterance) -> None:
        """Say this text next, if it has not been said as often as there are temperatures."""
        if utterance.attempt + 1 < len(_TEMPERATURES):
            self._again.append((utterance.text, utterance.attempt + 1))

    async def spoken(self) -> AsyncGenerator[Utterance]:
        """Utterances as they end, until no text is left. Raises CheckpointError, and EngineError
        if the engine does not speak a text."""
        link = make_links((self._config,), Metrics(), lambda *stage: None)
        link.start(self._deliver)
        try:
            while not (status := link.status()).ready:
                if status.failure is not None:
                    raise CheckpointError(status.failure)
                await asyncio.sleep(0.05)
            self._link = link
            self._fill()
            while self._speaking or not self._over.empty():
                utterance = await self._over.get()
                if utterance.failure:
                    raise EngineError(f"{' '.join(utterance.text)!r}: {utterance.failure}")
                yield utterance
                self._fill()
        finally:
            self._link = None
            await link.stop()

    def _fill(self) -> None:
        while self._link is not None and len(self._speaking) < self._sessions:
            text, attempt = self._again.pop() if self._again else (next(self._texts, None), 0)
            if text is None:
                return
            self._link.submit(*self._open(text, attempt))

    def _open(self, text: Text, attempt: int) -> list[Command]:
        self._opened += 1
        id = f"utterance-{self._opened}"
        ids, words = word_tokens(self._encode, " ".join(text))
        self._speaking[id] = Utterance(text, attempt, ids, words)
        sampling = Sampling(
            temperature=_TEMPERATURES[attempt],
            repetition_penalty=1.0,
            predictor=PredictorSampling(temperature=_TEMPERATURES[0]),
        )
        spec = UtteranceSpec(
            voice=VOICE_NAMES[self._speaking[id].voice],
            language="english",
            seed=1_000_000 * self._seed + self._opened,
            sampling=sampling,
            layout=LAYOUTS[self._opened % len(LAYOUTS)],
        )
        return [Open(id, spec), Append(id, ids), Finish(id)]

    def _deliver(self, events: Sequence[Event]) -> None:
        for event in events:
            if isinstance(event, Audio):
                utterance = self._speaking[event.id]
                utterance.pcm += event.pcm
                utterance.codes += event.codes
                utterance.tokens += event.tokens
            elif isinstance(event, Ended):
                utterance = self._speaking.pop(event.id)
                utterance.reason = event.reason
                self._over.put_nowait(utterance)
            elif isinstance(event, Failed | Refused):
                utterance = self._speaking.pop(event.id)
                utterance.failure = event.message
                self._over.put_nowait(utterance)
        self._fill()  # also while what was said is judged


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
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    lines = given.sentences.read_text("utf-8").splitlines()[given.part :: given.parts]
    sentences = map(spelled_out, lines)
    device = torch.device(given.device)
    speaker = Speaker(given.checkpoint, texts(sentences, given.part), given.part, device)
    shelf = Shelf(given.out, f"speech-own-{given.part}", given.leave_out)
    asyncio.run(keep(speaker, Judge(device), shelf, 60 * given.minutes))


if __name__ == "__main__":
    main()
