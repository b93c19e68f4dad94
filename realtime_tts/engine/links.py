"""The link that a configuration asks for: a thread, a process, or a process for each device; and
of these one for each checkpoint."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

from realtime_tts.engine.data_parallel import DataParallelEngines
from realtime_tts.engine.in_process import InProcessEngine
from realtime_tts.engine.interface import Progress
from realtime_tts.engine.link import EngineLink
from realtime_tts.engine.load import engine_loader, registered_voices, voice_families
from realtime_tts.engine.models import Models
from realtime_tts.engine.multiprocess import MultiprocessEngine
from realtime_tts.engine.settings import EngineConfig
from realtime_tts.metrics import Metrics


def make_link(config: EngineConfig, metrics: Metrics, progress: Progress) -> EngineLink:
    """Call it on the event loop that will use it. Nothing runs before the link's `start`."""
    processes = _share_cores(config.processes())
    if not processes:
        return InProcessEngine(
            engine_loader(config),
            config.scheduler,
            guards=config.guards,
            observer=metrics,
            progress=progress,
        )
    links = []
    for number, one in enumerate(processes):
        name = one.device if len(processes) == 1 else f"{number}-{one.device}"
        shown = progress if len(processes) == 1 else _named(progress, name)
        link = MultiprocessEngine(
            engine_loader(one),
            one.scheduler,
            guards=one.guards,
            observer=metrics,
            progress=shown,
            registered=registered_voices(one),
            name=name,
        )
        links.append(link)
    return links[0] if len(links) == 1 else DataParallelEngines(links)


def make_links(configs: Sequence[EngineConfig], metrics: Metrics, progress: Progress) -> EngineLink:
    """The same for several checkpoints; those on one CPU share its cores, on one GPU its memory."""
    if len(configs) == 1:
        return make_link(configs[0], metrics, progress)
    # Engines on devices of their own share no cores.
    alike = tuple(configs)
    alike = alike if any(one.devices for one in alike) else _share_cores(alike)
    alike = _share_memory(alike)
    links = {one.model: make_link(one, metrics, _named(progress, one.model)) for one in alike}
    return Models(links, voice_families(configs[0]))


def _named(progress: Progress, name: str) -> Progress:
    return lambda what, done, total: progress(f"{what} ({name})", done, total)


def _share_memory(models: tuple[EngineConfig, ...]) -> tuple[EngineConfig, ...]:
    """Each may take its part of the GPU, together nine tenths."""
    share = f"{90 // len(models)}%"
    return tuple(
        replace(one, gpu_memory=share) if one.on_cuda and one.gpu_memory is None else one
        for one in models
    )


def _share_cores(processes: tuple[EngineConfig, ...]) -> tuple[EngineConfig, ...]:
    """Several engines on one CPU get as many threads together as one alone would take."""
    on_cpu = sum(one.device == "cpu" for one in processes)
    if on_cpu < 2:
        return processes
    threads = max(1, ((os.cpu_count() or 1) - 1) // on_cpu)
    return tuple(
        replace(one, threads=threads) if one.device == "cpu" and one.threads is None else one
        for one in processes
    )
