"""Train the codec on the teacher's speech.

    python -m tools.demo_voice.train_codec --speech build/demo_voice/speech --joint-minutes 5 --decoder-minutes 4

Two phases share the minutes: encoder, codebooks and decoder together; then, the codes being
final, the decoder alone against a discriminator. It may be stopped and started again.
"""

from __future__ import annotations

import argparse
import random
import time
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tools.demo_voice.codec_losses import (
    Discriminator,
    MelDistance,
    discriminator_loss,
    generator_losses,
)
from tools.demo_voice.codec_model import Codec
from tools.demo_voice.quantizer import _Codebook
from tools.demo_voice.settings import CODEC
from tools.demo_voice.speech import Shard
from tools.demo_voice.spectra import Upsample
from tools.demo_voice.teacher import LABEL_SAMPLES, PHONES

FRAME_SAMPLES = 1280
LABELS = FRAME_SAMPLES // LABEL_SAMPLES
_MARGIN = 4
"""Frames around a segment which the encoder sees and the decoder does not speak."""


@dataclass(frozen=True, slots=True)
class Plan:
    joint_minutes: float
    decoder_minutes: float
    rows: int
    frames: int
    rate: float = 1e-3
    save_every: float = 60.0

    def progress(self, seconds: float) -> tuple[bool, float]:
        """Whether the first phase is on, and how much of the present phase is done."""
        joint, alone = self.joint_minutes * 60, self.decoder_minutes * 60
        if seconds < joint:
            return True, seconds / joint
        return False, (seconds - joint) / alone if alone else 1.0


