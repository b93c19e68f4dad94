"""The flags of `realtime-tts bench`, and the settings they mean."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from realtime_tts.bench.deltas import DeltaKind, DeltaTiming
from realtime_tts.bench.prompts import PROMPTS
from realtime_tts.bench.settings import AgentSettings, BenchSettings, Level, Mode
from realtime_tts.cli.session_arguments import (
    add_server_arguments,
    add_voice_arguments,
    session_options,
)
from realtime_tts.errors import ConfigError

_EXAMPLES = """\
examples:
  realtime-tts bench --start --sessions 1,2,4,8          start a server, measure it, stop it
  realtime-tts bench --rate 0.5,1,2 --seconds 60         open loop: turns arrive, ready or not
  realtime-tts bench --mode agents --sessions 4,8        conversations that think and interrupt
  realtime-tts bench --random-weights 1.7B --start "--device cuda --slots 64" --sessions 1,8,64
  realtime-tts bench --in-process --sessions 1,4         the engine alone, without sockets
  realtime-tts bench --start "--engine fake" --json fake.json --png fake.png
  realtime-tts bench --deltas words --tokens-per-second 20 --stall-chance 0.02

Latency and gaps are measured while turns are paced as listeners hear them. RTF comes from a second
pass in which the server runs as fast as it can.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--start",
        nargs="?",
        const="",
        metavar="FLAGS",
        help="start a server for the run, with these flags of `serve` if any",
    )
    where.add_argument(
        "--in-process",
        nargs="?",
        const="",
        metavar="FLAGS",
        help="no server and no sockets: load the engine here, with these flags of `serve` if any",
    )
    parser.add_argument(
        "--random-weights",
        choices=("1.7B", "0.6B", "demo"),
        help="start the server, or the engine, with weights nobody trained; see `serve`",
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
    group.add_argument(
        "--mode",
        choices=[mode.value for mode in Mode],
        help="closed: so many sessions; open: turns arrive at a rate; agents: so many "
        "conversations (default: closed, with --rate open)",
    )
    group.add_argument(
        "--sessions",
        default="1,2,4,8",
        help="closed, agents: sessions at once (default: 1,2,4,8)",
    )
    group.add_argument("--rate", help="open: turns per second on average (default: 1)")
    group.add_argument(
        "--turns", type=int, default=5, help="closed, agents: turns per session (default: 5)"
    )
    group.add_argument(
        "--arrivals", type=int, help="open: so many turns, instead of so many seconds"
    )
    group.add_argument("--seconds", type=float, help="length of a level (open: 30)")
    group.add_argument(
        "--warm-up", type=int, default=1, help="turns per session that do not count (default: 1)"
    )
    group.add_argument(
        "--pause", type=float, default=0.3, help="mean seconds between turns (default: 0.3)"
    )
    group.add_argument(
        "--think", type=float, default=1.5, help="agents: mean seconds of thought (default: 1.5)"
    )
    group.add_argument(
        "--interrupts",
        type=float,
        help="share of turns that are cut off (default: 0, agents: 0.2)",
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


def levels_of(arguments: argparse.Namespace) -> list[Level]:
    """The levels on the command line. Raises ConfigError."""
    try:
        mode = Mode(arguments.mode or ("closed" if arguments.rate is None else "open"))
        if mode is Mode.OPEN:
            rates = (arguments.rate or "1").split(",")
            return [Level(mode, rate=float(rate)) for rate in rates]
        return [Level(mode, sessions=int(n)) for n in arguments.sessions.split(",")]
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
        tls_ca=arguments.tls_ca,
        options=session_options(arguments),
        timing=timing,
        turns=arguments.turns,
        seconds=arguments.seconds,
        warm_up=arguments.warm_up,
        pause=arguments.pause,
        interrupts=arguments.interrupts or 0.0,
        rtf_turns=arguments.rtf_turns,
        seed=arguments.seed,
        arrivals=arguments.arrivals,
        agents=_agents(arguments),
        prompts=PROMPTS if arguments.prompts is None else prompts_of(arguments.prompts),
    )


def _agents(arguments: argparse.Namespace) -> AgentSettings:
    settings = AgentSettings(think_seconds=arguments.think)
    if arguments.interrupts is None:
        return settings
    return replace(settings, interrupts=arguments.interrupts)


def prompts_of(path: Path) -> tuple[str, ...]:
    """The lines of a file that hold text. Raises ConfigError."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read the prompts: {error}") from error
    return tuple(line.strip() for line in lines if line.strip())
