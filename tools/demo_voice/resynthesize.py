"""Speech through the codec alone, coded and decoded, for judging it.

    python -m tools.demo_voice.resynthesize --wavs build/demo_voice/evaluation/wavs/held_out/teacher

`evaluate --codec-audio` scores the folder this writes.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch

from tools.demo_voice.codec_model import Codec
from tools.demo_voice.codec_trainer import FRAME_SAMPLES
from tools.demo_voice.codes import load_codec
from tools.demo_voice.recognise import Recording
from tools.demo_voice.teacher import SAMPLE_RATE


@torch.inference_mode()
def resynthesize(codec: Codec, recording: Recording) -> Recording:
    """The recording, 24 kHz, as the codec gives it back, of the same duration."""
    if recording.sample_rate != SAMPLE_RATE:
        raise ValueError(f"{SAMPLE_RATE} Hz are needed, not {recording.sample_rate}")
    samples = recording.int16().astype(np.float32) / 32768
    padded = np.pad(samples, (0, -len(samples) % FRAME_SAMPLES))
    codes = codec.encode(torch.from_numpy(padded)[None])
    heard = codec.decoder(codec.quantizer.decode(codes))[0].clamp(-1, 1)
    return Recording(heard[: len(samples)].numpy(), SAMPLE_RATE)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    folder = Path("build/demo_voice")
    parser.add_argument("--codec", type=Path, default=folder / "codec.pt")
    parser.add_argument("--wavs", type=Path, required=True, help="folder of the teacher's speech")
    parser.add_argument("--out", type=Path, default=folder / "resynthesis")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    codec = load_codec(given.codec, torch.device("cpu"))
    for path in sorted(given.wavs.glob("*.wav")):
        resynthesize(codec, Recording.read(path)).write(given.out / path.name)
    print(f"{given.out}: done")


if __name__ == "__main__":
    main()
