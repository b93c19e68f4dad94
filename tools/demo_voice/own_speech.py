"""Speech of a checkpoint's own that Whisper understands, as codes that `train_voice` learns from.

    python -m tools.demo_voice.own_speech --checkpoint build/demo_voice/checkpoint --minutes 20

The last thing a voice learns, by rejection sampling: it says many texts, and learns from those that
were said right. What was misheard is said once more, with more chance.
"""

from __future__ import annotations

import argparse
import asyncio
import time
import zlib
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from pathlib import Path

import numpy as np

from realtime_tts.engine.in_process import InProcessEngine
from realtime_tts.engine.interface import UtteranceSpec
from realtime_tts.engine.link import (
    Append,
    Audio,
    Command,
    Ended,
    Event,
    Failed,
    Finish,
    Open,
    Refused,
)
from realtime_tts.engine.load import engine_loader
from realtime_tts.engine.made_codes import unpacked
from realtime_tts.errors import CheckpointError
from realtime_tts.sampling import PredictorSampling, Sampling
from tools.demo_voice.codes import CodedShard, encoder, read_tokenizer, word_tokens
from tools.demo_voice.phonetics import spelled_out
from tools.demo_voice.recognise import Recording
from tools.demo_voice.settings import CODEBOOKS
from tools.demo_voice.speech import VOICE_NAMES
from tools.demo_voice.student import SAMPLE_RATE, StudentSettings
from tools.demo_voice.voice_data import UNKNOWN
from tools.demo_voice.voice_model import PHONE_LABELS
from tools.demo_voice.whisper import Whisper, as_said
from tools.demo_voice.words import normalise

_SESSIONS = 24
_TEMPERATURES = (0.3, 0.5)
"""Of the first try, and of the second."""
_HEARD_SECONDS = 27.0
"""Whisper hears half a minute at a time, however little is in it."""
_GAP = SAMPLE_RATE // 2  # between two utterances
_SHARD = 200  # utterances


@dataclass(slots=True, eq=False)
class Utterance:
    """`words`: which of the text's words each token lies in. `pcm`, `codes` and `tokens` as in
    `engine.link.Audio`."""

    text: str
    attempt: int
    ids: list[int]
    words: list[int]
    reason: str = ""
    pcm: bytearray = field(default_factory=bytearray)
    codes: bytearray = field(default_factory=bytearray)
    tokens: bytearray = field(default_factory=bytearray)

    @property
    def voice(self) -> int:
        """Which of the voices says this text."""
        return zlib.crc32(self.text.encode()) % len(VOICE_NAMES)

    @property
    def samples(self) -> np.ndarray:
        """[N] int16."""
        return np.frombuffer(bytes(self.pcm), "<i2")


class Speaker:
    """Says texts with an engine of its own, many at a time. Same texts and seed, same speech."""

    def __init__(self, checkpoint: Path, texts: Sequence[str], seed: int) -> None:
        self._config = StudentSettings(checkpoint, threads=1, sessions=_SESSIONS).engine()
        self._encode = encoder(read_tokenizer(checkpoint))
        self._left = [(text, 0) for text in reversed(texts)]
        self._seed, self._opened = seed, 0
        self._speaking: dict[str, Utterance] = {}
        self._over: asyncio.Queue[Utterance] = asyncio.Queue()

    def again(self, utterance: Utterance) -> None:
        """Say this text next, if it has not been said as often as there are temperatures."""
        if utterance.attempt + 1 < len(_TEMPERATURES):
            self._left.append((utterance.text, utterance.attempt + 1))

    async def spoken(self) -> AsyncGenerator[Utterance]:
        """Utterances as they end, until no text is left. Raises CheckpointError."""
        config = self._config
        link = InProcessEngine(engine_loader(config), config.scheduler, guards=config.guards)
        link.start(self._deliver)
        while not (status := link.status()).ready:
            if status.failure is not None:
                raise CheckpointError(status.failure)
            await asyncio.sleep(0.05)
        try:
            while self._left or self._speaking:
                while self._left and len(self._speaking) < _SESSIONS:
                    link.submit(*self._open(*self._left.pop()))
                yield await self._over.get()
        finally:
            await link.stop()

    def _open(self, text: str, attempt: int) -> list[Command]:
        self._opened += 1
        id = f"utterance-{self._opened}"
        ids, words = word_tokens(self._encode, text)
        utterance = self._speaking[id] = Utterance(text, attempt, ids, words)
        sampling = Sampling(
            temperature=_TEMPERATURES[attempt],
            repetition_penalty=1.0,
            predictor=PredictorSampling(temperature=_TEMPERATURES[0]),
        )
        spec = UtteranceSpec(
            voice=VOICE_NAMES[utterance.voice],
            language="english",
            seed=1_000_000 * self._seed + self._opened,
            sampling=sampling,
            layout="full_text",
        )
        return [Open(id, spec), Append(id, ids), Finish(id)]

    def _deliver(self, events: Sequence[Event]) -> None:
        for event in events:
            if isinstance(event, Audio):
                utterance = self._speaking[event.id]
                utterance.pcm += event.pcm
                utterance.codes += event.codes
                utterance.tokens += event.tokens
            elif isinstance(event, Ended | Failed | Refused):
                utterance = self._speaking.pop(event.id)
                utterance.reason = event.reason if isinstance(event, Ended) else event.message
                self._over.put_nowait(utterance)


