"""`realtime-tts bench`: figures of a server under load, measured at the client."""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from realtime_tts.bench import feed_run
from realtime_tts.bench.feed_run import FeedsResult, run_feeds
from realtime_tts.bench.feeds import FEEDS
from realtime_tts.bench.local_server import local_server, run_with_server
from realtime_tts.bench.run import BenchResult
from realtime_tts.bench.run import run as run_bench
from realtime_tts.bench.settings import Level
from realtime_tts.bench.suite import figures
from realtime_tts.bench.tables import headline, markdown_table, terminal_table
from realtime_tts.bench.workload import Progress as Report
from realtime_tts.bench.workload import Target
from realtime_tts.cli.bench_arguments import add_arguments, bench_settings, feeds_at_once, levels_of
from realtime_tts.cli.counted import counted
from realtime_tts.cli.failures import ExitStatus, check_writable
from realtime_tts.cli.progress import progress_bars
from realtime_tts.cli.session_arguments import quoted_flags, shown_command
from realtime_tts.client import SessionOptions
from realtime_tts.errors import ConfigError

__all__ = ["add_arguments", "run"]

_TITLE_WIDTH, _LEVEL_WIDTH, _FEEDS_WIDTH = 25, 12, 140
_FROM_HERE = ("--connection-rate", "1000000")
"""Flags of a server that is started for a run: all its clients have this machine's address."""
_TOO_WIDE = "The table is too wide for this terminal: --markdown FILE writes it."


def run(arguments: argparse.Namespace) -> int:
    check_writable(arguments.json, arguments.markdown, arguments.png)
    if arguments.random_weights is not None and arguments.url != arguments.parser.get_default(
        "url"
    ):
        raise ConfigError("--random-weights starts a server for the run: leave --url out")
    if arguments.feeds is not None:
        return _feeds(arguments)
    levels = levels_of(arguments)
    if arguments.png is not None:
        import matplotlib  # noqa: F401 - missing: say so now, not after the run
    if arguments.compare is not None:
        return _compare(arguments)
    with _quiet_client():
        result = run_with_server(_run(arguments, levels))
    console = Console(highlight=False)
    width = _TITLE_WIDTH + _LEVEL_WIDTH * len(result.levels)
    console.print(terminal_table(result) if console.width >= width else _TOO_WIDE)
    for figure in figures(result.levels):
        console.print(f"{figure.name}: [bold]{figure.value}[/] ({figure.seen})")
    for note in result.notes:
        console.print(note, style="yellow")
    console.print(headline(result), style="dim")
    _write(arguments, result.as_dict(), markdown_table(result))
    if arguments.png is not None:
        _draw(result, arguments.png)
    return ExitStatus.FAILED if result.missing else ExitStatus.OK


def _write(arguments: argparse.Namespace, figures: dict[str, Any], markdown: str) -> None:
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    if arguments.markdown is not None:
        arguments.markdown.write_text(markdown, encoding="utf-8")


def _draw(result: BenchResult, path: Path) -> None:
    if len({level.mode for level in result.levels}) > 1:  # they have no axis in common
        from realtime_tts.bench.plot import growth, save_growth

        save_growth([growth(result.as_dict())], path)
        return
    from realtime_tts.bench.plot import save_plot

    save_plot(result, path)


def _compare(arguments: argparse.Namespace) -> int:
    if arguments.png is None:
        raise ConfigError("--compare draws a picture: say where with --png FILE")
    from realtime_tts.bench.plot import read_growth, save_growth

    save_growth([read_growth(path) for path in arguments.compare], arguments.png)
    return ExitStatus.OK


def _feeds(arguments: argparse.Namespace) -> int:
    at_once = feeds_at_once(arguments)
    result = run_with_server(_run_feeds(arguments, at_once))
    console = Console(highlight=False)
    wide = console.width >= _FEEDS_WIDTH
    console.print(feed_run.terminal_table(result) if wide else _TOO_WIDE)
    console.print(feed_run.headline(result), style="dim")
    _write(arguments, result.as_dict(), feed_run.markdown_table(result))
    return ExitStatus.FAILED if result.failed else ExitStatus.OK


async def _run_feeds(arguments: argparse.Namespace, at_once: int) -> FeedsResult:
    console = Console(stderr=True)
    async with _server(arguments, console) as url:
        settings, command = bench_settings(arguments, url), shown_command(arguments.words)
        feeds, replies = FEEDS[arguments.feeds]
        with _progress(console) as report:
            return await run_feeds(settings, feeds, replies, at_once, report, command)


async def _run(arguments: argparse.Namespace, levels: list[Level]) -> BenchResult:
    console = Console(stderr=True)

    def on_level(result: BenchResult) -> None:
        _write(arguments, result.as_dict(), markdown_table(result))
        level = result.levels[-1]
        console.print(
            f"{level.mode} {level.level}: {counted(level.turns, 'turn')}, "
            f"{counted(level.underruns, 'underrun')}"
        )

    async with contextlib.AsyncExitStack() as stack:
        url, target = arguments.url, None
        options = bench_settings(arguments, url).options
        if arguments.in_process is not None:
            flags = _server_flags(arguments.in_process, arguments)
            with console.status("loading the engine"):
                target = await stack.enter_async_context(_engine(flags, options))
        else:
            url = await stack.enter_async_context(_server(arguments, console))
        settings, command = bench_settings(arguments, url), shown_command(arguments.words)
        with _progress(console) as report:
            return await run_bench(
                settings, levels, report, target=target, command=command, on_level=on_level
            )


@contextlib.asynccontextmanager
async def _server(arguments: argparse.Namespace, console: Console) -> AsyncIterator[str]:
    """Yield the address of the server to measure, which is started for this run if asked for."""
    if arguments.start is None and arguments.random_weights is None:
        yield arguments.url
        return
    async with contextlib.AsyncExitStack() as stack:
        flags = _server_flags(arguments.start or "", arguments)
        with console.status("starting a server"):
            url = await stack.enter_async_context(local_server([*_FROM_HERE, *flags]))
        yield url


def _server_flags(given: str, arguments: argparse.Namespace) -> list[str]:
    """Return the flags of `serve`."""
    random = arguments.random_weights
    return quoted_flags(given) + (["--random-weights", random] if random else [])


def _engine(
    flags: Sequence[str], options: SessionOptions
) -> contextlib.AbstractAsyncContextManager[Target]:
    """Make an engine in this process, as `serve` with these flags would have it."""
    from realtime_tts.bench.in_process import engine_target
    from realtime_tts.cli import serve_arguments
    from realtime_tts.cli.serve_engine import engine_config

    parser = argparse.ArgumentParser(prog="realtime-tts bench --in-process")
    serve_arguments.add_arguments(parser)
    return engine_target(engine_config(parser.parse_args(flags)), options)


@contextlib.contextmanager
def _quiet_client() -> Iterator[None]:
    """Keep the client's warnings that speech ended early out of the terminal.

    The noise of random weights has a fixed length and ends before a long text does. Such turns are
    counted; they need no warning each.
    """
    log = logging.getLogger("realtime_tts.client")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(before)


@contextlib.contextmanager
def _progress(console: Console) -> Iterator[Report]:
    if not console.is_terminal:  # rich leaves an empty line there
        yield lambda what, done, total: None
        return
    with progress_bars(console) as progress:
        task = progress.add_task("connecting", total=None)

        def report(what: str, done: int, total: int | None) -> None:
            progress.update(task, description=what, completed=done, total=total)

        yield report
