"""Find the silence that a checkpoint makes before every text, and write its codes to config.json.

    python -m tools.demo_voice.silent_start --checkpoint build/demo_voice/checkpoint

The server then need not make these frames (`realtime_tts/model/silent_start.py`). A frame counts if
its codes are the same for every text, voice, layout and seed, and nothing of it is audible.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from realtime_tts.engine.interface import UtteranceSpec
from realtime_tts.engine.made_codes import Codes, unpacked
from realtime_tts.engine.sound import onsets
from realtime_tts.engine.torch_engine import TorchEngine
from realtime_tts.model import load_model
from realtime_tts.text.tokenizer import Qwen2Tokenizer
from tools.demo_voice.recognise import read_texts
from tools.demo_voice.student import LAYOUTS
from tts_scheduler import CodecRun, Decode, Layout, Prefill, StepPlan

_TEXTS = Path(__file__).with_name("held_out.txt")
_MOST = 4
"""Frames looked at."""


def beginnings(checkpoint: Path, texts: list[str]) -> Iterator[tuple[Codes, NDArray[np.float32]]]:
    """Yield the codes [frames, 16] and the samples [n] that each turn begins with."""
    tokenizer = Qwen2Tokenizer.from_folder(checkpoint)
    engine = TorchEngine(load_model(checkpoint), tokenizer, name="", slots=1, max_frames=_MOST)
    for seed, (voice, layout, text) in enumerate(product(engine.info.voices, LAYOUTS, texts)):
        sampling = engine.info.default_sampling
        spec = UtteranceSpec(
            voice=voice, seed=seed, layout=layout, sampling=sampling, trim_silence="off"
        )
        ids = tokenizer.encode(text)
        engine.open("", spec)
        engine.append("", ids)
        engine.finish("")
        tokens = len(ids) if layout == "full_text" else 1
        start = Prefill("", 0, engine.prompt_tokens(spec), tokens, Layout(layout))
        plans = [StepPlan((start,), (), (CodecRun("", 0, 1),))]
        plans += [
            StepPlan((), (Decode("", 0, frame),), (CodecRun("", 0, 1),))
            for frame in range(1, _MOST)
        ]
        made = [engine.step(plan) for plan in plans]
        engine.close("")
        codes = b"".join(output.codes[""] for output in made)
        sound = np.concatenate([output.samples[""] for output in made])
        yield unpacked(codes, engine.info.codes_per_frame), sound


def silent_start(checkpoint: Path, texts: list[str]) -> Codes:
    """Return the codes [frames, 16] of the silent frames that all turns begin with."""
    found: Codes | None = None
    for codes, sound in beginnings(checkpoint, texts):
        onset = onsets(sound[None], 24_000)[0]
        silent = _MOST if onset < 0 else onset * len(codes) // len(sound)
        found = codes if found is None else found
        same = (codes[: len(found)] == found[: len(codes)]).all(1)
        found = found[: min(silent, len(found) if same.all() else int(same.argmin()))]
    assert found is not None, "no voice has said a text"
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--checkpoint", type=Path, required=True)
    given = parser.parse_args()
    path = given.checkpoint / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    codes = silent_start(given.checkpoint, read_texts(_TEXTS))
    config["silent_start"] = codes.tolist()
    path.write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    print(f"{path}: every text begins with {len(codes)} frames of silence")


if __name__ == "__main__":
    main()
