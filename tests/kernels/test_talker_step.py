"""A position of the talker in one launch: its source, on a CPU thread (see test_predictor_frame).

What only a GPU can show is in `test_talker_step_gpu.py`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from realtime_tts.kernels import step_program
from realtime_tts.kernels.cuda_talker_step import StepTables, step_obstacle, step_settings
from realtime_tts.kernels.decoder import DecoderModel
from tests.kernels.cuda_building import Build
from tests.kernels.predictor_frames import normal
from tests.kernels.talker_steps import SMALL, Slots, assert_step_right, make_talker

PROGRAMS = 32
FEW = {"FEW": 1, "WARPS": 4, "SPAN": 2, "RING": 3, "PACE": 2, "ASKER": 1, "TALL": 16}
MANY = {**FEW, "FEW": 0, "ASKER": 0}


class Emulated:
    """A launch on the CPU."""

    def __init__(self, library: Any, model: DecoderModel, watched: Sequence[int]) -> None:
        self._library, self._model = library, model
        words, partials = (
            ctypes.c_int.in_dll(library, name).value for name in ("row_words", "partial_words")
        )
        self._tables = StepTables(model, PROGRAMS, words, partials, watched)

    def __call__(
        self, x: Tensor, pages: Tensor, tables: Tensor, slots: Tensor, positions: Tensor
    ) -> tuple[Tensor, dict[int, Tensor]]:
        out = torch.full_like(x, float("nan"))
        given = self._tables.arguments(x, self._model, pages, tables, slots, positions, out)
        stuck = self._library.run(ctypes.byref(given))
        assert not stuck, "all programs wait for each other"
        return out, self._tables.queries(len(x))


@pytest.mark.parametrize(
    ("settings", "watched", "steps"),
    [
        # A first position, a page's last and first one, and more pages than a program has warps.
        ({**FEW, "SPAN": 1, "RING": 5}, (0, 1), [[0], [15], [16], [500], [5, 300]]),
        (FEW, (), [[200, 0, 63, 64]]),
        (MANY, (1,), [[130], [3, 100, 31, 32, 7, 511, 64, 129], [40, 0, 17, 16, 300]]),
    ],
)
def test_a_step_is_that_of_the_reference(
    settings: Mapping[str, int],
    watched: Sequence[int],
    steps: Sequence[Sequence[int]],
    build: Build,
) -> None:
    random = normal()
    model = make_talker(random, SMALL)
    slots = Slots(random, model)
    library = build("talker_step", step_settings(model, PROGRAMS, settings))
    launch = Emulated(library, model, watched)
    for positions in steps:  # from the second on, words of the one before are still there
        assert_step_right(random, model, slots, launch, positions, watched)


def test_a_cpu_has_no_program() -> None:
    model = make_talker(normal(), SMALL)
    assert step_obstacle(model) == "cpu is no NVIDIA GPU" and step_program(model) is None
