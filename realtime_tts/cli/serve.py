"""`realtime-tts serve`: flags and environment to configs, then the server."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, cast

from rich.console import Console

from realtime_tts.cli.serve_arguments import KEYS_VARIABLE, add_arguments
from realtime_tts.cli.serve_tls import tls_config
from realtime_tts.cli.session_arguments import KEY_VARIABLE
from realtime_tts.errors import ConfigError
from tts_scheduler import SchedulerConfig

if TYPE_CHECKING:
    from realtime_tts.config import ServerConfig, TlsConfig
    from realtime_tts.engine.link import EngineLink
    from realtime_tts.engine.settings import EngineConfig, EngineKind
    from realtime_tts.server.engine_host import LoadTokenizer


import shlex
import threading
from types import TracebackType
from typing import TYPE_CHECKING

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from realtime_tts.cli.serve_tls import EVERYWHERE

if TYPE_CHECKING:
    from realtime_tts.config import ServerConfig
    from realtime_tts.engine.settings import EngineConfig


__all__ = ["add_arguments", "engine_config", "engine_configs", "run", "server_config"]


def run(arguments: argparse.Namespace) -> int:
    """Serve until SIGTERM or Ctrl-C. Returns the exit status."""
    from realtime_tts.engine.links import make_links
    from realtime_tts.engine.load import voice_maker_loader
    from realtime_tts.logs import configure_logging
    from realtime_tts.metrics import Metrics
    from realtime_tts.server.run import serve
    from realtime_tts.voices.library import VoiceLibrary

    console = Console(stderr=True)
    engines = engine_configs(arguments)
    voices_dir = engines[0].voices_dir
    metrics = Metrics()
    progress = LoadingProgress(console)

    def link() -> EngineLink:
        return make_links(engines, metrics, progress.update)

    def library() -> VoiceLibrary:
        assert voices_dir is not None
        return VoiceLibrary(voices_dir, voice_maker_loader(*engines))

    def ready(port: int) -> None:
        progress.close()
        # Where nobody watches, standard error is the log: JSON lines and nothing else.
        where = console if console.is_terminal else Console()
        welcome(where, config, engines, port, self_signed=arguments.tls_self_signed)

    with tls_config(arguments) as tls, progress:
        config = server_config(arguments, terminal=console.is_terminal, tls=tls)
        configure_logging(config.log_format, config.log_level, access_log=config.access_log)
        return serve(
            config,
            link,
            _tokenizers(engines),
            metrics,
            make_voices=library if voices_dir else None,
            on_ready=ready,
        )


def server_config(
    arguments: argparse.Namespace, *, terminal: bool, tls: TlsConfig | None = None
) -> ServerConfig:
    """The front's settings. Raises ConfigError."""
    from realtime_tts.config import LimitsConfig, ServerConfig

    return ServerConfig(
        host=arguments.host,
        port=arguments.port,
        api_keys=tuple(arguments.api_key or _keys_of_environment()),
        allowed_origins=tuple(arguments.allow_origin or ()),
        lead_seconds=arguments.lead_seconds,
        drain_seconds=arguments.drain_seconds,
        log_format=arguments.log_format or ("text" if terminal else "json"),
        log_level=arguments.log_level,
        tls=tls,
        limits=LimitsConfig(max_sessions=arguments.max_sessions),
    )


def engine_configs(arguments: argparse.Namespace) -> tuple[EngineConfig, ...]:
    """The settings of an engine for each --model. Raises ConfigError."""
    models = arguments.model or ["demo"]
    if len(set(models)) < len(models):
        raise ConfigError(f"a --model is given twice: {', '.join(models)}")
    return tuple(_engine_config(arguments, model) for model in models)


def engine_config(arguments: argparse.Namespace) -> EngineConfig:
    """The settings of the one engine, where there cannot be several. Raises ConfigError."""
    found = engine_configs(arguments)
    if len(found) > 1:
        raise ConfigError("only `serve` takes several --model")
    return found[0]


def _engine_config(arguments: argparse.Namespace, model: str) -> EngineConfig:
    from realtime_tts.engine.guards import GuardConfig
    from realtime_tts.engine.settings import EngineConfig

    if arguments.engine == "fake" and model != "demo":
        raise ConfigError("--engine fake makes tones and takes no --model; give one of the two")
    random = arguments.random_weights
    devices = tuple(filter(None, (arguments.devices or "").split(",")))
    on_cuda = (devices or (arguments.device,))[0].startswith("cuda")
    return EngineConfig(
        model=model,
        kind=arguments.engine or _engine_kind(arguments.device, devices),
        random_weights=random,
        device=arguments.device,
        devices=devices,
        scheduler=_scheduler_config(arguments),
        dtype=arguments.dtype or ("bfloat16" if random and on_cuda else "float32"),
        threads=arguments.threads,
        max_frames=arguments.max_frames,
        kv_memory=arguments.kv_memory,
        guards=GuardConfig(enabled=not arguments.no_guards and random is None),
        step_seconds=arguments.step_seconds,
        voices_dir=_voices_dir(arguments),
    )


