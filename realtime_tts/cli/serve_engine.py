"""The engine that the flags of `serve` describe, and what `serve` prints and logs about it."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from realtime_tts.cli.counted import counted
from realtime_tts.cli.serve_arguments import SCHEDULING
from realtime_tts.cores import usable_cores
from realtime_tts.errors import ConfigError
from tts_scheduler import SchedulerConfig

if TYPE_CHECKING:
    from realtime_tts.engine.devices import Choice, Machine
    from realtime_tts.engine.interface import EngineInfo
    from realtime_tts.engine.settings import EngineConfig, EngineKind

_OPTIONS = {"lead_cap": "lead_seconds", "queue_timeout": "queue_seconds"}
"""Options of `serve` by the scheduler's names for them, where these differ."""


def device_choice(
    arguments: argparse.Namespace, look_up: Callable[[], Machine] | None = None
) -> Choice:
    """Return the devices that `--device` or `--devices` names, or those of this machine.

    `look_up` describes the machine, if that is needed; `devices.look_up` if not given.
    """
    from realtime_tts.engine import devices

    if arguments.devices not in (None, "all"):
        named = tuple(filter(None, arguments.devices.split(",")))
        if not named:
            raise ConfigError(f"--devices must name a device, or be all; got {arguments.devices!r}")
        return devices.Choice(named)
    if arguments.devices is None and arguments.device != "auto":
        return devices.Choice((arguments.device,))
    if arguments.engine == "fake":
        return devices.Choice(("cpu",))
    return devices.choose((look_up or devices.look_up)())


def engine_configs(
    arguments: argparse.Namespace, choice: Choice | None = None
) -> tuple[EngineConfig, ...]:
    """Return the settings of an engine for each --model. Raises ConfigError."""
    _check_used(arguments)
    models = arguments.model or ["demo"]
    if len(set(models)) < len(models):
        raise ConfigError(f"a --model is given twice: {', '.join(models)}")
    chosen = choice or device_choice(arguments)
    return tuple(_engine_config(arguments, model, chosen.devices) for model in models)


def _check_used(arguments: argparse.Namespace) -> None:
    """Raise ConfigError for an option that another one would make useless."""
    from realtime_tts.engine.settings import EngineConfig

    fake = arguments.engine == "fake"
    if fake and arguments.model and arguments.model != ["demo"]:
        raise ConfigError("--engine fake makes tones and takes no --model; give one of the two")
    if fake and arguments.random_weights is not None:
        raise ConfigError("--engine fake has no weights: leave --random-weights out")
    if not fake and arguments.step_seconds != EngineConfig().step_seconds:
        raise ConfigError("--step-seconds is for --engine fake; leave it out with a model")
    if arguments.random_weights is not None and arguments.model:
        raise ConfigError("random weights take the place of a model; give one of the two")


def engine_config(arguments: argparse.Namespace, choice: Choice | None = None) -> EngineConfig:
    """Return the settings of the one engine, where there cannot be several. Raises ConfigError."""
    found = engine_configs(arguments, choice)
    if len(found) > 1:
        raise ConfigError("only `serve` takes several --model")
    return found[0]


def _engine_config(
    arguments: argparse.Namespace, model: str, chosen: tuple[str, ...]
) -> EngineConfig:
    from realtime_tts.engine.guards import GuardConfig
    from realtime_tts.engine.settings import EngineConfig

    no_gpu = arguments.devices == "all" and chosen == ("cpu",)
    devices = () if arguments.devices is None or no_gpu else chosen
    # A thread on a CPU, where torch computes outside of Python's lock; elsewhere a process.
    usual: EngineKind = "process" if devices or chosen[0].startswith("cuda") else "inline"
    config = EngineConfig(
        model=model,
        kind=arguments.engine or usual,
        random_weights=arguments.random_weights,
        device=chosen[0],
        devices=devices,
        scheduler=_scheduler_config(arguments),
        eager=arguments.eager,
        dtype=arguments.dtype,
        threads=arguments.threads,
        max_frames=arguments.max_frames,
        gpu_memory=arguments.gpu_memory,
        guards=GuardConfig(enabled=arguments.guards and arguments.random_weights is None),
        step_seconds=arguments.step_seconds,
        voices_dir=_voices_dir(arguments),
    )
    if arguments.slots is None and config.on_cuda and not config.eager:
        from realtime_tts.engine.memory import MOST_SLOTS

        most = replace(config.scheduler, slots=MOST_SLOTS)  # as many as the GPU's memory holds
        return replace(config, scheduler=most, fit_slots=True)
    return config


