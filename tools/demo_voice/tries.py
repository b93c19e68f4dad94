"""Texts said several times, and which of their words were understood: what `reinforce` learns from.

    python -m tools.demo_voice.tries --checkpoint build/demo_voice/checkpoint --minutes 4

A word that is understood in some tries and not in others was said better in those. How much better
is its gain; where all tries were alike there is nothing to learn. The last word of a question that
asks for yes or no gains also by its rise.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path

import numpy as np
import torch
from msgspec.structs import replace

from realtime_tts.sampling import Sampling
from tools.demo_voice.codes import CodedShard, encoder, read_tokenizer
from tools.demo_voice.compare import AT_ONCE, Ears, transcripts
from tools.demo_voice.crowd import GPU_MEMORY, Crowd, Job, job
from tools.demo_voice.judge import understood
from tools.demo_voice.own_speech import texts, voice_of
from tools.demo_voice.phonetics import spelled_out
from tools.demo_voice.pitch import Pitch
from tools.demo_voice.questions import rises
from tools.demo_voice.recognise import Recording
from tools.demo_voice.student import LAYOUTS, SAMPLE_RATE
from tools.demo_voice.utterance import Text, Utterance, coded
from tools.demo_voice.whisper_batches import WhisperBatches

TRIES = 8
"""Of each text."""
TEMPERATURE, PREDICTOR_TEMPERATURE = 0.8, 0.3
"""The talker's is high, so that tries differ in what it says."""
_RISE = 6.0
"""Semitones within a question's last quarter second; a further rise gains nothing."""
_MOST_WORDS = 60  # of a text: Whisper hears half a minute
_SHARD = 512  # tries

Group = list[Utterance]
"""All tries of a text."""


@dataclass(frozen=True, slots=True, eq=False)
class TriedShard(CodedShard):
    """Tries, and what each of their frames gained: [F] float16. Of each utterance, `ends` [E]
    float16 is the gain of ending there, and `layouts` [E, 2] is how it was said, as
    `VoicePool.pack` takes it."""

    gains: np.ndarray
    ends: np.ndarray
    layouts: np.ndarray


