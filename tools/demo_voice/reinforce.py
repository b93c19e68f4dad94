"""Teach a voice to say words as it said them in the tries that were understood.

    python -m tools.demo_voice.reinforce --start build/demo_voice/checkpoint --minutes 2

Codes of frames that gained (`tries`) become more probable, and those that lost, less: a policy
gradient that is clipped (PPO). All else shall stay as it is, so it counts, too, how far the
probabilities of all codes come from what they were. The result is read by `export --voice`;
`silent_start` follows.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from tools.demo_voice.codes import prompt_start, read_tokenizer
from tools.demo_voice.recording import Losses, adamw, mixed, update
from tools.demo_voice.settings import BOS, PREDICTOR, TALKER
from tools.demo_voice.tries import PREDICTOR_TEMPERATURE, TEMPERATURE, TriedShard
from tools.demo_voice.voice_data import Batch, VoicePool
from tools.demo_voice.voice_model import Voice, pointer_loss
from tools.demo_voice.voice_trainer import read_voice

_RATIOS = (0.2, 10.0)
"""How much less and more probable a code shall become by its gain alone. Beyond them it neither
gains nor loses: one that was hardly probable can become a million times as probable, and a loss
by that would be all that is learnt."""
_WARM_UP = 20
_POINTER = 0.5


@dataclass(frozen=True, slots=True)
class Plan:
    """`rows` of `length` positions a step; the other codes of `predicted` frames; `likeness`: how
    much it counts to stay as it is."""

    minutes: float
    rows: int
    rate: float
    likeness: float
    length: int = 1024
    predicted: int = 2048


class TriedPool:
    """Tries on the device, with what their frames gained."""

    def __init__(self, template: Sequence[int], device: torch.device, *, frames: int) -> None:
        self._pool = VoicePool(template, device, frames=frames)
        self._device = device
        self._gains = torch.zeros(0, device=device)
        self._ends = torch.zeros(0, device=device)
        self._layouts = np.zeros((0, 2), np.int64)

    def add(self, shard: TriedShard) -> bool:
        """Keep a shard if there is room."""
        if not self._pool.add(shard):
            return False
        self._gains = torch.cat((self._gains, self._moved(shard.gains)))
        self._ends = torch.cat((self._ends, self._moved(shard.ends)))
        self._layouts = np.concatenate((self._layouts, shard.layouts))
        return True

    def _moved(self, values: np.ndarray) -> Tensor:
        return torch.from_numpy(values.astype(np.float32)).to(self._device)

    def batches(self, rows: int, length: int, seed: int) -> Iterator[tuple[Batch, Tensor]]:
        """Rows of random tries without end, and the gain of what each position predicts [B, L]."""
        chance = np.random.default_rng(seed)
        while True:
            order = chance.permutation(len(self._layouts))
            packed = self._pool.pack(order, self._layouts[order], length)
            for begin in range(0, len(packed), rows):
                plan = self._pool.plan(packed[begin : begin + rows])
                batch = self._pool.batch(plan, rows, length)
                yield batch, self._gained(batch, plan.to(self._device))

    def _gained(self, batch: Batch, plan: Tensor) -> Tensor:
        rows = batch.rows
        live = rows.utterances >= 0
        utterance = rows.utterances.clamp(min=0)
        begins = rows.positions.new_zeros(len(plan))
        at = rows.control == BOS  # predicts the first frame
        begins[utterance[at]] = rows.positions[at]
        frame = rows.positions - begins[utterance]
        entry = plan[:, 0][utterance]
        first, _, _, frames, _ = self._pool.entries[entry].unbind(-1)
        spoken = self._gains[(first + frame).clamp(0, len(self._gains) - 1)]
        spoken = torch.where((frame >= 0) & (frame < frames), spoken, 0.0)
        return torch.where(live, torch.where(frame == frames, self._ends[entry], spoken), 0.0)


class Reinforcer:
    """Steps of the voice in the folder `start`."""

    def __init__(self, plan: Plan, start: Path, device: torch.device) -> None:
        self.plan, self.device = plan, device
        self.voice = Voice(TALKER, PREDICTOR, 0.0).to(device).eval()
        read_voice(self.voice, start)
        self._before = deepcopy(self.voice).requires_grad_(False)
        self._rate = torch.zeros((), device=device)
        self._optimizer = adamw(list(self.voice.parameters()), self._rate, betas=(0.9, 0.98))
        self.steps = 0

    def step(self, batch: Batch, gained: Tensor, share: float) -> Losses:
        """One update; `share` of the whole training is done."""
        warm = min(1.0, (self.steps + 1) / _WARM_UP)
        self._rate.fill_(self.plan.rate * warm * max(0.05, 1 - share))
        losses = self.losses(batch, gained)
        likeness = self.plan.likeness * (losses["first_apart"] + losses["others_apart"])
        update(
            self._optimizer,
            losses["first"] + losses["others"] + likeness + _POINTER * losses["pointer"],
        )
        self.steps += 1
        return losses

    def losses(self, batch: Batch, gained: Tensor) -> Losses:
        """`first` and `others` fall as codes that gained become more probable; `…_apart` is how far
        their probabilities are from those of the start, in nats a frame."""
        with mixed(self.device):
            hidden, pointer = self.voice(batch.rows)
            told = batch.target >= 0
            logits = self.voice.first_logits(hidden[told]).float()
            with torch.no_grad():
                hidden_before, _ = self._before(batch.rows)
                before = self._before.first_logits(hidden_before[told]).float()
        at, codes = self._some_frames(batch, gained)
        others = self._others(self.voice, hidden, at, codes)
        with torch.no_grad():
            others_before = self._others(self._before, hidden_before, at, codes)
        return {
            "first": gaining(
                before[:, None] / TEMPERATURE,
                logits[:, None] / TEMPERATURE,
                batch.target[told][:, None],
                gained[told],
            ),
            "first_apart": _apart(before, logits),
            "others": gaining(
                others_before / PREDICTOR_TEMPERATURE,
                others / PREDICTOR_TEMPERATURE,
                codes[:, 1:],
                gained.flatten()[at],
            ),
            "others_apart": _apart(others_before, others),
            "pointer": pointer_loss(pointer, batch.rows, batch.heard, batch.seen),
        }

    def _others(self, voice: Voice, hidden: Tensor, at: Tensor, codes: Tensor) -> Tensor:
        """Logits [K, 15, 256] of the other codes of frames [K, 16] that are predicted `at` [K]."""
        with mixed(self.device):
            first = voice.model.codec_embedding(codes[:, 0])
            return voice.code_predictor(hidden.flatten(0, 1)[at], first, codes[:, 1:]).float()

    def _some_frames(self, batch: Batch, gained: Tensor) -> tuple[Tensor, Tensor]:
        """Flat positions [K] that predict a frame, those that gained or lost first, and the codes
        of these frames [K, 16]."""
        spoken = batch.spoken()
        chance = torch.rand(spoken.shape, device=spoken.device) + (gained != 0)
        ranked = torch.where(spoken, chance, -1.0).flatten()
        at = ranked.topk(min(self.plan.predicted, int(spoken.sum()))).indices
        return at, batch.frame_codes(at)

    def save(self, path: Path) -> None:
        """As `export` reads it."""
        torch.save({"average": self.voice.state_dict()}, path)


def gaining(before: Tensor, now: Tensor, codes: Tensor, gained: Tensor) -> Tensor:
    """Of logits [K, n, V] of the start and of now, codes [K, n] and the gains [K] of their frames:
    what falls below 0 as codes with a gain become more probable, up to some times as they were
    (https://arxiv.org/abs/1707.06347, section 3, and https://arxiv.org/abs/1912.09729 for those
    that lost). Where gains are small or few, it counts as much beside the likeness."""
    ratio = (_likely(now, codes) - _likely(before, codes)).exp()
    gain = gained[:, None]
    better = torch.minimum(gain * ratio.clamp(max=_RATIOS[1]), gain * ratio.clamp(*_RATIOS))
    return (gain - better).mean(1).sum() / gained.abs().sum().clamp(min=1)


def _likely(logits: Tensor, codes: Tensor) -> Tensor:
    return logits.log_softmax(-1).gather(-1, codes[..., None])[..., 0]


def _apart(before: Tensor, now: Tensor) -> Tensor:
    """Of logits [..., V]: the divergence of what they are now from what they were, in nats, on
    average."""
    was = before.log_softmax(-1)
    return (was.exp() * (was - now.log_softmax(-1))).sum(-1).mean()


def reinforce(learner: Reinforcer, pool: TriedPool, seed: int) -> None:
    """Learn for as long as is planned."""
    begun, whole = time.monotonic(), 60 * learner.plan.minutes
    for batch, gained in pool.batches(learner.plan.rows, learner.plan.length, seed):
        took = time.monotonic() - begun
        if took >= whole:
            break
        losses = learner.step(batch, gained, took / whole)
        if learner.steps % 20 == 1:
            figures = " ".join(f"{name} {value.item():.4f}" for name, value in losses.items())
            print(f"{took:5.0f} s step {learner.steps} {figures}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    folder = Path("build/demo_voice")
    add = parser.add_argument
    add("--start", type=Path, default=folder / "checkpoint", help="the voice that made the tries")
    add("--tries", type=Path, default=folder / "tries")
    add("--out", type=Path, default=folder / "voice.pt")
    add("--minutes", type=float, default=2.0)
    add("--rate", type=float, default=3e-5)
    add("--rows", type=int, default=16)
    add("--likeness", type=float, default=5.0, help="how much it counts to stay alike")
    add("--frames", type=int, default=20_000_000, help="room for tries")
    add("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    add("--seed", type=int, default=1)
    given = parser.parse_args()
    torch.manual_seed(given.seed)
    torch.backends.cuda.matmul.allow_tf32 = True
    device = torch.device(given.device)
    template = prompt_start(read_tokenizer(given.start))
    pool = TriedPool(template, device, frames=given.frames)
    for path in sorted(given.tries.glob("tries-*.npz")):
        if not pool.add(TriedShard.load(path)):
            parser.error(f"--frames {given.frames} leaves no room for {path}: give more")
    plan = Plan(given.minutes, given.rows, given.rate, given.likeness)
    learner = Reinforcer(plan, given.start, device)
    reinforce(learner, pool, given.seed)
    learner.save(given.out)


if __name__ == "__main__":
    main()
