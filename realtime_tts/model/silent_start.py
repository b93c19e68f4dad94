"""The frames of silence that every utterance of a checkpoint begins with.

A checkpoint that was trained with silence before every text makes the same codes for it, whatever
the text, voice and seed. So they need not be made: their sound, and the codec's state after them,
are computed once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from realtime_tts.model.codec_state import StreamState
from realtime_tts.model.codec_step import SlotCodec


class SilentStart:
    """The first frames: `codes` [frames, 16] int64, and their `samples` float32."""

    @torch.inference_mode()
    def __init__(self, codes: Sequence[Sequence[int]], codec: SlotCodec[Any]) -> None:
        self.codes = torch.tensor(codes, dtype=torch.long, device=codec.device)
        state = codec.new_slot_state(1)
        slots = torch.zeros(1, dtype=torch.long, device=codec.device)
        # One at a time, as they are when they are made: the samples are the same, bit for bit.
        sound = [codec.decode(frame[None, None], slots, state)[0].cpu() for frame in self.codes]
        self.samples: NDArray[np.float32] = np.concatenate([np.zeros(0, np.float32), *sound])
        self._after = state.save(0)

    def __len__(self) -> int:
        return len(self.codes)

    def begin(self, slot: int, state: StreamState) -> None:
        """Let the codec continue in `slot` as if it had decoded these frames."""
        state.restore(slot, self._after)
