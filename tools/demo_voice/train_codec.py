"""Train the codec on the teacher's speech.

    python -m tools.demo_voice.train_codec

First encoder, codebooks and decoder learn together, to begin with without quantizing; then also
against a discriminator; then, the codes being final, the decoder alone. It may be stopped and
started again.

    python -m tools.demo_voice.train_codec --start codec.pt --joint-minutes 0 --decoder-minutes 20

begins with a codec that was trained before. With `--adversarial-minutes 0` its codes stay what they
are.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path

import torch

from tools.demo_voice.codec_trainer import CodecTrainer, SpeechPool
from tools.demo_voice.recording import Step
from tools.demo_voice.teacher import SAMPLE_RATE

_PLAIN_SHARE = 0.15
"""Of the first phase, before the decoder hears what is quantized."""
_SAVE_EVERY = 60.0
_LISTENING_STEPS, _JUDGING_STEPS = 2000, 600
"""Of the listener and the discriminator alone, before a decoder learns by them."""
_ADVERSARIAL_RATE = 0.4


@dataclass(frozen=True, slots=True)
class Plan:
    """Minutes of the three phases."""

    joint: float
    adversarial: float
    decoder: float
    rate: float = 1e-3

    def progress(self, seconds: float) -> tuple[int, float]:
        """Which phase is on, 3 behind the last, and how much of it is done."""
        for phase, minutes in enumerate((self.joint, self.adversarial, self.decoder)):
            if seconds < minutes * 60:
                return phase, seconds / (minutes * 60)
            seconds -= minutes * 60
        return 3, 0.0


def train(trainer: CodecTrainer, plan: Plan, out: Path) -> None:
    """Run what is left of the plan; the state is saved every minute and at the end."""
    if trainer.steps == 0 and not plan.joint:  # in the first phase the listener learns on the way
        for _ in range(_LISTENING_STEPS):
            trainer.step(trainer.listening_step, plan.rate)
    begun, before = time.monotonic(), trainer.seconds
    saved, since = begun, 0
    # Who goes on in the middle of a phase has entered it.
    before_phase = plan.progress(before)[0] if trainer.steps else -1
    while True:
        phase, done = plan.progress(trainer.seconds)
        if phase != before_phase:
            since = trainer.steps
            _enter(trainer, phase, before_phase, plan)
            _save(trainer, out)
            before_phase = phase
        if phase == 3:
            break
        rate = plan.rate * _schedule(done, trainer.steps - since)
        losses = trainer.step(
            _kind(trainer, phase, done), rate * (_ADVERSARIAL_RATE if phase else 1)
        )
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


def _kind(trainer: CodecTrainer, phase: int, done: float) -> Step:
    if phase == 0:
        return trainer.plain_step if done < _PLAIN_SHARE else trainer.joint_step
    return trainer.adversarial_step if phase == 1 else trainer.decoder_step


def _enter(trainer: CodecTrainer, phase: int, before: int, plan: Plan) -> None:
    """What is done once, when a phase begins."""
    if before <= 0 < phase < 3:
        trainer.keep_average(1.0)
        for _ in range(_JUDGING_STEPS):
            trainer.step(trainer.judging_step, plan.rate)
    if phase == 2:
        print("the codes are final", flush=True)


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
    parser.add_argument("--joint-minutes", type=float, default=6.0)
    parser.add_argument("--adversarial-minutes", type=float, default=8.0)
    parser.add_argument("--decoder-minutes", type=float, default=8.0)
    parser.add_argument("--rows", type=int, default=32)
    parser.add_argument("--frames", type=int, default=14)
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
    minutes = (given.joint_minutes, given.adversarial_minutes, given.decoder_minutes)
    train(trainer, Plan(*minutes), given.out)


if __name__ == "__main__":
    main()