class SpeechPool:
    """All speech of a folder in one tensor on the device; takes in shards as they appear."""

    def __init__(self, folder: Path, device: torch.device, hours: float) -> None:
        self._folder, self._device = folder, device
        self._room = int(hours * 3600 * 16_000)
        self.samples = torch.zeros(self._room, dtype=torch.int16, device=device)
        self.phones = torch.zeros(self._room // LABEL_SAMPLES, dtype=torch.uint8, device=device)
        self.held, self._seen = 0, set[Path]()

    def refresh(self) -> None:
        """Take in new shards while there is room."""
        for path in sorted(self._folder.glob("speech-*.npz")):
            if path in self._seen or self.held == self._room:
                continue
            self._seen.add(path)
            shard = Shard.load(path)
            count = min(len(shard.samples), self._room - self.held)
            end = self.held + count
            self.samples[self.held : end] = torch.from_numpy(shard.samples[:count])
            labels = slice(self.held // LABEL_SAMPLES, end // LABEL_SAMPLES)
            self.phones[labels] = torch.from_numpy(shard.phones[: count // LABEL_SAMPLES])
            self.held = end

    def batch(self, rows: int, frames: int) -> tuple[Tensor, Tensor]:
        """Samples [rows, frames * 1280] in [-1, 1] and phones [rows, frames * 4], anywhere."""
        length = frames * FRAME_SAMPLES
        last = (self.held - length) // LABEL_SAMPLES
        start = torch.randint(last, (rows, 1), device=self._device)
        label = start + torch.arange(length // LABEL_SAMPLES, device=self._device)
        sample = start * LABEL_SAMPLES + torch.arange(length, device=self._device)
        return self.samples[sample].float() / 32768, self.phones[label].long()


class CodecTrainer:
    def __init__(self, pool: SpeechPool, device: torch.device, *, compiled: bool) -> None:
        self.pool, self.device = pool, device
        self.codec = Codec(CODEC).to(device)
        self.phones = nn.Linear(CODEC.codebook_dim, LABELS * len(PHONES)).to(device)
        self.judge = Discriminator().to(device)
        self.distance, self.upsample = MelDistance().to(device), Upsample().to(device)
        joint = [*self.codec.parameters(), *self.phones.parameters()]
        self._joint = torch.optim.AdamW(joint, 1e-3, betas=(0.8, 0.99), weight_decay=1e-3)
        self._alone = torch.optim.AdamW(
            self.codec.decoder.parameters(), 1e-3, betas=(0.8, 0.99), weight_decay=1e-3
        )
        self._judging = torch.optim.AdamW(self.judge.parameters(), 1e-3, betas=(0.8, 0.99))
        decoder = self.codec.decoder
        self._decode = torch.compile(decoder) if compiled else decoder
        self.seconds, self.steps = 0.0, 0

    def state(self) -> dict[str, object]:
        parts = (self.codec, self.phones, self.judge, self._joint, self._alone, self._judging)
        return {
            "parts": [part.state_dict() for part in parts],
            "seconds": self.seconds,
            "steps": self.steps,
        }

    def restore(self, path: Path) -> None:
        held = torch.load(path, map_location=self.device, weights_only=True)
        parts = (self.codec, self.phones, self.judge, self._joint, self._alone, self._judging)
        for part, state in zip(parts, held["parts"], strict=True):
            part.load_state_dict(state)
        self.seconds, self.steps = held["seconds"], held["steps"]
        for module in self.codec.modules():
            if isinstance(module, _Codebook):
                module.started = True

    def joint_step(self, plan: Plan, rate: float) -> dict[str, Tensor]:
        """Encoder, codebooks and decoder."""
        self.codec.train()
        samples, labels = self.pool.batch(plan.rows, plan.frames + 2 * _MARGIN)
        with self._mixed():
            vectors = self.codec.encoder(samples).float()[..., _MARGIN:-_MARGIN]
        quantized = self.codec.quantizer(vectors.contiguous())
        labels = labels[:, _MARGIN * LABELS : -_MARGIN * LABELS]
        spoken = self.phones(quantized.first.transpose(1, 2)).view(-1, len(PHONES))
        phone_loss = F.cross_entropy(spoken, labels.flatten())
        made = self._speak(quantized.vectors)
        mel = self.distance(made, self._target(samples))
        loss = 10 * mel + 0.5 * quantized.loss + 0.5 * phone_loss
        _update(self._joint, loss, rate)
        accuracy = (spoken.argmax(1) == labels.flatten()).float().mean()
        return {"mel": mel, "commit": quantized.loss, "phone": phone_loss, "phones": accuracy}

    def decoder_step(self, plan: Plan, rate: float) -> dict[str, Tensor]:
        """The decoder against the discriminator; codes are final."""
        self.codec.eval()
        self.codec.decoder.train()
        samples, _ = self.pool.batch(plan.rows, plan.frames + 2 * _MARGIN)
        with torch.no_grad(), self._mixed():
            vectors = self.codec.encoder(samples).float()[..., _MARGIN:-_MARGIN]
            vectors = self.codec.quantizer(vectors.contiguous()).vectors
        true, made = self._target(samples), self._speak(vectors)
        with self._mixed():
            judged = discriminator_loss(self.judge(true), self.judge(made.detach()))
        _update(self._judging, judged, rate)
        mel = self.distance(made, true)
        with self._mixed():
            adversarial, matching = generator_losses(self.judge(true), self.judge(made))
        _update(self._alone, 10 * mel + adversarial + 2 * matching, rate)
        return {"mel": mel, "judge": judged, "fool": adversarial, "match": matching}

    def _target(self, samples: Tensor) -> Tensor:
        edge = _MARGIN * FRAME_SAMPLES * 3 // 2
        target: Tensor = self.upsample(samples)[:, edge:-edge]
        return target

    def _speak(self, vectors: Tensor) -> Tensor:
        with self._mixed():
            made: Tensor = self._decode(vectors)
        return made.float()

    def _mixed(self) -> torch.autocast:
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda")


def _update(optimizer: torch.optim.Optimizer, loss: Tensor, rate: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = rate
    optimizer.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    torch.nn.utils.clip_grad_norm_(parameters, 1.0)
    optimizer.step()


def train(trainer: CodecTrainer, plan: Plan, out: Path) -> None:
    """Run what is left of the plan; the state is saved every minute and at the end."""
    begun, before = time.monotonic(), trainer.seconds
    saved, was_joint = begun, True
    while True:
        joint, done = plan.progress(trainer.seconds)
        if done >= 1:
            break
        if was_joint and not joint:
            _save(trainer, out)
            print("the codes are final", flush=True)
        was_joint = joint
        step = trainer.joint_step if joint else trainer.decoder_step
        losses = step(plan, plan.rate * (1.0 if joint else 0.5) * _schedule(done, trainer.steps))
        trainer.steps += 1
        if trainer.steps % 100 == 0:
            trainer.pool.refresh()
            report = " ".join(f"{name} {value.item():.3f}" for name, value in losses.items())
            hours = trainer.pool.held / 16_000 / 3600
            print(f"{trainer.seconds:5.0f} s step {trainer.steps} {hours:.0f} h {report}", flush=True)
        now = time.monotonic()
        trainer.seconds = before + now - begun
        if now - saved > plan.save_every:
            saved = now
            _save(trainer, out)
    _save(trainer, out)


def _schedule(done: float, steps: int) -> float:
    """Warm up, stay, and fall over the last half to a twentieth."""
    return min(1.0, (steps + 1) / 200) * min(1.0, max(0.05, 2 * (1 - done)))


def _save(trainer: CodecTrainer, out: Path) -> None:
    partial = out.with_suffix(".partial")
    torch.save(trainer.state(), partial)
    partial.rename(out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--speech", type=Path, default=Path("build/demo_voice/speech"))
    parser.add_argument("--out", type=Path, default=Path("build/demo_voice/codec.pt"))
    parser.add_argument("--joint-minutes", type=float, default=5.0)
    parser.add_argument("--decoder-minutes", type=float, default=4.0, help="0: later")
    parser.add_argument("--rows", type=int, default=32)
    parser.add_argument("--frames", type=int, default=20)
    parser.add_argument("--hours", type=float, default=100.0, help="speech to hold at most")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    torch.manual_seed(given.seed)
    random.seed(given.seed)
    torch._dynamo.config.automatic_dynamic_shapes = False
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    device = torch.device(given.device)
    pool = SpeechPool(given.speech, device, given.hours)
    while pool.held < 300 * 16_000:
        pool.refresh()
        time.sleep(0.5)
    trainer = CodecTrainer(pool, device, compiled=device.type == "cuda")
    if given.out.exists():
        trainer.restore(given.out)
    train(trainer, Plan(given.joint_minutes, given.decoder_minutes, given.rows, given.frames), given.out)


if __name__ == "__main__":
    main()
