"""The released dimensions with default flags, on a GPU: `pytest -m gpu`.

`test_defaults.py` checks that `serve` has these settings; the command line needs more packages than
a machine with a GPU may have.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from realtime_tts.engine.captured_engine import CapturedEngine
from realtime_tts.engine.devices import choose, look_up
from realtime_tts.engine.guards import GuardConfig
from realtime_tts.engine.make import load_random
from realtime_tts.engine.memory import MOST_SLOTS
from realtime_tts.engine.model_engine import ModelEngine
from realtime_tts.engine.settings import EngineConfig
from realtime_tts.engine.torch_engine import TorchEngine
from tts_scheduler import SchedulerConfig

HOPPER = (9, 0)


def default_config(device: str, size: str) -> EngineConfig:
    """What `serve --random-weights SIZE` asks for where there is this GPU."""
    return EngineConfig(
        kind="process",
        device=device,
        random_weights=size,
        scheduler=SchedulerConfig(slots=MOST_SLOTS),
        fit_slots=True,
        guards=GuardConfig(enabled=False),
    )


def quiet(what: str, done: int, total: int) -> None:
    pass


def load(config: EngineConfig, *, slots: int | None = None, eager: bool = False) -> ModelEngine:
    scheduler = replace(config.scheduler, slots=slots or config.scheduler.slots)
    return load_random(replace(config, scheduler=scheduler, eager=eager, max_frames=4), quiet)


@pytest.fixture
def device() -> str:
    """The GPU that is chosen when nobody says."""
    return choose(look_up()).devices[0]


@pytest.mark.gpu
def test_the_released_dimensions_run_the_fast_way_without_a_flag(device: str) -> None:
    assert device.startswith("cuda:")
    engine = load(default_config(device, "1.7B"))
    found = engine.execution
    assert isinstance(engine, CapturedEngine)
    assert (found.programs, found.kernels, found.dtype) == ("captured", "triton", "bfloat16")
    assert (found.device, found.gpu) == (device, torch.cuda.get_device_name(device))
    if torch.cuda.get_device_capability(device) == HOPPER:
        assert (found.predictor, found.talker) == ("persistent", "persistent")
    if torch.cuda.get_device_properties(device).total_memory > 70 * 2**30:
        assert engine.info.slots == 512


@pytest.mark.gpu
def test_eager_is_plain_modules_on_the_gpu_in_the_same_precision(device: str) -> None:
    engine = load(default_config(device, "0.6B"), slots=2, eager=True)
    assert isinstance(engine, TorchEngine) and engine.info.slots == 2
    assert (engine.execution.programs, engine.execution.dtype) == ("eager", "bfloat16")
    assert engine.execution.device == device and engine.warm_up(quiet)
