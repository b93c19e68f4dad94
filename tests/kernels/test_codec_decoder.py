"""The whole codec on its kernels: the samples of the CPU's, and code that an H200 can run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from realtime_tts.model import load_model
from realtime_tts.model.codec_gemm import GemmCodecDecoder
from realtime_tts.model.weights import Weights

PARITY = Path(__file__).parents[1] / "data" / "parity" / "tiny-custom_voice"


def test_a_frame_on_kernels_is_that_of_the_cpu(device: torch.device) -> None:
    model = load_model(PARITY)
    with Weights(PARITY / "speech_tokenizer", device=device, dtype=torch.float32) as weights:
        codec = GemmCodecDecoder(model.config.codec, weights, device, torch.float32)
    codes = torch.randint(0, 256, (1, 1, 16), generator=torch.Generator().manual_seed(3))
    wanted = model.codec.decode(codes, [0], model.codec.new_state(1))
    state, row = codec.new_slot_state(2), torch.tensor([1], device=device)
    found = codec.decode(codes.to(device), row, state)
    torch.testing.assert_close(found.cpu(), wanted, atol=1e-4, rtol=0)


def test_every_launch_of_the_released_codec_compiles_for_an_h200(
    compiling: dict[str, str],
) -> None:
    """And no kernel needs more registers than there are: none has anything on a stack."""
    pytest.importorskip("triton", reason="Triton has no build for this platform")
    path = os.pathsep.join(sys.path)
    told = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("compile_codec.py")), "64", "1"],
        env=compiling | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stderr[-3000:]
    lines = [line.split() for line in told.stdout.splitlines()]
    assert len({name for name, _, _ in lines}) == 12
    assert [line for line in lines if int(line[2])] == []
