"""What it costs to go on with a turn, by the frames that were spoken of it.

    python -m tests.engine.move_cost                                   the demo voice on a CPU
    python -m tests.engine.move_cost --random-weights 1.7B --device cuda

Prints milliseconds of the step that takes a turn up, the best of several: prompt, text, codes, the
codec's state and the next frame. Then what codes cost in the message of a step.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np

from realtime_tts.engine import wire
from realtime_tts.engine.guards import GuardConfig
from realtime_tts.engine.interface import Engine, UtteranceSpec
from realtime_tts.engine.link import Audio
from realtime_tts.engine.load import engine_loader
from realtime_tts.engine.settings import EngineConfig
from realtime_tts.engine.warm_up import ScriptedPages
from tts_scheduler import Layout, Prefill, StepPlan

FRAMES = (0, 1, 12, 50, 125, 250, 500, 1_000)


def move_ms(engine: Engine, frames: int, text: int = 40) -> float:
    """Milliseconds of a step that begins behind so many frames."""
    codes = np.random.default_rng(frames).integers(0, 200, (frames, 16)).astype(np.int16)
    pages = ScriptedPages(engine.info.slots, engine.kv_cache)
    spec, spoken = UtteranceSpec(layout="full_text"), codes if frames else None
    engine.open("moved", spec, spoken)
    engine.append("moved", [5 + number % 90 for number in range(text)])
    engine.finish("moved")
    tokens = engine.prompt_tokens(spec)
    plan = StepPlan((Prefill("moved", 0, tokens, text, Layout.FULL_TEXT, frames),))
    plan = pages.added_to(plan)
    begun = time.perf_counter()
    output = engine.step(plan)
    seconds = time.perf_counter() - begun
    assert "moved" not in output.failed, output.failed
    engine.close("moved")
    return seconds * 1e3


def message_costs(rows: int = 64) -> dict[str, float]:
    """Bytes of a step's message, and microseconds to encode and decode it, with and without
    codes."""
    found = {}
    for name, codes in (("without", b""), ("with", bytes(range(32)))):
        events = [Audio(f"turn-{row}", bytes(3_840), 0.5, False, codes, 0) for row in range(rows)]
        data = wire.encode(wire.Happened(list(events)))
        begun = time.perf_counter()
        for _ in range(500):
            wire.decode_up(wire.encode(wire.Happened(list(events))))
        each = (time.perf_counter() - begun) / 500 / rows * 1e6
        found[f"bytes an event, {name} codes"] = len(data) / rows
        found[f"microseconds an event, {name} codes"] = round(each, 2)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--random-weights", choices=["demo", "0.6B", "1.7B"])
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    random = arguments.random_weights
    config = EngineConfig(
        device=arguments.device,
        random_weights=random,
        threads=arguments.threads,
        max_frames=1_200,
        fit_slots=False,
        guards=GuardConfig(enabled=random is None),
    )
    engine = engine_loader(config)(lambda what, done, total: None)
    engine.warm_up(lambda what, done, total: None)
    for frames in FRAMES:
        best = min(move_ms(engine, frames) for _ in range(5))
        sys.stdout.write(f"{frames:5} frames ({frames * 0.08:5.1f} s): {best:7.1f} ms\n")
        sys.stdout.flush()
    for name, cost in message_costs().items():
        sys.stdout.write(f"{name}: {cost}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
