"""Settings of torch that precede loading, and the precision of the model."""

from __future__ import annotations

import logging
from collections.abc import Callable

import torch

from realtime_tts.engine.devices import LEAST_CAPABILITY, too_old, usual_threads
from realtime_tts.errors import ConfigError
from realtime_tts.logs import event

log = logging.getLogger(__name__)

_ON_A_GPU = (torch.bfloat16, torch.float32)
"""Precisions in which all parts of a model were tried on a GPU."""


def prepare_torch(device: str, threads: int | None) -> None:
    """Check that the device can be used, and give CPU work its threads, before anything is loaded.

    Raises ConfigError.
    """
    try:
        place = torch.device(device)
    except RuntimeError as error:
        wanted = "expected cpu, cuda or cuda:N"
        raise ConfigError(f"torch cannot use the device {device!r}: {wanted}") from error
    try:
        if place.type not in ("cpu", "cuda") or (place.type == "cuda" and torch.version.hip):
            raise ConfigError(
                f"the engine runs on CPUs and on NVIDIA GPUs, not on {device!r} of this torch: "
                "use --device cpu"
            )
        torch.empty(1, device=place)
    except (RuntimeError, AssertionError) as error:  # the latter: a build without that backend
        why = str(error).splitlines()[0]
        raise ConfigError(
            f"torch cannot use the device {device!r}: {why}; or use --device cpu"
        ) from error
    if place.type == "cuda":
        _check_capability(place)
    torch.set_num_threads(usual_threads() if threads is None else threads)


def _check_capability(device: torch.device) -> None:
    capability = torch.cuda.get_device_capability(device)
    if capability < LEAST_CAPABILITY:
        reason = too_old(torch.cuda.get_device_name(device), capability)
        raise ConfigError(f"{reason}: use --device cpu")


def chosen_dtype(wanted: str, device: str, stored_dtype: Callable[[], torch.dtype]) -> torch.dtype:
    """Return the precision of talker and code predictor: `wanted`, or for "auto" the one that the
    checkpoint is stored in on a GPU, where all parts can compute in it, and float32 elsewhere."""
    if wanted != "auto":
        return getattr(torch, wanted)  # type: ignore[no-any-return]
    if torch.device(device).type != "cuda":
        return torch.float32
    stored = stored_dtype()
    if stored not in _ON_A_GPU:
        reason = f"stored in {name_of(stored)}, in which no codec was tried on a GPU"
        event(log, logging.WARNING, "engine.fallback", what="float32", reason=reason)
        return torch.float32
    return stored


def name_of(dtype: torch.dtype) -> str:
    """Return the name of a precision as on the command line."""
    return str(dtype).removeprefix("torch.")
