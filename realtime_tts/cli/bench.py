"""`realtime-tts bench`: figures of a server under load, measured at the client."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from realtime_tts.bench.deltas import DeltaKind, DeltaTiming
from realtime_tts.bench.load import Progress as Report
from realtime_tts.bench.local_server import local_server
from realtime_tts.bench.prompts import PROMPTS
from realtime_tts.bench.run import BenchResult
from realtime_tts.bench.run import run as run_bench
from realtime_tts.bench.settings import BenchSettings, Level, Mode
from realtime_tts.bench.tables import headline, markdown_table, terminal_table
from realtime_tts.cli.failures import ExitStatus
from realtime_tts.cli.session_arguments import (
    add_server_arguments,
    add_voice_arguments,
    session_options,
)
from realtime_tts.errors import ConfigError

_EXAMPLES = """\
examples:
  realtime-tts bench --start --sessions 1,2,4,8          start a server, measure it, stop it
  realtime-tts bench --mode open --rate 0.5,1,2 --seconds 60
  realtime-tts bench --start "--engine fake" --json fake.json --png fake.png
  realtime-tts bench --deltas words --tokens-per-second 20 --stall-chance 0.02

Latency and gaps are measured while turns are paced as listeners hear them. RTF comes from a second
pass in which the server runs as fast as it can.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    parser.add_argument(
        "--start",
        nargs="?",
        const="",
        metavar="FLAGS",
        help="start a server for the run, with these flags of `serve` if any",
    )
    _add_load_arguments(parser.add_argument_group("load"))
    _add_text_arguments(parser.add_argument_group("text"))
    output = parser.add_argument_group("output")
    output.add_argument("--json", type=Path, metavar="FILE", help="all figures")
    output.add_argument("--png", type=Path, metavar="FILE", help="a picture (extra `plot`)")
    output.add_argument("--markdown", type=Path, metavar="FILE", help="the table, for documents")
    add_server_arguments(parser)
    add_voice_arguments(parser)
    parser.set_defaults(seed=0)


def _add_load_arguments(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--mode", choices=[mode.value for mode in Mode], default=Mode.CLOSED.value)
    group.add_argument(
        "--sessions", default="1,2,4,8", help="closed loop: sessions at once (default: 1,2,4,8)"
    )
    group.add_argument(
        "--rate", default="1", help="open loop: turns per second on average (default: 1)"
    )
    group.add_argument(
        "--turns", type=int, default=5, help="closed loop: turns per session (default: 5)"
    )
    group.add_argument("--seconds", type=float, help="length of a level (open loop: 30)")
    group.add_argument(
        "--warm-up", type=int, default=1, help="turns per session that do not count (default: 1)"
    )
    group.add_argument(
        "--pause", type=float, default=0.3, help="mean seconds between turns (default: 0.3)"
    )
    group.add_argument(
        "--interrupts", type=float, default=0.0, help="share of turns that are cut off (default: 0)"
    )
    group.add_argument(
        "--rtf-turns",
        type=int,
        default=2,
        help="turns per session of the unpaced pass; 0: no RTF (default: 2)",
    )


def _add_text_arguments(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--deltas", choices=[kind.value for kind in DeltaKind], default=DeltaKind.TOKENS.value
    )
    group.add_argument(
        "--prompts", type=Path, metavar="FILE", help="texts to speak, one a line (default: our own)"
    )
    group.add_argument("--tokens-per-second", type=float, default=60.0)
    group.add_argument("--jitter", type=float, default=0.5, help="of the gaps, 0: even")
    group.add_argument("--stall-chance", type=float, default=0.0, help="for each delta")
    group.add_argument("--stall-seconds", type=float, default=0.5)


def run(arguments: argparse.Namespace) -> int:
    levels = levels_of(arguments)
    if arguments.png is not None:
        import matplotlib  # noqa: F401 - missing: say so now, not after the run
    result = asyncio.run(_run(arguments, levels))
    console = Console(highlight=False)
    console.print(terminal_table(result))
    console.print(headline(result), style="dim")
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(result.as_dict(), indent=2) + "\n", encoding="utf-8")
    if arguments.markdown is not None:
        arguments.markdown.write_text(markdown_table(result), encoding="utf-8")
    if arguments.png is not None:
        from realtime_tts.bench.plot import save_plot

        save_plot(result, arguments.png)
    return ExitStatus.OK


async def _run(arguments: argparse.Namespace, levels: list[Level]) -> BenchResult:
    console = Console(stderr=True)
    async with contextlib.AsyncExitStack() as stack:
        url = arguments.url
        if arguments.start is not None:
            with console.status("starting a server"):
                server = local_server(arguments.start.split())
                url = await stack.enter_async_context(server)
        with _progress(console) as report:
            return await run_bench(bench_settings(arguments, url), levels, report)


def levels_of(arguments: argparse.Namespace) -> list[Level]:
    """The levels on the command line. Raises ConfigError."""
    try:
        if arguments.mode == Mode.CLOSED:
            return [Level(Mode.CLOSED, sessions=int(n)) for n in arguments.sessions.split(",")]
        return [Level(Mode.OPEN, rate=float(rate)) for rate in arguments.rate.split(",")]
    except ValueError as error:
        raise ConfigError(f"expected numbers separated by commas: {error}") from error


def bench_settings(arguments: argparse.Namespace, url: str) -> BenchSettings:
    """The settings on the command line. Raises ConfigError."""
    timing = DeltaTiming(
        kind=DeltaKind(arguments.deltas),
        tokens_per_second=arguments.tokens_per_second,
        jitter=arguments.jitter,
        stall_chance=arguments.stall_chance,
        stall_seconds=arguments.stall_seconds,
    )
    return BenchSettings(
        server=url,
        api_key=arguments.api_key,
        options=session_options(arguments),
        timing=timing,
        turns=arguments.turns,
        seconds=arguments.seconds,
        warm_up=arguments.warm_up,
        pause=arguments.pause,
        interrupts=arguments.interrupts,
        rtf_turns=arguments.rtf_turns,
        seed=arguments.seed,
        prompts=PROMPTS if arguments.prompts is None else prompts_of(arguments.prompts),
    )


def prompts_of(path: Path) -> tuple[str, ...]:
    """The lines of a file that hold text. Raises ConfigError."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read the prompts: {error}") from error
    return tuple(line.strip() for line in lines if line.strip())


@contextlib.contextmanager
def _progress(console: Console) -> Iterator[Report]:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("connecting", total=None)

        def report(what: str, done: int, total: int | None) -> None:
            progress.update(task, description=what, completed=done, total=total)

        yield report
