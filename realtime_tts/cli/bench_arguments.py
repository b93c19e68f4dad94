"""The flags of `realtime-tts bench`, and the settings they mean."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from realtime_tts.bench.deltas import DeltaKind, DeltaTiming
from realtime_tts.bench.feeds import FEEDS
from realtime_tts.bench.prompts import PROMPTS, read_prompts
from realtime_tts.bench.settings import AgentSettings, BenchSettings, Level, Mode
from realtime_tts.bench.suite import suite_levels
from realtime_tts.cli.session_arguments import (
    add_number_arguments,
    add_server_arguments,
    add_voice_arguments,
    numbers,
    session_options,
)
from realtime_tts.client import DEFAULT_SERVER
from realtime_tts.errors import ConfigError

_SETTINGS = BenchSettings(DEFAULT_SERVER)
_TURNS = {
    "turns": "closed, burst, agents: turns per session",
    "warm_up": "turns per session that do not count",
    "pause": "mean seconds between turns",
    "spread": "closed, agents: seconds over which sessions begin, one by one; 0: at once",
}
_AS_GIVEN = ("api_key", "tls_ca", "seconds", "rtf_turns", "seed", "arrivals", "client_processes")
_TIMING = {
    "tokens_per_second": "mean speed of the text",
    "jitter": "of the gaps, 0: even",
    "stall_chance": "for each delta",
    "stall_seconds": "length of a stall",
}

_EXAMPLES = """\
examples:
  realtime-tts bench --start --sessions 1,2,4,8          start a server, measure it, stop it
  realtime-tts bench --rate 0.5,1,2 --seconds 60         open loop: turns arrive, ready or not
  realtime-tts bench --mode agents --sessions 4,8        conversations that think and interrupt
  realtime-tts bench --random-weights 1.7B --start "--slots 64" --sessions 1,8,64
  realtime-tts bench --mode burst --sessions 64 --turns 15 --interrupts 1   64 turns at once
  realtime-tts bench --sessions 64,128,256 --stop-at-underrun    how many it can carry
  realtime-tts bench --suite --markdown table.md         the table of docs/performance.md
  realtime-tts bench --feeds --json feeds.json           replies that are written slowly, or stall
  realtime-tts bench --compare a.json b.json --png growth.png    a picture of earlier results
  realtime-tts bench --in-process --sessions 1,4         the engine alone, without sockets
  realtime-tts bench --start "--engine fake" --json fake.json --png fake.png
  realtime-tts bench --deltas words --tokens-per-second 20 --stall-chance 0.02

Latency and gaps are measured while turns are paced as listeners hear them. RTF comes from a second
pass in which the server runs as fast as it can.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    parser.add_argument(
        "--random-weights",
        choices=("1.7B", "0.6B", "demo"),
        help="start the server, or the engine, with an untrained model; see `serve`",
    )
    _add_level_arguments(parser.add_argument_group("levels"))
    _add_turn_arguments(parser.add_argument_group("turns"))
    _add_measuring_arguments(parser.add_argument_group("measuring"))
    _add_text_arguments(parser.add_argument_group("text"))
    output = parser.add_argument_group("output")
    output.add_argument(
        "--compare",
        type=Path,
        nargs="+",
        metavar="JSON",
        help="measure nothing: draw these results into --png, how TTFA and steps grow",
    )
    output.add_argument("--json", type=Path, metavar="FILE", help="all figures")
    output.add_argument("--png", type=Path, metavar="FILE", help="a picture (extra `plot`)")
    output.add_argument("--markdown", type=Path, metavar="FILE", help="the table, for documents")
    where = add_server_arguments(parser)
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
    add_voice_arguments(parser)
    parser.set_defaults(seed=0)


def _add_level_arguments(group: argparse._ArgumentGroup) -> None:
    """Add the flags for the levels, which are measured one after another."""
    group.add_argument(
        "--mode",
        choices=[mode.value for mode in Mode],
        help="closed: so many sessions; burst: they begin each turn together; open: turns arrive "
        "at a rate; agents: so many conversations (default: closed, with --rate open)",
    )
    group.add_argument(
        "--suite",
        action="store_true",
        help="every figure of docs/performance.md in one run: starts alone and together, the open "
        "loop (--rate, default: 20), conversations, and a ramp of streams (--sessions, default: "
        "64,128,256,512) that ends at the first underrun",
    )
    group.add_argument(
        "--feeds",
        nargs="?",
        const="all",
        choices=FEEDS,
        help="what is heard of replies that are written slowly, or with a stall in them, as many "
        "feeds at once as --sessions says (default: 4); quick: two replies, few feeds; "
        "two-sentences: 30 and 15 tokens a second, first sentences of 6 to 27 words",
    )
    group.add_argument(
        "--sessions", help="closed, burst, agents: sessions at once (default: 1,2,4,8)"
    )
    group.add_argument(
        "--stop-at-underrun",
        action="store_true",
        help="sessions: leave out the rest of them once a turn had an underrun or failed",
    )
    group.add_argument("--rate", help="open: turns per second on average (default: 1)")
    group.add_argument(
        "--arrivals", type=int, help="open: so many turns, instead of so many seconds"
    )
    group.add_argument("--seconds", type=float, help="length of a level (open: 30)")


