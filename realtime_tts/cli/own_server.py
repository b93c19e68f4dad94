"""A server in the process of a command, for that command alone: `say --local` speaks with it."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import os
import secrets
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn, TextIO

from rich.console import Console

from realtime_tts.cli import serve
from realtime_tts.cli.failures import ExitStatus, explain
from realtime_tts.cli.progress import LoadingProgress
from realtime_tts.cli.serve_engine import engine_configs
from realtime_tts.errors import ConfigError
from realtime_tts.memory_limits import check_memory_limits

if TYPE_CHECKING:
    from realtime_tts.config import ServerConfig
    from realtime_tts.engine.settings import EngineConfig

Use = Callable[[str, str], Awaitable[int]]
"""Gets the server's URL and its key; returns the exit status."""

_FOR_OTHERS = (
    "config",
    "host",
    "port",
    "fronts",
    "agent_port",
    "keys",
    "tls_cert",
    "tls_key",
    "tls_self_signed",
)
_FEW_SLOTS = 2
"""Slots for one utterance and the one that goes on after it: the fewer, the shorter the warm-up."""


def with_own_server(flags: Sequence[str], console: Console, use: Use) -> int:
    """Start a server with these flags of `serve`, run `use` with it, and stop it. Returns what
    `use` does. Only `use` has the server's key.

    The environment's variables for `serve` are not read. Progress is shown on a terminal. Raises
    ConfigError for flags that make no sense here, EngineError if the engine does not load.
    """
    arguments = _arguments(flags)
    with LoadingProgress(console) as progress, _log(arguments, progress.log):
        check_memory_limits(serve.checkpoint_folders(arguments))  # before what is large is imported
        engines = engine_configs(arguments)
        key = secrets.token_hex(16)
        config = serve.server_config(arguments, terminal=True)
        config = replace(config, port=0, api_keys=(key,))
        _import(engines)

        async def use_it(url: str) -> int:
            progress.close()
            return await use(url, key)

        return asyncio.run(_served(config, engines, progress, use_it))


def _import(engines: Sequence[EngineConfig]) -> None:
    """Import what takes seconds, where Ctrl-C ends it at once and an ImportError is reported."""
    import realtime_tts.server.run  # noqa: F401

    if any(engine.kind == "inline" for engine in engines):
        import torch  # noqa: F401


async def _served(
    config: ServerConfig,
    engines: Sequence[EngineConfig],
    progress: LoadingProgress,
    use: Callable[[str], Awaitable[int]],
) -> int:
    from realtime_tts.engine.links import make_links
    from realtime_tts.engine.load import tokenizer_loaders, voice_library
    from realtime_tts.metrics import Metrics
    from realtime_tts.server.run import make_front, running_front

    metrics = Metrics()
    link, loaders = make_links(engines, metrics, progress.update), tokenizer_loaders(engines)
    front = make_front(config, link, loaders, metrics, voice_library(engines))
    status: int = ExitStatus.INTERRUPTED
    try:
        async with running_front(front, wait_ready=False) as server:
            await front.engine.until_ready()
            status = await use(server.url)
    finally:
        if front.engine.stuck:
            progress.close()
            _leave(status)
    return status


def _leave(status: int) -> NoReturn:
    """End now. Python would wait for the engine's thread, which cannot be ended while it loads, for
    example, a large checkpoint."""
    error = sys.exc_info()[1]
    if isinstance(error, Exception):
        status, message = explain(error)
        print(f"realtime-tts: {message}", file=sys.stderr)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _arguments(flags: Sequence[str]) -> argparse.Namespace:
    """Parse the flags. Raises ConfigError for those of a server that others use."""
    parser = argparse.ArgumentParser(prog="realtime-tts say --start", add_help=False)
    serve.add_arguments(parser)
    parser.usage, parser.epilog = "%(prog)s 'FLAGS OF SERVE'", None
    parser.set_defaults(slots=_FEW_SLOTS, log_level=None)
    arguments = parser.parse_args(flags)
    for name in _FOR_OTHERS:
        if getattr(arguments, name) != parser.get_default(name):
            flag = name.replace("_", "-")
            raise ConfigError(
                f"--{flag} is for a server that others use: leave it out here, or start one with "
                "`realtime-tts serve`"
            )
    return arguments


@contextlib.contextmanager
def _log(arguments: argparse.Namespace, stream: TextIO) -> Iterator[None]:
    """Set the log up for the block. There is none unless one was asked for, since an exception says
    what goes wrong."""
    if arguments.log_level is not None:
        from realtime_tts.logs import configure_logging

        undo = configure_logging(arguments.log_format or "text", arguments.log_level, stream=stream)
        try:
            yield
        finally:
            undo()
        return
    arguments.log_level = "error"
    nowhere = logging.NullHandler()  # otherwise Python uses one of its own
    logging.getLogger().addHandler(nowhere)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(nowhere)
