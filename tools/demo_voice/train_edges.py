"""Teach a decoder that an utterance is silent before its first sound and after its last.

    python -m tools.demo_voice.train_edges --out build/demo_voice/codec_edges.pt

`codes` puts utterances on the frame grid with digital silence around them, of which the speech that
the codec learned from has little: the decoder makes puffs of noise of its codes, and a talker
learns to say them. Codes are final by now, so the decoder learns: of what is speech its own output
is the target, of what is around it silence. It runs on a CPU, in the time of a few hundred steps.
"""

from __future__ import annotations

import argparse
import copy
import math
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from tools.demo_voice.codec_losses import MelDistance
from tools.demo_voice.codec_model import Codec
from tools.demo_voice.codec_trainer import FRAME_SAMPLES, LABELS
from tools.demo_voice.codes import load_codec
from tools.demo_voice.spectra import Upsample
from tools.demo_voice.speech import Shard
from tools.demo_voice.teacher import LABEL_SAMPLES

_MARGIN = 4
"""Frames around a segment which the encoder sees and the decoder does not speak."""
_LOUD = 0.003
"""Amplitude of 16 bits' full scale, 50 dB below it: what is softer at an edge is silence."""
_RAMP = 120
"""Samples, at 24 kHz, in which the target goes over from speech to silence."""


class Segments(NamedTuple):
    """Beginnings and ends of utterances."""

    samples: Tensor
    """[B, (frames + 2 margins) * 1280], 16 kHz, in [-1, 1]."""
    speech: Tensor
    """[B, frames * 1920], 24 kHz: 1 where speech is, 0 at its silent edge."""


class Edges:
    """Draws segments of `frames` frames from shards of speech."""

    def __init__(self, shards: list[Path], frames: int, seed: int) -> None:
        self._chance = np.random.default_rng(seed)
        self._frames = frames
        self._utterances = [
            utterance for path in shards for utterance in _utterances(Shard.load(path))
        ]

    def draw(self, rows: int) -> Segments:
        """Half beginnings, half ends, at any offset against the frame grid."""
        picked = [self._segment(is_end=row % 2 == 1) for row in range(rows)]
        samples, speech = (np.stack(parts) for parts in zip(*picked, strict=True))
        inner = torch.from_numpy(speech)[:, None]
        ramped = F.avg_pool1d(inner, 2 * _RAMP + 1, 1, _RAMP, count_include_pad=False)[:, 0]
        return Segments(torch.from_numpy(samples), ramped)

    def _segment(self, is_end: bool) -> tuple[np.ndarray, np.ndarray]:
        utterance = self._utterances[self._chance.integers(len(self._utterances))]
        offset = int(self._chance.integers(LABELS)) * LABEL_SAMPLES
        frames = -(-(len(utterance) + offset) // FRAME_SAMPLES)
        first = max(0, frames - self._frames) if is_end else 0
        begin = (first - _MARGIN) * FRAME_SAMPLES - offset  # in the utterance
        count = (self._frames + 2 * _MARGIN) * FRAME_SAMPLES
        places = np.arange(begin, begin + count)
        inside = (places >= 0) & (places < len(utterance))
        samples = np.where(inside, utterance[places.clip(0, len(utterance) - 1)], 0.0)
        loud = np.flatnonzero(np.abs(utterance) > _LOUD)
        spoken = (places >= loud[0]) & (places <= loud[-1])
        edge = _MARGIN * FRAME_SAMPLES
        return samples.astype(np.float32), _upsampled(spoken[edge:-edge])


def _utterances(shard: Shard) -> list[np.ndarray]:
    ends = np.cumsum(shard.lengths)
    cut = [shard.samples[end - size : end] for end, size in zip(ends, shard.lengths, strict=True)]
    scaled = [samples.astype(np.float32) / 32768 for samples in cut]
    return [samples for samples in scaled if np.abs(samples).max() > _LOUD]


def _upsampled(spoken: np.ndarray) -> np.ndarray:
    """A mask of 16 kHz at 24 kHz."""
    at = np.arange(len(spoken) * 3 // 2) * 2 // 3
    return spoken[at].astype(np.float32)


class EdgeTrainer:
    """Trains `codec.decoder` alone; what it was is kept beside it."""

    def __init__(self, codec: Codec, steps: int, rate: float) -> None:
        self._codec, self._steps, self._rate = codec, steps, rate
        self._before = copy.deepcopy(codec.decoder).requires_grad_(False)
        self._distance, self._upsample = MelDistance(), Upsample()
        self._optimizer = torch.optim.Adam(codec.decoder.parameters(), rate, betas=(0.8, 0.99))
        self._step = 0

    def step(self, segments: Segments) -> dict[str, float]:
        """One update. Gives the level of what is made at the edges, in dB of full scale, and how
        far speech is from what it was, as a share of its amplitude."""
        speech = segments.speech
        with torch.no_grad():
            codes = self._codec.encode(segments.samples)[:, _MARGIN:-_MARGIN]
            vectors = self._codec.quantizer.decode(codes)
            was = self._before(vectors)
            edge = _MARGIN * FRAME_SAMPLES * 3 // 2
            true = self._upsample(segments.samples)[:, edge:-edge]
            target = speech * was + (1 - speech) * true
        made = self._codec.decoder(vectors)
        loss = self._distance(made, target) + 10 * F.l1_loss(made, target)
        self._update(loss)
        quiet = ((1 - speech) * made.detach()).square().sum() / (1 - speech).sum().clamp(min=1)
        moved = (speech * (made.detach() - was)).abs().sum() / (speech * was).abs().sum()
        return {
            "loss": loss.item(),
            "edges dB": 10 * math.log10(quiet.item() + 1e-12),
            "moved": moved.item(),
        }

    def _update(self, loss: Tensor) -> None:
        done = self._step / self._steps
        self._optimizer.param_groups[0]["lr"] = self._rate * max(0.05, min(1.0, 2 * (1 - done)))
        self._optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self._codec.decoder.parameters(), 1.0)
        self._optimizer.step()
        self._step += 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    folder = Path("build/demo_voice")
    parser.add_argument("--speech", type=Path, default=folder / "speech")
    parser.add_argument("--codec", type=Path, default=folder / "codec.pt")
    parser.add_argument("--out", type=Path, required=True, help="the codec with its new decoder")
    parser.add_argument("--shards", type=int, default=6, help="of ten minutes each")
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--rows", type=int, default=8)
    parser.add_argument("--frames", type=int, default=12)
    parser.add_argument("--rate", type=float, default=3e-4)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    codec = load_codec(given.codec, torch.device("cpu")).requires_grad_(False)
    codec.decoder.requires_grad_(True)
    shards = sorted(given.speech.glob("speech-*.npz"))[: given.shards]
    if not shards:
        parser.error(f"no speech in {given.speech}: run tools.demo_voice.speech first")
    edges = Edges(shards, given.frames, given.seed)
    trainer = EdgeTrainer(codec, given.steps, given.rate)
    for number in range(1, given.steps + 1):
        report = trainer.step(edges.draw(given.rows))
        if number % 25 == 0 or number == 1:
            print(number, " ".join(f"{name} {value:.3f}" for name, value in report.items()))
            torch.save({"parts": [codec.state_dict()]}, given.out)
    torch.save({"parts": [codec.state_dict()]}, given.out)


if __name__ == "__main__":
    main()
