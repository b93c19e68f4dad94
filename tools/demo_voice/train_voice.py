"""Train talker and code predictor on the teacher's speech, coded by the trained codec.

    python -m tools.demo_voice.train_voice --minutes 25

Reads shards as they are made. The state is saved every few minutes; started
again, it goes on.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import torch

from tools.demo_voice.codes import prompt_start, read_tokenizer
from tools.demo_voice.recording import Losses
from tools.demo_voice.speech import SHARD_SECONDS
from tools.demo_voice.voice_data import VoicePool
from tools.demo_voice.voice_feed import Feed
from tools.demo_voice.voice_trainer import Plan, Trainer


def train(trainer: Trainer, feed: Feed, out: Path) -> None:
    """Run what is left of the plan; the state is saved now and then, and at the end."""
    plan, begun, before = trainer.plan, time.monotonic(), trainer.seconds
    whole = plan.minutes * 60
    if before < whole:
        with feed.paused:
            trainer.prepare(feed.next(), before / whole)
    saved = time.monotonic()
    reported = (trainer.steps, saved)
    losses: Losses = {}
    while trainer.seconds < whole:
        losses = trainer.step(feed.next(), trainer.seconds / whole)
        if trainer.steps % 250 == 0:
            reported = _report(trainer, feed, losses, reported)
        now = time.monotonic()
        trainer.seconds = before + now - begun
        if now - saved > plan.save_every:
            saved = now
            trainer.save(out)
    trainer.save(out)
    if losses:
        _report(trainer, feed, losses, reported)


def _report(
    trainer: Trainer, feed: Feed, losses: Losses, since: tuple[int, float]
) -> tuple[int, float]:
    """`since`: steps and time, in seconds, from which the pace is counted; returns the next."""
    train_figures = " ".join(f"{losses[n].item():.3f}" for n in ("first", "others", "phones"))
    pace = (trainer.steps - since[0]) / (time.monotonic() - since[1])  # the device has caught up
    valid = trainer.validate(feed.validation_batches(2))
    figures = " ".join(f"{name} {value:.3f}" for name, value in valid.items())
    hours = feed.shards * SHARD_SECONDS / 3600
    progress = f"{trainer.seconds:5.0f} s step {trainer.steps} {pace:.1f}/s {hours:.0f} h"
    print(f"{progress} | {train_figures} | {figures}", flush=True)
    return trainer.steps, time.monotonic()


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
    parser.add_argument("--warm-up", type=int, default=500, help="steps")
    parser.add_argument("--dropout", type=float, default=0.05)
    parser.add_argument("--save-every", type=float, default=120.0)
    parser.add_argument("--listens-from", type=float, default=0.35)
    parser.add_argument("--frames", type=int, default=250_000_000, help="room for training data")
    parser.add_argument("--first-shards", type=int, default=30, help="read before training starts")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--eager", action="store_true", help="do not record steps as CUDA graphs")
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
        given.warm_up,
    )
    template = prompt_start(read_tokenizer(given.tokenizer))
    pool = VoicePool(template, device, frames=given.frames)
    feed = Feed(pool, given.codes, plan.rows, plan.length, given.seed)
    while feed.shards < given.first_shards:
        feed.take_in()
        time.sleep(0.5)
    on_gpu = device.type == "cuda"
    trainer = Trainer(plan, device, compiled=on_gpu, recorded=on_gpu and not given.eager)
    for path in (given.start, given.out):
        if path is not None and path.exists():
            trainer.restore(path)
    feed.start()
    train(trainer, feed, given.out)


if __name__ == "__main__":
    main()
