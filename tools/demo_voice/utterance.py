"""An utterance of a voice's own, its sentences, and its codes as `train_voice` reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from realtime_tts.engine.made_codes import packed, unpacked
from tools.demo_voice.codec_trainer import FRAME_SAMPLES
from tools.demo_voice.codes import CodedShard
from tools.demo_voice.endings import ends_in_stop, frames_to_keep
from tools.demo_voice.judge import Sentence
from tools.demo_voice.settings import CODEBOOKS, PHONE_LABELS, UNKNOWN, UNLEARNT
from tools.demo_voice.student import Layout

_PAUSE = 2
"""Frames of silence behind a sentence that ends in a stop, and before the next one."""
_NEAR = 3  # frames around the first one of a sentence, in which the pause before it is looked for

Text = tuple[str, ...]
"""The sentences of a text."""


@dataclass(slots=True, eq=False)
class Utterance:
    """`ids`: the text's tokens; `words`: which of its words each of them lies in. `voice`: a place
    in `VOICE_NAMES`. `reason`: how it ended; `failure`: why the engine did not speak it. `pcm`,
    `codes` and `tokens` as in `engine.link.Audio`."""

    text: Text
    attempt: int
    ids: list[int]
    words: list[int]
    voice: int = 0
    layout: Layout = "streaming"
    reason: str = ""
    failure: str = ""
    pcm: bytearray = field(default_factory=bytearray)
    codes: bytearray = field(default_factory=bytearray)
    tokens: bytearray = field(default_factory=bytearray)

    @property
    def samples(self) -> np.ndarray:
        """[N] int16."""
        return np.frombuffer(bytes(self.pcm), "<i2")

    def end_in_time(self) -> None:
        """Leave out what is said behind sentences that end in a stop. There is silence instead, of
        which the text's beginning consists, too: a frame at the end, two before a sentence."""
        codes = unpacked(bytes(self.codes), CODEBOOKS).copy()
        frames, cuts = _in_frames(self.samples).copy(), self.cuts()
        left = np.ones(len(codes), bool)
        for sentence, begin, end in zip(self.text, [0, *cuts], [*cuts, len(codes)], strict=True):
            if ends_in_stop(sentence):
                kept = begin + frames_to_keep(frames[begin:end].ravel())
                codes[kept:end], frames[kept:end] = codes[0], 0
                left[kept + (1 if end == len(codes) else _PAUSE) : end] = False
        self.codes[:] = packed(codes[left])
        self.tokens[:] = packed(unpacked(bytes(self.tokens), 1)[left])
        self.pcm[:] = frames[left].tobytes()

    def spoken_words(self) -> np.ndarray:
        """[frames] int16; -1 for a frame of no token."""
        tokens = unpacked(bytes(self.tokens), 1)[:, 0]
        words = np.array([*self.words, -1], np.int16)
        return words[tokens.clip(-1, len(self.words) - 1)]

    def cuts(self) -> list[int]:
        """The frames in which sentences meet: the quietest ones around their first words."""
        frames = _in_frames(self.samples)
        loudness = np.abs(frames.astype(np.int32)).sum(1)
        reached = np.maximum.accumulate(self.spoken_words()[: len(frames)])
        cuts, before = [0], 0
        for sentence in self.text[:-1]:
            before += len(sentence.split())
            first = max(int(np.searchsorted(reached, before)) - _NEAR, cuts[-1])
            near = loudness[first : first + 2 * _NEAR]
            cuts.append(first + int(near.argmin()) if len(near) else len(frames))
        return cuts[1:]

    def sentences(self) -> list[Sentence]:
        """Each with its sound."""
        places = [cut * FRAME_SAMPLES + FRAME_SAMPLES // 2 for cut in self.cuts()]
        return list(zip(self.text, np.split(self.samples, places), strict=True))


def _in_frames(samples: np.ndarray) -> np.ndarray:
    """[N / 1920, 1920]"""
    whole = len(samples) // FRAME_SAMPLES
    return samples[: whole * FRAME_SAMPLES].reshape(whole, FRAME_SAMPLES)


Kept = tuple[Utterance, list[bool]]
"""An utterance, and which of its sentences shall be learnt."""


def coded(kept: Sequence[Kept], leave_out: int = 0) -> CodedShard:
    """A shard without phones and pitch, which nobody knows; the aligning heads tell the words.
    `leave_out`: frames at the beginning of every utterance that are not in it."""
    utterances = [one for one, _ in kept]
    codes = [
        unpacked(bytes(one.codes), CODEBOOKS)[leave_out:].astype(np.uint8) for one in utterances
    ]
    frames = np.array([len(part) for part in codes])
    counts = np.array([len(one.ids) for one in utterances])
    voices = np.array([one.voice for one in utterances])
    begins = (np.cumsum(frames) - frames, np.cumsum(counts) - counts)
    labels = np.concatenate([_labels(*one)[leave_out:] for one in kept])
    return CodedShard(
        codes=np.concatenate(codes),
        phones=np.repeat(labels[:, None], PHONE_LABELS, 1),
        pitch=np.full((len(labels), PHONE_LABELS), -1, np.float16),
        words=np.concatenate([one.spoken_words()[leave_out:] for one in utterances]),
        tokens=np.concatenate([np.array(one.ids, np.int16) for one in utterances]),
        token_words=np.concatenate([np.array(one.words, np.int16) for one in utterances]),
        entries=np.stack((*begins, voices, frames, counts), 1).astype(np.int32),
    )


def _labels(utterance: Utterance, right: Sequence[bool]) -> np.ndarray:
    """[frames] uint8: whether a frame shall be learnt. The pause behind a sentence is, however the
    next one was said: of the same silence at the end of a text, a voice learns to end."""
    size = len(utterance.spoken_words())
    labels = np.full(size, UNLEARNT, np.uint8)
    cuts = utterance.cuts()
    for begin, end, well in zip([0, *cuts], [*cuts, size], right, strict=True):
        if well:
            labels[begin : end + _PAUSE] = UNKNOWN
    if not right[-1]:  # perhaps it was never said: this is no place to end
        labels[-1:] = UNLEARNT
    return labels