class Judge:
    """Whisper, which hears as many utterances in a row as fit into its half minute."""

    def __init__(self) -> None:
        self._whisper = Whisper(beam=1)
        self._waiting: list[Utterance] = []

    def hear(self, utterance: Utterance) -> list[tuple[Utterance, bool]]:
        """Those judged by now, and whether they were understood."""
        if utterance.reason != "complete":
            return [(utterance, False)]
        samples = sum(len(one.samples) + _GAP for one in (*self._waiting, utterance))
        judged = self.rest() if samples > _HEARD_SECONDS * SAMPLE_RATE else []
        self._waiting.append(utterance)
        return judged

    def rest(self) -> list[tuple[Utterance, bool]]:
        """The same, of all that wait to be judged."""
        group, self._waiting = self._waiting, []
        if not group:
            return []
        gap = np.zeros(_GAP, np.int16)
        sound = np.concatenate([part for one in group for part in (gap, one.samples)])
        heard = self._whisper.transcribe(Recording(sound, SAMPLE_RATE))
        return list(zip(group, understood([one.text for one in group], heard), strict=True))


def understood(texts: Sequence[str], heard: str) -> list[bool]:
    """Which of the texts, said one after the other, were heard without an error. What is heard
    between two of them is an error of both."""
    words: list[str] = []
    spans = []
    for text in texts:
        begin = len(words)
        words += normalise(text)
        spans.append((begin, len(words)))
    found = normalise(as_said(heard))
    right = [True] * len(texts)
    matcher = SequenceMatcher(None, words, found, autojunk=False)
    for _, begin, end, found_begin, found_end in matcher.get_opcodes():
        # A compound that is written as one word or as two is no error.
        if "".join(words[begin:end]) == "".join(found[found_begin:found_end]):
            continue
        for number, (first, last) in enumerate(spans):
            inserted = begin == end and first <= begin <= last
            right[number] &= not (inserted or (begin < last and end > first))
    return right


def coded(utterances: Sequence[Utterance]) -> CodedShard:
    """A shard without phones and pitch, which nobody knows; the aligning heads tell the words."""
    codes = [unpacked(bytes(one.codes), CODEBOOKS).astype(np.uint8) for one in utterances]
    frames = np.array([len(part) for part in codes])
    counts = np.array([len(one.ids) for one in utterances])
    voices = np.array([one.voice for one in utterances])
    begins = (np.cumsum(frames) - frames, np.cumsum(counts) - counts)
    labels = (int(frames.sum()), PHONE_LABELS)
    return CodedShard(
        codes=np.concatenate(codes),
        phones=np.full(labels, UNKNOWN, np.uint8),
        pitch=np.full(labels, -1, np.float16),
        words=np.concatenate([_spoken_words(one) for one in utterances]),
        tokens=np.concatenate([np.array(one.ids, np.int16) for one in utterances]),
        token_words=np.concatenate([np.array(one.words, np.int16) for one in utterances]),
        entries=np.stack((*begins, voices, frames, counts), 1).astype(np.int32),
    )


def _spoken_words(utterance: Utterance) -> np.ndarray:
    """[frames] int16; -1 for a frame of no token."""
    tokens = unpacked(bytes(utterance.tokens), 1)[:, 0]
    words = np.array([*utterance.words, -1], np.int16)
    return words[tokens.clip(-1, len(utterance.words) - 1)]


async def keep(speaker: Speaker, judge: Judge, out: Path, name: str, seconds: float) -> None:
    """Shards of what is understood, named `name`-0000 and so on, for so many seconds or until no
    text is left."""
    kept: list[Utterance] = []
    tried, number, begun = 0, 0, time.monotonic()
    async with aclosing(speaker.spoken()) as spoken:
        async for utterance in spoken:
            tried += 1
            for one, right in await asyncio.to_thread(judge.hear, utterance):
                if right:
                    kept.append(one)
                else:
                    speaker.again(one)
            late = time.monotonic() > begun + seconds
            if kept and (late or len(kept) >= _SHARD):
                coded(kept).save(out / f"{name}-{number:04d}.npz")
                number, kept = number + 1, []
                print(f"{time.monotonic() - begun:5.0f} s: {tried} said", flush=True)
            if late:
                return
    kept += [one for one, right in judge.rest() if right]
    if kept:
        coded(kept).save(out / f"{name}-{number:04d}.npz")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    folder = Path("build/demo_voice")
    parser.add_argument("--checkpoint", type=Path, default=folder / "checkpoint")
    parser.add_argument("--texts", type=Path, default=folder / "sentences.txt")
    parser.add_argument("--out", type=Path, default=folder / "own")
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--part", type=int, default=0)
    parser.add_argument("--parts", type=int, default=1, help="processes, one to a core")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    lines = given.texts.read_text("utf-8").splitlines()[given.part :: given.parts]
    speaker = Speaker(given.checkpoint, [spelled_out(line) for line in lines], given.part)
    name = f"speech-own-{given.part}"
    asyncio.run(keep(speaker, Judge(), given.out, name, 60 * given.minutes))


if __name__ == "__main__":
    main()