def _scheduler_config(arguments: argparse.Namespace) -> SchedulerConfig:
    try:
        return SchedulerConfig(
            slots=arguments.slots,
            lead_cap=arguments.lead_seconds,
            min_start_tokens=arguments.min_start_tokens,
            max_start_wait=arguments.max_start_wait,
            utilisation=arguments.utilisation,
            max_queue=arguments.max_queue,
            queue_timeout=arguments.queue_seconds,
        )
    except ValueError as error:
        raise ConfigError(str(error)) from None


def _voices_dir(arguments: argparse.Namespace) -> str | None:
    """The fake engine's voices are worth nothing, so they stay out of the user's own folder."""
    if arguments.voices_dir is not None or arguments.engine == "fake":
        return cast("str | None", arguments.voices_dir)
    from realtime_tts.voices.registry import default_folder

    return str(default_folder())


def _engine_kind(device: str, devices: tuple[str, ...]) -> EngineKind:
    """A thread on a CPU, where torch computes outside of Python's lock; elsewhere a process."""
    return "process" if devices or device.startswith("cuda") else "inline"


def _tokenizers(engines: Sequence[EngineConfig]) -> LoadTokenizer:
    from realtime_tts.engine.load import load_tokenizer

    if len(engines) == 1:
        return partial(load_tokenizer, engines[0])
    return {engine.model: partial(load_tokenizer, engine) for engine in engines}


def _keys_of_environment() -> list[str]:
    keys = os.environ.get(KEYS_VARIABLE) or os.environ.get(KEY_VARIABLE) or ""
    return [key.strip() for key in keys.split(",") if key.strip()]


class LoadingProgress:
    """Shows how far a checkpoint is downloaded, loaded and warmed up, with a bar for each stage.

    `update` may be called from any thread. Nothing is shown where the output is no terminal.

    Use as a context manager, so that the terminal is left clean whatever happens.
    """

    def __init__(self, console: Console) -> None:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
        )
        self._progress = Progress(*columns, console=console, transient=True)
        self._tasks: dict[str, int] = {}
        self._lock = threading.Lock()
        self._open = False

    def __enter__(self) -> LoadingProgress:
        self._open = self._progress.console.is_terminal  # elsewhere rich leaves an empty line
        if self._open:
            self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def update(self, what: str, done: int, total: int) -> None:
        """Stage `what` has come to `done` of `total`."""
        with self._lock:
            if not self._open:
                return
            if what not in self._tasks:
                self._finish_earlier_stages()
                self._tasks[what] = self._progress.add_task(what, total=total)
            task = self._progress.tasks[self._tasks[what]].id
            self._progress.update(task, completed=done, total=total)

    def _finish_earlier_stages(self) -> None:
        """Fill the bars of earlier stages: when a new one begins, the others are done."""
        for task in self._progress.tasks:
            self._progress.update(task.id, completed=task.total)

    def close(self) -> None:
        """Take the bars away. Idempotent."""
        with self._lock:
            if self._open:
                self._open = False
                self._progress.stop()


def welcome(
    console: Console,
    config: ServerConfig,
    engines: Sequence[EngineConfig],
    port: int,
    *,
    self_signed: bool = False,
) -> None:
    """Print where the server is, and three ways to talk to it.

    `self_signed`: clients have to be told to trust the certificate of `config`."""
    host = "127.0.0.1" if config.host in EVERYWHERE else config.host
    authority = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    http, ws = ("https", "wss") if config.tls else ("http", "ws")
    flags, trust = "", ""
    if config.tls or port != 8000 or host != "127.0.0.1":
        flags = f" --url {ws}://{authority}"
    if config.tls and self_signed:
        flags += f" --tls-ca {shlex.quote(config.tls.certificate)}"
        trust = f"--cacert {shlex.quote(config.tls.certificate)} "
    names = ", ".join(engine.name for engine in engines)
    lines = (
        f"[bold]realtime-tts[/bold] speaks with {names} on [bold]{http}://{authority}[/bold]",
        f'  realtime-tts say{flags} "Hello there."',
        f"  echo 'Text that is still arriving' | realtime-tts say{flags} --stdin",
        f"  curl {trust}{http}://{authority}/v1/voices        "
        f"# the WebSocket is {ws}://{authority}/v1/tts",
    )
    for line in lines:
        console.print(line, highlight=False, soft_wrap=True)
