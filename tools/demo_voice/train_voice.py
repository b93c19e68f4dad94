"""Train talker and code predictor on the teacher's speech, coded by the trained codec.

    python -m tools.demo_voice.train_voice --minutes 25

Reads shards as they are made. The state is saved every few minutes; started
again, it goes on.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import Tensor

from tools.demo_voice.codes import read_tokenizer
from tools.demo_voice.listener import pitch_loss
from tools.demo_voice.phonetics import PHONES
from tools.demo_voice.settings import CODEBOOK_SIZE, CODEBOOKS, EOS, IM_START, PREDICTOR, TALKER
from tools.demo_voice.speech import SHARD_SECONDS
from tools.demo_voice.voice_data import Batch, VoicePool, corrupted
from tools.demo_voice.voice_feed import Feed
from tools.demo_voice.voice_model import Rows, Voice, pointer_loss


@dataclass(frozen=True, slots=True)
class Plan:
    minutes: float
    rows: int
    length: int
    predicted: int
    """Frames per step whose other codes are predicted: a sample trains as well as all."""
    rate: float
    dropout: float
    save_every: float
    listens_from: float
    """The share of the training after which the model also hears itself."""


_AVERAGE_EVERY, _AVERAGE_STEP = 10, 0.02


class Trainer:
    def __init__(self, plan: Plan, device: torch.device, *, compiled: bool) -> None:
        self.plan, self.device = plan, device
        self.voice = Voice(TALKER, PREDICTOR, plan.dropout).to(device)
        if compiled:
            for layer in (*self.voice.model.layers, *self.voice.code_predictor.model.layers):
                layer.compile()
        self._pointer = torch.compile(pointer_loss) if compiled else pointer_loss
        decayed = [p for p in self.voice.parameters() if p.ndim >= 2]
        others = [p for p in self.voice.parameters() if p.ndim < 2]
        self.optimizer = torch.optim.AdamW(
            [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}],
            plan.rate,
            betas=(0.9, 0.98),
            fused=device.type == "cuda",
        )
        self.average = {name: part.clone() for name, part in self.voice.state_dict().items()}
        """Of the weights over the last few hundred steps: what is exported."""
        self.seconds, self.steps = 0.0, 0

    def step(self, batch: Batch, share: float) -> dict[str, Tensor]:
        """One update; `share` of the whole training is done."""
        self.voice.train()
        noise = min(1.0, share * 8)
        rows = batch.rows
        if share > self.plan.listens_from:
            rows = self._self_heard(batch, rows, chance=min(0.5, share))
        rows = corrupted(rows, neighbour=0.05 * noise, tail=0.15 * noise, single=0.03 * noise)
        for group in self.optimizer.param_groups:
            group["lr"] = self.plan.rate * _schedule(share, self.steps)
        losses = self.losses(batch, rows)
        helpers = 0.3 * losses["phones"] + 0.2 * losses["pointer"] + 0.1 * losses["pitch"]
        total = losses["first"] + losses["others"] + helpers
        self.optimizer.zero_grad()
        total.backward()
        torch.nn.utils.clip_grad_norm_(self.voice.parameters(), 1.0)
        self.optimizer.step()
        self.steps += 1
        if self.steps % _AVERAGE_EVERY == 0:
            with torch.no_grad():
                for name, part in self.voice.state_dict().items():
                    self.average[name].lerp_(part, _AVERAGE_STEP)
        return losses

    @torch.no_grad()
    def _self_heard(self, batch: Batch, rows: Rows, chance: float) -> Rows:
        """A quarter of the rows with frames replaced, with probability `chance` each, by what the
        model says in their place: it learns to go on from its own speech (Bengio et al. 2015)."""
        count = max(1, len(rows.text) // 4)
        some = batch.first_rows(count)
        self.voice.eval()
        with self._mixed():
            hidden, _ = self.voice(some.rows)
            logits = self.voice.first_logits(hidden)[..., :CODEBOOK_SIZE].float()
            first = torch.distributions.Categorical(logits=2 * logits).sample()
            embedded = self.voice.model.codec_embedding(first).flatten(0, 1)
            others = self.voice.code_predictor(
                hidden.flatten(0, 1), embedded, some.others.flatten(0, 1)
            )
        self.voice.train()
        said = torch.cat((first[..., None], others.argmax(-1).view(some.others.shape)), -1)
        heard = F.pad(said, (0, 0, 1, 0))[:, :-1]  # a frame is heard one position later
        swap = (torch.rand(some.target.shape, device=self.device) < chance)[..., None]
        swap &= some.rows.codes[..., :1] >= 0
        codes = rows.codes.clone()
        codes[:count] = torch.where(swap, heard, some.rows.codes)
        return rows._replace(codes=codes)

    def _mixed(self) -> torch.autocast:
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda")

    def losses(self, batch: Batch, rows: Rows) -> dict[str, Tensor]:
        """All losses and some accuracies, as tensors on the device."""
        with self._mixed():
            hidden, pointer = self.voice(rows)
            logits = self.voice.first_logits(hidden)
            spoken = self.voice.phone_head(hidden).unflatten(-1, (-1, len(PHONES)))
            high = self.voice.pitch_head(hidden).unflatten(-1, (-1, 2))
            frames, codes = self._some_frames(batch)
            chosen = hidden.flatten(0, 1)[frames]
            first = self.voice.model.codec_embedding(codes[:, 0])
            noisy = torch.where(
                torch.rand(codes.shape, device=codes.device) < 0.03 * self.voice.training,
                torch.randint_like(codes, 256),
                codes,
            )
            others = self.voice.code_predictor(chosen, first, noisy[:, 1:])
        target = batch.target.flatten()
        phones = batch.phones.flatten()
        logits, spoken = logits.flatten(0, 1).float(), spoken.flatten(0, 2).float()
        said, ends = target >= 0, target == EOS
        right = others.argmax(-1) == codes[:, 1:]
        return {
            "pitch": pitch_loss(high, batch.pitch),
            "first": F.cross_entropy(logits, target, ignore_index=-1),
            "others": F.cross_entropy(others.flatten(0, 1).float(), codes[:, 1:].flatten()),
            "phones": F.cross_entropy(spoken, phones, ignore_index=-1),
            "pointer": self._pointed(batch, pointer),
            "first_right": ((logits.argmax(1) == target) & said).sum() / said.sum(),
            "phones_right": (spoken.argmax(1) == phones).sum() / (phones >= 0).sum(),
            "ends_right": ((logits.argmax(1) == EOS) & ends).sum() / ends.sum(),
            "second_right": right[:, 0].float().mean(),
            "eighth_right": right[:, 6].float().mean(),
            "last_right": right[:, -1].float().mean(),
        }

    def _pointed(self, batch: Batch, pointer: tuple[Tensor, Tensor]) -> Tensor:
        """The pointer loss of a quarter of the rows; it is dear, and learnt early."""
        count = max(1, len(batch.target) // 4)
        some = batch.first_rows(count)
        q, k = pointer
        return self._pointer((q[:count], k[:count]), some.rows, some.heard, some.seen)

    def _some_frames(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Flat positions [K] that predict a frame, and that frame's codes [K, 16]."""
        spoken = ((batch.target >= 0) & (batch.target != EOS)).flatten()
        frames = torch.multinomial(spoken.float(), self.plan.predicted, replacement=True)
        codes = torch.cat((batch.target[..., None], batch.others), -1).view(-1, CODEBOOKS)
        return frames, codes[frames]

    @torch.no_grad()
    def validate(self, batches: list[Batch]) -> dict[str, float]:
        self.voice.eval()
        every = [self.losses(batch, batch.rows) for batch in batches]
        return {name: float(np.mean([one[name].item() for one in every])) for name in every[0]}

    def save(self, path: Path) -> None:
        partial = path.with_suffix(".partial")
        state = {
            "voice": self.voice.state_dict(),
            "average": self.average,
            "optimizer": self.optimizer.state_dict(),
            "seconds": self.seconds,
            "steps": self.steps,
        }
        torch.save(state, partial)
        partial.rename(path)

    def restore(self, path: Path) -> None:
        """The state of an earlier run, or only weights from an exported checkpoint folder."""
        if path.is_dir():
            stored = load_file(path / "model.safetensors")
            weights = {name.removeprefix("talker."): part for name, part in stored.items()}
            self.voice.load_state_dict(self.voice.state_dict() | weights)
            self.average = {n: part.clone() for n, part in self.voice.state_dict().items()}
            return
        held = torch.load(path, map_location=self.device, weights_only=True)
        self.voice.load_state_dict(held["voice"])
        self.average = held["average"]
        self.optimizer.load_state_dict(held["optimizer"])
        self.seconds, self.steps = held["seconds"], held["steps"]


