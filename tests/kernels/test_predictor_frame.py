"""A whole frame of the code predictor in one launch: its source, on a CPU thread.

A C++ compiler builds the same source with `cuda_on_cpu/device.cuh` in place of what a GPU has: each
thread of every program is there, and they wait for each other in the same places. What only a GPU
can show is whether it orders memory as the source expects (`test_predictor_frame_gpu.py`).
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

import pytest
import torch
from torch import Tensor

from realtime_tts.kernels import FrameDraws, FrameModel, frame_program
from realtime_tts.kernels.cuda_predictor_frame import FrameTables, frame_obstacle, frame_settings
from realtime_tts.kernels.predictor_frame import plain_frame
from realtime_tts.model.config import TransformerConfig
from tests.kernels.cuda_building import Build
from tests.kernels.predictor_frames import (
    BF16,
    SMALL,
    TINY,
    Made,
    assert_right,
    assert_same_alone,
    begin_rounds_at,
    difference,
    drawn,
    forced,
    make_draws,
    make_frame,
    make_model,
    normal,
)

PROGRAMS = 32
FEW = {"FEW": 1, "WARPS": 4, "SPAN": 1, "RING": 4, "PACE": 2, "ASKER": 1, "TALL": 8}
MANY = {"FEW": 0, "WARPS": 4, "SPAN": 1, "RING": 4, "PACE": 1, "ASKER": 0, "TALL": 8}
BATCH = {
    **MANY,
    "BATCH": 1,
    "TALL": 16,
    "ROWS": 32,
    "TOGETHER": 2,
    "SHARES": 1,
    "RESIDUAL_SHARES": 2,
}
SHARED = {**BATCH, "SHARES": 2, "RESIDUAL_SHARES": 4, "TOGETHER": 3}


def kernel_of(settings: Mapping[str, int]) -> str:
    return "predictor_batch" if settings.get("BATCH") else "predictor_frame"


class Emulated:
    """A launch on the CPU."""

    def __init__(self, library: Any, model: FrameModel) -> None:
        self._library, self._model = library, model
        words = ctypes.c_int.in_dll(library, "words").value
        self.tables = FrameTables(model, words)

    def __call__(
        self, x: Tensor, pages: Tensor, draws: FrameDraws, logits: Tensor
    ) -> tuple[Tensor, Tensor]:
        rows, passes = len(x) // 2, len(self._model.heads)
        codes = torch.full((rows, passes), -1)
        failed = torch.ones(rows, dtype=torch.bool)
        given = self.tables.arguments(x, self._model, pages, draws, codes, failed, logits)
        stuck = self._library.run(ctypes.byref(given))
        assert not stuck, "all programs wait for each other"
        return codes, failed


@pytest.mark.parametrize(
    ("shape", "programs", "settings", "rows"),
    [
        (SMALL, PROGRAMS, FEW, 1),
        (SMALL, PROGRAMS, FEW, 2),
        (SMALL, PROGRAMS, MANY, 3),
        (SMALL, PROGRAMS, MANY, 5),  # ten rows in the first pass: a second tile
        (TINY, 64, {**FEW, "SPAN": 2, "RING": 8}, 1),
        (SMALL, PROGRAMS, {**SHARED, "ROWS": 64}, 35),  # more than there are programs
        (SMALL, PROGRAMS, SHARED, 29),  # of four shares of the rows, the last has five
        (SMALL, PROGRAMS, {**SHARED, "ASKER": 1, "PACE": 3}, 6),  # shares without rows
        (TINY, PROGRAMS, {**BATCH, "SPAN": 2}, 9),  # two groups of a residual's columns
    ],
)
def test_a_frame_is_that_of_the_plain_twin(
    shape: TransformerConfig,
    programs: int,
    settings: Mapping[str, int],
    rows: int,
    build: Build,
) -> None:
    random = normal()
    model = make_model(random, shape, 512, passes=2)
    source = build(kernel_of(settings), frame_settings(model, programs, settings))
    launch = Emulated(source, model)
    for _ in range(2):  # the second time, words of the first are still there
        assert_right(model, make_frame(random, model, launch, rows))


@pytest.mark.parametrize("settings", [MANY, SHARED])
def test_a_row_of_nonsense_fails_and_disturbs_no_other(
    settings: Mapping[str, int], build: Build
) -> None:
    random = normal()
    model = make_model(random, SMALL, 512, passes=2)
    source = build(kernel_of(settings), frame_settings(model, PROGRAMS, settings))
    launch = Emulated(source, model)
    made = make_frame(random, model, launch, 3)
    x, pages = made.x.clone(), made.before.clone()
    x[4, 7] = float("nan")
    logits = torch.empty_like(made.logits)
    codes, failed = launch(x, pages, made.draws, logits)
    assert failed.tolist() == [False, True, False]
    assert torch.equal(logits[:, [0, 2]], made.logits[:, [0, 2]])
    assert ((codes >= 0) & (codes < 512)).all()


def test_a_row_is_the_same_alone_and_among_others(build: Build) -> None:
    random = normal()
    model = make_model(random, SMALL, 512, passes=2)
    source = build(kernel_of(SHARED), frame_settings(model, PROGRAMS, SHARED))
    assert_same_alone(make_frame(random, model, launch := Emulated(source, model), 20), launch, 5)


def test_rounds_may_wrap_around(build: Build) -> None:
    random = normal()
    model = make_model(random, SMALL, 512, passes=2)
    source = build(kernel_of(SHARED), frame_settings(model, PROGRAMS, SHARED))
    launch = Emulated(source, model)
    begin_rounds_at(launch.tables, -2, PROGRAMS)
    assert_right(model, make_frame(random, model, launch, 3))
    assert int(launch.tables._rounds) > 0


def test_a_cpu_has_no_program() -> None:
    random = normal()
    model = make_model(random, SMALL, 512, passes=2)
    assert frame_obstacle(model) == "cpu is no NVIDIA GPU" and frame_program(model) is None


def test_the_plain_twin_draws_from_its_own_logits() -> None:
    random = normal()
    model = make_model(random, SMALL, 512, passes=3)
    pages, x = random(2, 2, 2, 1, 16, 128, dtype=BF16), random(4, 256, dtype=BF16)
    draws = make_draws(2, 3, x.device)
    codes, logits = plain_frame(x, model, pages.clone(), draws)
    made = Made(codes, codes.bool(), logits, pages, x, pages, draws)
    assert torch.equal(drawn(made), codes)
    assert difference(logits, forced(model, made)[0]) < 1e-6