class Trier:
    """Says every text `TRIES` times in one layout. `memory`: as of a crowd."""

    def __init__(
        self, checkpoint: Path, texts: Iterable[Text], seed: int, device: torch.device, memory: str
    ) -> None:
        self._crowd = Crowd(checkpoint, self._next_job, device, memory)
        self._encode = encoder(read_tokenizer(checkpoint))
        self._seed = seed
        self._planned = enumerate(text for text in texts for _ in range(TRIES))

    async def groups(self) -> AsyncGenerator[Group]:
        """The tries of each text, when all of them are over."""
        waiting: defaultdict[int, Group] = defaultdict(list)
        async with aclosing(self._crowd.spoken()) as spoken:
            async for one in spoken:
                group = waiting[one.attempt // TRIES]
                group.append(one)
                if len(group) == TRIES:
                    yield waiting.pop(one.attempt // TRIES)

    def _next_job(self, sampling: Sampling) -> Job | None:
        planned = next(self._planned, None)
        if planned is None:
            return None
        said, text = planned
        predictor = replace(sampling.predictor, temperature=PREDICTOR_TEMPERATURE)
        return job(
            self._encode,
            text,
            voice_of(text[0]),
            LAYOUTS[said // TRIES % len(LAYOUTS)],
            1_000_000 * self._seed + said,
            replace(sampling, temperature=TEMPERATURE, predictor=predictor),
            said,
        )


def right_words(utterance: Utterance, heard: str) -> list[bool]:
    """Which of its text's words were understood; none of an utterance that was cut off."""
    words = _words(utterance.text)
    if utterance.reason != "complete":
        return [False] * len(words)
    return understood(words, heard)


def risen(group: Group) -> np.ndarray:
    """[tries, words] float32 from -1 to 1: how far each question of a text rises, at its last word;
    0 at all other words. Where too little of a try has a pitch, it rises as the others do."""
    text = group[0].text
    found = np.zeros((len(group), len(_words(text))), np.float32)
    last = np.cumsum([len(sentence.split()) for sentence in text]) - 1
    for number, sentence in enumerate(text):
        if rises(sentence):
            sounds = (one.sentences()[number][1] for one in group)
            rise = np.array(
                [Pitch.of(Recording(sound, SAMPLE_RATE)).terminal() for sound in sounds]
            )
            known = rise[~np.isnan(rise)].clip(-_RISE, _RISE) / _RISE
            found[:, last[number]] = known.mean() if len(known) else 0.0
            found[~np.isnan(rise), last[number]] = known
    return found


def gains(reached: np.ndarray) -> np.ndarray:
    """[tries, words] -> the same shape: how much more a word reached than in the other tries (a
    leave-one-out baseline, https://arxiv.org/abs/2402.14740)."""
    tries = len(reached)
    return (reached - reached.mean(0)) * (tries / (tries - 1))


def frame_gains(words: np.ndarray, gained: np.ndarray) -> np.ndarray:
    """[F] for frames that say the words [F] (-1: none). The frame before a word counts for it, too:
    most words begin there."""
    with_none = np.append(gained, 0.0)
    following = np.append(words[1:], -1)
    begins = np.where(following != words, with_none[following], 0.0)
    found: np.ndarray = with_none[words] + begins
    return found


def tried(groups: Sequence[Group], heard: Iterator[str]) -> TriedShard:
    """A shard of all tries; `heard` is what was heard of each. What is misheard in most tries of a
    text counts most: what is so in few is seldom said at the voice's own temperature."""
    frames: list[np.ndarray] = []
    ends: list[float] = []
    every = [one for group in groups for one in group]
    for group in groups:
        right = np.array([right_words(one, next(heard)) for one in group], np.float32)
        understood_better = gains(right) * (1 - right.mean(0))
        risen_more = gains(risen(group))
        for one, gained, rise in zip(group, understood_better, risen_more, strict=True):
            frames.append(frame_gains(one.spoken_words(), gained + rise))
            ends.append(float(gained[-1]))
    return TriedShard(
        **asdict(coded([(one, [True] * len(one.text)) for one in every])),
        gains=np.concatenate(frames).astype("f2"),
        ends=np.array(ends, "f2"),
        layouts=np.array([(one.layout == "full_text", True) for one in every], np.int64),
    )


def _words(text: Text) -> list[str]:
    return " ".join(text).split()


def _is_short(text: Text) -> bool:
    return len(_words(text)) <= _MOST_WORDS


async def collect(
    trier: Trier, ears: Ears, at_once: int, shelf: Iterator[Path], seconds: float
) -> None:
    """Store shards for so many seconds, or until no text is left; the last one may be small."""
    begun, done, full = time.monotonic(), 0, list[Group]()

    def store(groups: Sequence[Group]) -> None:
        every = [one for group in groups for one in group]
        tried(groups, transcripts(every, ears, at_once)).save(next(shelf))

    async with aclosing(trier.groups()) as groups:
        async for group in groups:
            full.append(group)
            if TRIES * len(full) >= _SHARD:
                await asyncio.to_thread(store, full)
                done, full = done + len(full), []
                took = time.monotonic() - begun
                print(f"{took:5.0f} s: {done} texts, {TRIES} times each", flush=True)
                if took > seconds:
                    break
    if full:
        store(full)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    folder = Path("build/demo_voice")
    add = parser.add_argument
    add("--checkpoint", type=Path, default=folder / "checkpoint")
    add("--sentences", type=Path, default=folder / "sentences.txt")
    add("--out", type=Path, default=folder / "tries")
    add("--minutes", type=float, default=4.0)
    add("--part", type=int, default=0)
    add("--parts", type=int, default=1, help="processes, which share the sentences")
    add("--gpu-memory", default=GPU_MEMORY, help="of the engine")
    add("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    lines = given.sentences.read_text("utf-8").splitlines()[given.part :: given.parts]
    said = filter(_is_short, texts(map(spelled_out, lines), given.part))
    device = torch.device(given.device)
    trier = Trier(given.checkpoint, said, given.part, device, given.gpu_memory)
    shelf = (given.out / f"tries-{given.part}-{number:04d}.npz" for number in count())
    ears = WhisperBatches(device)
    asyncio.run(collect(trier, ears, AT_ONCE[device.type], shelf, 60 * given.minutes))


if __name__ == "__main__":
    main()
