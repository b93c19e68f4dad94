"""A drawn frame goes to the talker, the codec and the host."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from realtime_tts.kernels import keep_frame
from realtime_tts.kernels.kept_frames import ENDED, FAILED, CodeTables, DrawnCodes, SlotFrames

Random = Callable[..., Tensor]
Keep = Callable[[Tensor, DrawnCodes, CodeTables, SlotFrames, Tensor], None]

PASSES, CODES, EOS, HIDDEN, PLACES, SLOTS = 5, 40, 45, 24, 4, 6
DTYPES = [torch.float32, torch.bfloat16]


@pytest.mark.parametrize("kernel", [keep_frame, keep_frame.plain])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_frame_is_kept_for_all_who_need_it(
    kernel: Keep, dtype: torch.dtype, random: Random, close: Callable[[Tensor, Tensor], None]
) -> None:
    tables = CodeTables(random(50, HIDDEN, dtype=dtype), random(200, HIDDEN, dtype=dtype), EOS)
    device = tables.first.device

    def numbers(*values: int) -> Tensor:
        return torch.tensor(values, device=device)

    slots = numbers(3, 0, 4, 5, 5)  # the last slot is the one for padding
    others = torch.arange(25, device=device).view(5, 5) + 3
    failed = torch.tensor([False, False, True, False, False], device=device)
    drawn = DrawnCodes(numbers(7, EOS, 39, 0, 0), others, failed)
    state = SlotFrames(
        torch.zeros(SLOTS, HIDDEN, dtype=dtype, device=device),
        torch.full((SLOTS, PLACES, 1 + PASSES), -1, device=device),
        numbers(10, 11, 12, 13, 14, 0),
        numbers(1, 9, 9, 6, 4, 3),
        numbers(20, 21, 22, 23, 24, 25).int(),
    )
    outputs = torch.zeros(5, PASSES + 2, dtype=torch.int32, device=device)
    kernel(slots, drawn, tables, state, outputs)
    assert state.positions.tolist() == [11, 11, 12, 14, 15, 0]
    flags = [0, ENDED, FAILED, 0, 0]
    for row, (slot, place) in enumerate([(3, 1), (0, 0), (4, 3)]):
        first, rest = int(drawn.first[row]), others[row].tolist()
        assert outputs[row].tolist() == [first + flags[row], *rest, 20 + slot]
        assert state.codes[slot, place].tolist() == [min(first, CODES - 1), *rest]
        total = sum(tables.others[CODES * j + code].float() for j, code in enumerate(rest))
        assert isinstance(total, Tensor)
        wanted = total.to(dtype) + tables.first[first]
        close(state.embeddings[slot], wanted)
        others_kept = [at for at in range(PLACES) if at != place]
        assert (state.codes[slot, others_kept] == -1).all()
    assert (state.codes[1:3] == -1).all() and (state.embeddings[1:3] == 0).all()
    assert state.drawn.tolist() == [1, 9, 9, 6, 4, 3]