def _schedule(share: float, steps: int) -> float:
    """Warm up, stay, and fall over the last 60 % to a fiftieth."""
    return min(1.0, (steps + 1) / 500) * min(1.0, max(0.02, (1 - share) / 0.6))


def train(trainer: Trainer, feed: Feed, out: Path) -> None:
    plan, begun, before = trainer.plan, time.monotonic(), trainer.seconds
    saved = begun
    losses: dict[str, Tensor] = {}
    while trainer.seconds < plan.minutes * 60:
        losses = trainer.step(feed.next(), trainer.seconds / (plan.minutes * 60))
        if trainer.steps % 250 == 0:
            _report(trainer, feed, losses)
        now = time.monotonic()
        trainer.seconds = before + now - begun
        if now - saved > plan.save_every:
            saved = now
            trainer.save(out)
    trainer.save(out)
    if losses:
        _report(trainer, feed, losses)


def _report(trainer: Trainer, feed: Feed, losses: dict[str, Tensor]) -> None:
    train_figures = " ".join(f"{losses[n].item():.3f}" for n in ("first", "others", "phones"))
    valid = trainer.validate(feed.validation_batches(2))
    figures = " ".join(f"{name} {value:.3f}" for name, value in valid.items())
    hours = feed.shards * SHARD_SECONDS / 3600
    progress = f"{trainer.seconds:5.0f} s step {trainer.steps} {hours:.0f} h"
    print(f"{progress} | {train_figures} | {figures}", flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    folder = Path("build/demo_voice")
    parser.add_argument("--codes", type=Path, default=folder / "codes")
    parser.add_argument("--tokenizer", type=Path, default=folder / "tokenizer")
    parser.add_argument("--start", type=Path, help="checkpoint folder to begin with")
    parser.add_argument("--out", type=Path, default=folder / "voice.pt")
    parser.add_argument("--minutes", type=float, default=25.0)
    parser.add_argument("--rows", type=int, default=48)
    parser.add_argument("--length", type=int, default=768)
    parser.add_argument("--predicted", type=int, default=4096)
    parser.add_argument("--rate", type=float, default=1.5e-3)
    parser.add_argument("--dropout", type=float, default=0.05)
    parser.add_argument("--save-every", type=float, default=120.0)
    parser.add_argument("--listens-from", type=float, default=0.35)
    parser.add_argument("--frames", type=int, default=250_000_000, help="room for training data")
    parser.add_argument("--first-shards", type=int, default=30, help="read before training starts")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def main() -> None:
    given = _arguments()
    torch.manual_seed(given.seed)
    torch._dynamo.config.automatic_dynamic_shapes = False
    torch._dynamo.config.recompile_limit = 128  # of all layers together, each in several shapes
    torch._dynamo.config.accumulated_recompile_limit = 1024
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    device = torch.device(given.device)
    plan = Plan(
        given.minutes,
        given.rows,
        given.length,
        given.predicted,
        given.rate,
        given.dropout,
        given.save_every,
        given.listens_from,
    )
    tokenizer = read_tokenizer(given.tokenizer)
    template = [IM_START, *tokenizer.encode("assistant\n").ids]
    pool = VoicePool(template, device, frames=given.frames)
    feed = Feed(pool, given.codes, plan.rows, plan.length, given.seed)
    while feed.shards < given.first_shards:
        feed.take_in()
        time.sleep(0.5)
    trainer = Trainer(plan, device, compiled=device.type == "cuda")
    for path in (given.start, given.out):
        if path is not None and path.exists():
            trainer.restore(path)
    feed.start()
    train(trainer, feed, given.out)


if __name__ == "__main__":
    main()
