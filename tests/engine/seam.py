"""How far a turn that was taken up differs from one that nobody disturbed, on any device.

    python -m tests.engine.seam --random-weights 1.7B --device cuda

For some numbers of frames that were spoken before: after how many further frames the first code
differs, and by how much the sound of the first second does, if the codes are the same.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
from numpy.typing import NDArray

from realtime_tts.engine.guards import GuardConfig
from realtime_tts.engine.interface import Engine, UtteranceSpec
from realtime_tts.engine.load import engine_loader
from realtime_tts.engine.made_codes import unpacked
from realtime_tts.engine.settings import EngineConfig
from realtime_tts.engine.warm_up import ScriptedPages
from tests.engine.speaking import heard, step_of
from tests.parity import GREEDY
from tts_scheduler import Layout, Prefill

CUTS = (1, 2, 10, 40, 80)
FRAMES = 140
TEXT = [7 + number % 80 for number in range(40)]


def speech(
    engine: Engine, spec: UtteranceSpec, spoken: NDArray[np.int16] | None = None
) -> tuple[NDArray[np.int16], NDArray[np.float32]]:
    """Codes and sound of a turn behind what was spoken of it, to frame `FRAMES`."""
    pages, first = ScriptedPages(engine.info.slots, engine.kv_cache), 0
    if spoken is not None:
        first = len(spoken)
    engine.open("turn", spec, spoken)
    engine.append("turn", TEXT)
    engine.finish("turn")
    codes, sound = [], []
    prefill = Prefill("turn", 0, engine.prompt_tokens(spec), len(TEXT), Layout(spec.layout), first)
    for frame in range(first, FRAMES):
        output = engine.step(pages.added_to(step_of(prefill, frame)))
        assert not output.failed, output.failed
        if "turn" in output.frames:
            codes.append(unpacked(output.codes["turn"], engine.info.codes_per_frame)[0])
        if (samples := heard(output).get("turn")) is not None:
            sound.append(samples)
        if output.ended:
            break
    engine.close("turn")
    return np.stack(codes), np.concatenate(sound)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--random-weights", choices=["demo", "0.6B", "1.7B"])
    parser.add_argument("--dtype", default="auto")
    arguments = parser.parse_args()
    random = arguments.random_weights
    config = EngineConfig(
        device=arguments.device,
        random_weights=random,
        threads=1,
        dtype=arguments.dtype,
        max_frames=FRAMES,
        guards=GuardConfig(enabled=random is None),
    )
    engine = engine_loader(config)(lambda what, done, total: None)
    engine.warm_up(lambda what, done, total: None)
    for name, sampling in (("greedy", GREEDY), ("usual", engine.info.default_sampling)):
        for layout in ("streaming", "full_text"):
            spec = UtteranceSpec(seed=7, sampling=sampling, layout=layout)
            codes, sound = speech(engine, spec)
            for cut in CUTS:
                if cut >= len(codes):
                    continue
                again, heard_again = speech(engine, spec, codes[:cut])
                count = min(len(again), len(codes) - cut)
                differs = np.flatnonzero((again[:count] != codes[cut:][:count]).any(1))
                same = int(differs[0]) if differs.size else count
                samples = same * engine.info.samples_per_frame
                start = cut * engine.info.samples_per_frame
                step = np.abs(heard_again[:samples] - sound[start : start + samples])
                most = step.max() if step.size else 0.0
                sys.stdout.write(
                    f"{name} {layout}, {cut} spoken: {same} of {count} frames have the same codes; "
                    f"the sound of these differs by at most {most:.6f}\n"
                )
                sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