def _scheduler_config(arguments: argparse.Namespace) -> SchedulerConfig:
    slots = SchedulerConfig().slots if arguments.slots is None else arguments.slots
    try:
        return SchedulerConfig(
            slots=slots,
            max_queue=arguments.max_queue,
            **{name: getattr(arguments, option) for name, option in _OPTIONS.items()},
            **{name: getattr(arguments, name) for name in SCHEDULING},
        )
    except ValueError as error:
        said = str(error)
        for name, option in _OPTIONS.items():
            said = said.replace(name, option)
        raise ConfigError(said) from None


def _voices_dir(arguments: argparse.Namespace) -> str | None:
    """Return where registered voices are kept. The fake engine's are worth nothing, so they stay
    out of the user's own folder. Raises ConfigError for a store that cannot be used here."""
    from realtime_tts.voices.stored import check_location

    if arguments.voices_dir is not None:
        check_location(arguments.voices_dir)
    if arguments.voices_dir is not None or arguments.engine == "fake":
        return cast("str | None", arguments.voices_dir)
    from realtime_tts.voices.registry import default_folder

    return str(default_folder())


_SLOTS_OF_A_FRONT, _CORES_OF_A_FRONT, _MOST_FRONTS = 64, 2, 8
_MOST_ASKED = 256
"""A slip, such as a port in place of their number, would start as many processes, which no machine
survives."""


def front_count(
    asked: int | None, engines: Sequence[EngineConfig], cores: int | None = None
) -> int:
    """Return how many processes hold the clients' sockets. `cores`: those that this process may
    use, if not given.

    Raises ConfigError.
    """
    if asked is not None:
        if not 1 <= asked <= _MOST_ASKED:
            raise ConfigError(f"--fronts must be from 1 to {_MOST_ASKED}, got {asked}")
        return asked
    slots = sum(len(one.processes()) * one.scheduler.slots for one in engines)
    cores = usable_cores() if cores is None else cores
    useful = min(-(-slots // _SLOTS_OF_A_FRONT), cores // _CORES_OF_A_FRONT, _MOST_FRONTS)
    return max(1, useful)


def chosen_lines(
    info: EngineInfo, capacity: int, config: SchedulerConfig, sessions: int
) -> tuple[str, str, str]:
    """Return lines about what was chosen and how many conversations that is, once the engine is
    ready.

    `capacity`: turns that the machine can speak at the same time, as warm-up has measured.
    """
    executions = info.executions
    kinds: dict[str, list[str]] = {}
    for one in executions:
        kinds.setdefault(str(one), []).append(one.device)
    runs = "; ".join(f"{', '.join(on)}: {how}" for how, on in kinds.items()) or "tones, no model"
    kv_bytes = sum(one.kv_bytes for one in executions)
    kv = f", {kv_bytes / 2**30:.1f} GiB for keys and values" if kv_bytes else ""
    queue = sum(_queue_length(one, config) for one in info.all_models)
    return (
        f"engine: {runs}",
        f"memory: slots for {counted(info.slots, 'turn')}{kv}",
        f"speed:  {counted(capacity, 'conversation')} can speak at once, "
        f"{counted(queue, 'more turn')} may wait; up to {counted(sessions, 'session')}",
    )


def _queue_length(info: EngineInfo, config: SchedulerConfig) -> int:
    """Return the queue length of one model, over all its devices."""
    devices = max(1, len(info.executions))
    return devices * replace(config, slots=max(1, info.slots // devices)).queue_length


def log_reasons(choice: Choice) -> None:
    """Log why a device that exists was not chosen."""
    from realtime_tts.logs import event

    for reason in choice.reasons:
        event(logging.getLogger(__name__), logging.WARNING, "engine.device_unused", reason=reason)


def log_start(engines: Sequence[EngineConfig]) -> None:
    """Log what is being loaded: it may take a while."""
    from realtime_tts.logs import event
    from realtime_tts.version import __version__

    names = [engine.name for engine in engines]
    where = list(engines[0].devices) or [engines[0].device]
    log = logging.getLogger(__name__)
    event(log, logging.INFO, "server.starting", version=__version__, models=names, devices=where)
