"""The whole codec on its kernels: the samples of the CPU's."""

from __future__ import annotations

from dataclasses import replace

import torch

from realtime_tts.model.codec import CodecDecoder
from realtime_tts.model.codec_gemm import GemmCodecDecoder
from realtime_tts.model.config_files import read_config
from tests.model.light import Corners
from tests.parity import PARITY

TINY = PARITY / "tiny-custom_voice"


def test_a_frame_on_kernels_is_that_of_the_cpu(device: torch.device) -> None:
    """Of a codec whose frames are shorter: the interpreter takes ten seconds for a whole one."""
    cpu, whole = torch.device("cpu"), read_config(TINY).codec
    config = replace(
        whole, upsample_rates=(2, 2, 2, 2), samples_per_frame=64, codebooks=4, decoder_dim=32
    )
    folder, exact = TINY / "speech_tokenizer", torch.float32
    with Corners(folder, device=cpu, dtype=exact) as weights:
        plain = CodecDecoder(config, weights, cpu)
    with Corners(folder, device=device, dtype=exact) as weights:
        codec = GemmCodecDecoder(config, weights, device, exact)
    codes = torch.randint(0, 256, (1, 1, 4), generator=torch.Generator().manual_seed(3))
    wanted = plain.decode(codes, [0], plain.new_state(1))
    assert wanted.shape == (1, 64) and wanted.norm() > 1e-2
    state, row = codec.new_slot_state(2), torch.tensor([1], device=device)
    found = codec.decode(codes.to(device), row, state)
    torch.testing.assert_close(found.cpu(), wanted, atol=1e-4, rtol=0)
