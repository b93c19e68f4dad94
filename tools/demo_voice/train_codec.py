"""Train the codec on the teacher's speech.

    python -m tools.demo_voice.train_codec --joint-minutes 8 --decoder-minutes 5

First encoder, codebooks and decoder learn together, to begin with without quantizing; then, the
codes being final, the decoder alone against a discriminator. It may be stopped and started again.

    python -m tools.demo_voice.train_codec --start codec.pt --joint-minutes 0 --decoder-minutes 8

gives the decoder of a codec that was trained before a second phase; its codes stay what they are.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path

import torch

from tools.demo_voice.codec_trainer import CodecTrainer, SpeechPool
from tools.demo_voice.teacher import SAMPLE_RATE

_PLAIN_SHARE = 0.15
"""Of the first phase, before the decoder hears what is quantized."""
_SAVE_EVERY = 60.0
_LISTENING_STEPS = 2000
"""Of the listener alone, before a decoder learns by it."""


@dataclass(frozen=True, slots=True)
class Plan:
    joint_minutes: float
    decoder_minutes: float
    rate: float = 1e-3

    def progress(self, seconds: float) -> tuple[bool, float]:
        """Whether the first phase is on, and how much of the present phase is done."""
        joint, alone = self.joint_minutes * 60, self.decoder_minutes * 60
        if seconds < joint:
            return True, seconds / joint
        return False, (seconds - joint) / alone if alone else 1.0


def train(trainer: CodecTrainer, plan: Plan, out: Path) -> None:
    """Run what is left of the plan; the state is saved every minute and at the end."""
    if trainer.steps == 0 and not plan.joint_minutes:
        for _ in range(_LISTENING_STEPS):  # in the first phase it learns on the way
            trainer.step(trainer.listening_step, plan.rate)
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
        first = trainer.plain_step if done < _PLAIN_SHARE else trainer.joint_step
        kind = first if joint else trainer.decoder_step
        rate = plan.rate * (1.0 if joint else 0.25) * _schedule(done, trainer.steps)
        losses = trainer.step(kind, rate)
        trainer.steps += 1
        if trainer.steps % 200 == 0:
            trainer.pool.refresh()
            report = " ".join(f"{name} {value.item():.3f}" for name, value in losses.items())
            hours = trainer.pool.held / SAMPLE_RATE / 3600
            progress = f"{trainer.seconds:5.0f} s step {trainer.steps} {hours:.0f} h"
            print(f"{progress} {report}", flush=True)
        now = time.monotonic()
        trainer.seconds = before + now - begun
        if now - saved > _SAVE_EVERY:
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
    parser.add_argument("--start", type=Path, help="a trained codec to begin with")
    parser.add_argument("--joint-minutes", type=float, default=8.0)
    parser.add_argument("--decoder-minutes", type=float, default=5.0, help="0: none")
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--frames", type=int, default=20)
    parser.add_argument("--hours", type=float, default=60.0, help="speech to hold at most")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--eager", action="store_true", help="do not record steps as CUDA graphs")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    torch.manual_seed(given.seed)
    torch._dynamo.config.automatic_dynamic_shapes = False
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    torch.backends.cudnn.benchmark = True
    device = torch.device(given.device)
    pool = SpeechPool(given.speech, device, given.hours)
    while pool.held < 300 * SAMPLE_RATE:
        pool.refresh()
        time.sleep(0.5)
    recorded = device.type == "cuda" and not given.eager
    trainer = CodecTrainer(pool, device, given.rows, given.frames, recorded=recorded)
    if given.out.exists():
        trainer.restore(given.out)
    elif given.start is not None:
        trainer.begin_with(given.start)
    train(trainer, Plan(given.joint_minutes, given.decoder_minutes), given.out)


if __name__ == "__main__":
    main()