def _add_turn_arguments(group: argparse._ArgumentGroup) -> None:
    """Add the flags for when turns begin, and which are cut off."""
    add_number_arguments(group, _SETTINGS, _TURNS)
    group.add_argument(
        "--think", type=float, default=1.5, help="agents: mean seconds of thought (default: 1.5)"
    )
    group.add_argument(
        "--interrupts", type=float, help="share of turns that are cut off (default: 0, agents: 0.2)"
    )
    group.add_argument(
        "--cut-between",
        metavar="LOW,HIGH",
        default="0.2,2",
        help="seconds after the first packet in which those are cut off (default: 0.2,2)",
    )


def _add_measuring_arguments(group: argparse._ArgumentGroup) -> None:
    speed = (
        "turns per session of the unpaced pass, which gives RTF and seconds of speech per second; "
        "0: none"
    )
    add_number_arguments(group, _SETTINGS, {"rtf_turns": speed})
    group.add_argument(
        "--client-processes",
        type=int,
        metavar="N",
        help="processes of the load generator (default: one for every 32 sessions, on half of the "
        "cores at most)",
    )


def _add_text_arguments(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--deltas",
        choices=[kind.value for kind in DeltaKind],
        default=DeltaKind.TOKENS.value,
        help="tokens: pieces of words, as language models write them (default); words; whole: the "
        "text at once, whose prompt is longer (layout full_text)",
    )
    group.add_argument(
        "--prompts", type=Path, metavar="FILE", help="texts to speak, one a line (default: our own)"
    )
    add_number_arguments(group, _SETTINGS.timing, _TIMING)


def levels_of(arguments: argparse.Namespace) -> list[Level]:
    """Return the levels on the command line. Raises ConfigError."""
    if arguments.suite:
        if arguments.mode is not None:
            raise ConfigError("--suite has levels of every mode: give either it or --mode")
        sessions = numbers(arguments.sessions or "64,128,256,512", int)
        settings = bench_settings(arguments, arguments.url)
        return suite_levels(settings, sessions, numbers(arguments.rate or "20", float))
    mode = Mode(arguments.mode or ("closed" if arguments.rate is None else "open"))
    for name in ("sessions", "stop_at_underrun") if mode is Mode.OPEN else ("rate", "arrivals"):
        if getattr(arguments, name):
            flag = f"--{name.replace('_', '-')}"
            raise ConfigError(f"{flag} is not for the mode {mode}: leave it out, or change --mode")
    if mode is Mode.OPEN:
        return [Level(mode, rate=rate) for rate in numbers(arguments.rate or "1", float)]
    climbs = arguments.stop_at_underrun
    sessions = numbers(arguments.sessions or "1,2,4,8", int)
    return [Level(mode, sessions=number, climbs=climbs) for number in sessions]


def feeds_at_once(arguments: argparse.Namespace) -> int:
    """Return how many feeds `--feeds` measures at once. Raises ConfigError with other flags."""
    others = {"--suite": arguments.suite, "--mode": arguments.mode, "--rate": arguments.rate}
    others |= {"--in-process": arguments.in_process is not None, "--png": arguments.png}
    for flag, given in others.items():
        if given:
            raise ConfigError(f"--feeds has feeds of its own, and a table: leave {flag} out")
    match numbers(arguments.sessions or "4", int):
        case [number] if number > 0:
            return number
    raise ConfigError(f"--feeds takes one number of --sessions, got {arguments.sessions!r}")


def _two(text: str) -> tuple[float, float]:
    two = numbers(text, float)
    if len(two) != 2:
        raise ConfigError(f"--cut-between takes two numbers as in 0.2,2; got {text!r}")
    return two[0], two[1]


def bench_settings(arguments: argparse.Namespace, url: str) -> BenchSettings:
    """Return the settings on the command line. Raises ConfigError."""
    timing = DeltaTiming(
        DeltaKind(arguments.deltas), **{name: getattr(arguments, name) for name in _TIMING}
    )
    agents = AgentSettings(think_seconds=arguments.think)
    if arguments.interrupts is not None:
        agents = replace(agents, interrupts=arguments.interrupts)
    return BenchSettings(
        server=url,
        options=session_options(arguments),
        timing=timing,
        interrupts=arguments.interrupts or 0.0,
        agents=agents,
        cut_between=_two(arguments.cut_between),
        prompts=PROMPTS if arguments.prompts is None else read_prompts(arguments.prompts),
        **{name: getattr(arguments, name) for name in (*_TURNS, *_AS_GIVEN)},
    )
