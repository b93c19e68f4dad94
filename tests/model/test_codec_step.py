"""Frames of slots to PCM: codes from the ring, rounded as the host rounds."""

from __future__ import annotations

import torch
from torch import Tensor

from realtime_tts.audio.pcm import to_s16le
from realtime_tts.model.codec_step import CodecStep

SIZE, SLOTS, PLACES = 50, 3, 4


class Nothing:
    def reset(self, which: Tensor) -> None:
        pass


class Loud:
    """Each code's number of fourteen-thousandths, rising from -1.5 to 1.5 times."""

    def new_slot_state(self, slots: int) -> Nothing:
        return Nothing()

    def decode(self, codes: Tensor, slots: Tensor, state: Nothing) -> Tensor:
        frames = codes[..., :1] / 14_000 * torch.linspace(-1.5, 1.5, SIZE)
        return frames.flatten(1)


def test_each_row_reads_its_frames_and_they_become_pcm() -> None:
    ring = torch.arange((SLOTS + 1) * PLACES).mul(1_000).view(SLOTS + 1, PLACES, 1).repeat(1, 1, 16)
    step = CodecStep(Loud(), SLOTS, ring, SIZE, 8)
    step.inputs[:6] = torch.tensor([2, 0, SLOTS, 3, 6, 0])
    step(3, 2)
    found = step.sound(2, 2)
    codes = torch.stack((ring[2, [3, 0]], ring[0, [2, 3]]))
    wanted = Loud().decode(codes, torch.tensor([2, 0]), Nothing())
    assert wanted.abs().max() > 1
    assert found.dtype is torch.int16 and found.shape == (2, 2 * SIZE)
    assert found.numpy().astype("<i2").tobytes() == to_s16le(wanted.flatten().numpy())
