"""Makes the link that a configuration asks for: to a thread, a process, or a process for each
device, and for each checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from realtime_tts.checkpoint import ignore_progress
from realtime_tts.engine.addresses import Addresses
from realtime_tts.engine.data_parallel import DataParallelEngines
from realtime_tts.engine.devices import usual_threads
from realtime_tts.engine.in_process import InProcessEngine
from realtime_tts.engine.interface import EngineInfo, Progress
from realtime_tts.engine.link import EngineLink
from realtime_tts.engine.load import engine_loader, registered_voices, voice_families
from realtime_tts.engine.models import Models
from realtime_tts.engine.multiprocess import MultiprocessEngine
from realtime_tts.engine.settings import EngineConfig
from realtime_tts.engine.shared import SharedEngine
from realtime_tts.metrics import Metrics

OnEngineAddresses = Callable[[int, Addresses | None], None]
"""Called like `multiprocess.OnAddresses`, with the number of the engine first."""


EngineOf = Callable[[EngineConfig, str, Progress], EngineLink]
"""Makes the link to the engine process that a config describes, with a name for the log."""


def make_links(configs: Sequence[EngineConfig], metrics: Metrics, progress: Progress) -> EngineLink:
    """Return the link to the engines of these checkpoints. Call it on the event loop that will use
    it. Nothing runs before the link's `start`."""
    return _Maker(metrics, partial(_child, metrics)).links(configs, progress)


def parent_links(
    configs: Sequence[EngineConfig],
    metrics: Metrics,
    progress: Progress,
    on_addresses: OnEngineAddresses,
) -> tuple[EngineLink, tuple[MultiprocessEngine, ...]]:
    """Return the link of the supervisor, and its engines: each runs in a process of its own,
    because other processes are the fronts. The engines are in the order of `shared_links`;
    `on_addresses` gets an engine's number and its addresses."""
    made: list[MultiprocessEngine] = []

    def parent_of(config: EngineConfig, name: str, progress: Progress) -> EngineLink:
        link = _child(
            metrics, config, name, progress, on_addresses=partial(on_addresses, len(made))
        )
        made.append(link)
        return link

    return _Maker(metrics, parent_of).links([*map(_in_process, configs)], progress), tuple(made)


def shared_links(
    configs: Sequence[EngineConfig], infos: Sequence[EngineInfo] = ()
) -> tuple[EngineLink, tuple[SharedEngine, ...]]:
    """Return the link of a front, and its engines, which the supervisor starts.

    `infos`: what each engine can do, for a front that starts when all have been ready. It then
    serves with those that are ready now, because some may never come back.
    """
    made: list[SharedEngine] = []

    def shared_of(config: EngineConfig, name: str, progress: Progress) -> EngineLink:
        info = infos[len(made)] if infos else None
        link = SharedEngine(name, registered_voices(config), info)
        made.append(link)
        return link

    unused = Metrics()  # never shown: the parent's show the engines
    maker = _Maker(unused, shared_of, loaded=bool(infos))
    return maker.links([*map(_in_process, configs)], ignore_progress), tuple(made)


@dataclass(frozen=True, slots=True)
class _Maker:
    """Makes the links of one server. `loaded`: its engines have all been ready before."""

    metrics: Metrics
    engine_of: EngineOf
    loaded: bool = False

    def links(self, configs: Sequence[EngineConfig], progress: Progress) -> EngineLink:
        """Return the link to several checkpoints: on one CPU they share cores, on one GPU
        memory."""
        if len(configs) == 1:
            return self._link(configs[0], progress)
        # Engines on devices of their own share no cores.
        alike = tuple(configs)
        alike = alike if any(one.devices for one in alike) else _share_cores(alike)
        links = {
            one.model: self._link(one, _named(progress, one.model)) for one in _share_memory(alike)
        }
        return Models(links, voice_families(configs[0]), loaded=self.loaded)

    def _link(self, config: EngineConfig, progress: Progress) -> EngineLink:
        processes = _share_cores(config.processes())
        if not processes:
            return InProcessEngine(
                engine_loader(config),
                config.scheduler,
                guards=config.guards,
                observer=self.metrics,
                progress=progress,
            )
        if len(processes) == 1:
            return self.engine_of(processes[0], processes[0].device, progress)
        names = [f"{number}-{one.device}" for number, one in enumerate(processes)]
        named = zip(processes, names, strict=True)
        return DataParallelEngines(
            [self.engine_of(one, name, _named(progress, name)) for one, name in named],
            loaded=self.loaded,
        )


def _child(
    metrics: Metrics, config: EngineConfig, name: str, progress: Progress, **options: Any
) -> MultiprocessEngine:
    return MultiprocessEngine(
        engine_loader(config),
        config.scheduler,
        guards=config.guards,
        observer=metrics,
        progress=progress,
        registered=registered_voices(config),
        name=name,
        **options,
    )


def _in_process(config: EngineConfig) -> EngineConfig:
    if config.kind == "inline":
        return replace(config, kind="process")
    return config if config.devices else replace(config, devices=(config.device,))


def _named(progress: Progress, name: str) -> Progress:
    return lambda what, done, total: progress(f"{what} ({name})", done, total)


def _share_memory(models: tuple[EngineConfig, ...]) -> tuple[EngineConfig, ...]:
    """Divide nine tenths of the GPU's memory evenly among checkpoints without a limit."""
    share = f"{90 // len(models)}%"
    return tuple(
        replace(one, gpu_memory=share) if one.on_cuda and one.gpu_memory is None else one
        for one in models
    )


def _share_cores(processes: tuple[EngineConfig, ...]) -> tuple[EngineConfig, ...]:
    """Divide the cores among several engines on one CPU."""
    on_cpu = sum(one.device == "cpu" for one in processes)
    if on_cpu < 2:
        return processes
    threads = usual_threads(on_cpu)
    return tuple(
        replace(one, threads=threads) if one.device == "cpu" and one.threads is None else one
        for one in processes
    )
