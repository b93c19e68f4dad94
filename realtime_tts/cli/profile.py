"""`realtime-tts profile`: where a frame's time goes, beside the least it could take."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from realtime_tts.cli import serve_arguments
from realtime_tts.cli.failures import ExitStatus, check_writable
from realtime_tts.cli.session_arguments import numbers, shown_command
from realtime_tts.errors import ConfigError

if TYPE_CHECKING:
    from realtime_tts.engine.settings import EngineConfig
    from realtime_tts.profiler.report import Profile

_EXAMPLES = """\
examples:
  realtime-tts profile                                    the demo voice on this machine
  realtime-tts profile --random-weights 1.7B --rows 1,8,32,64 --json profile.json

The roofline of a stage is the longer of two times: its bytes (weights and carried state) at the
bandwidth of large copies and reads, its operations at the rate of a large matrix product. Both are
measured here.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `profile`: those of `serve` that choose a model, and what to measure."""
    parser.epilog = _EXAMPLES
    parser.add_argument("--model", help="as for `serve` (default: demo)")
    parser.add_argument("--device", default="auto", help="as for `serve` (default: auto)")
    serve_arguments.add_computing_arguments(parser)
    parser.add_argument("--rows", default="1,2,4,8", help="utterances at once (default: 1,2,4,8)")
    parser.add_argument(
        "--context", type=int, default=128, help="positions before the first frame (default: 128)"
    )
    parser.add_argument("--repeat", type=int, default=20, help="frames of each (default: 20)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="all figures")


def run(arguments: argparse.Namespace) -> int:
    rows = rows_of(arguments.rows)
    if arguments.repeat < 1 or arguments.context < 1:
        raise ConfigError("repeat and context must be at least 1")
    check_writable(arguments.json)
    console = Console(stderr=True)
    with console.status("loading") as status:
        profile = _measure(arguments, rows, status.update)
    from realtime_tts.profiler.report import lines

    print("\n".join(lines(profile)))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(profile.as_dict(), indent=2) + "\n", encoding="utf-8")
    return ExitStatus.OK


def rows_of(text: str) -> list[int]:
    """Return the numbers of rows on the command line. Raises ConfigError."""
    rows = numbers(text, int)
    if min(rows) < 1:
        raise ConfigError(f"rows must be at least 1, got {min(rows)}")
    return rows


def profile_config(arguments: argparse.Namespace, rows: Sequence[int]) -> EngineConfig:
    """Return the engine to measure, as `serve` would load it. Raises ConfigError."""
    from realtime_tts.cli.serve_engine import engine_config
    from realtime_tts.profiler.stages import frames_needed

    models = None if arguments.model is None else [arguments.model]
    given = argparse.Namespace(**vars(arguments) | {"model": models})
    flags = ["--slots", str(max(rows))]
    if arguments.random_weights is not None:
        flags += ["--max-frames", str(frames_needed(arguments.repeat))]
    parser = argparse.ArgumentParser(prog="realtime-tts profile")
    serve_arguments.add_arguments(parser)
    return engine_config(parser.parse_args(flags, given))


def _measure(
    arguments: argparse.Namespace, rows: Sequence[int], report: Callable[[str], None]
) -> Profile:
    from realtime_tts.bench.machine import describe_machine
    from realtime_tts.engine.load import engine_loader
    from realtime_tts.engine.model_engine import ModelEngine
    from realtime_tts.engine.torch_setup import name_of
    from realtime_tts.profiler.machine import measure_limits
    from realtime_tts.profiler.report import Profile, Widths, bucket
    from realtime_tts.profiler.stages import time_stages

    config = profile_config(arguments, rows)
    engine = engine_loader(config)(lambda what, done, total: report(what))
    assert isinstance(engine, ModelEngine), "only engines over a model have stages"
    model = engine.model
    dtypes = model.talker.dtype, model.slot_codec_dtype
    report("measuring the machine")
    limits = measure_limits(model.talker.device, tuple(dict.fromkeys(dtypes)))
    buckets, widths = [], Widths.of(model)
    for count in rows:
        report(f"{count} rows")
        times = time_stages(engine, count, arguments.context, arguments.repeat)
        buckets.append(bucket(model.config, times, dtypes, limits, widths))
    return Profile(
        model=config.name,
        random_weights=model.config.random_weights,
        dtype=name_of(dtypes[0]),
        codec_dtype=name_of(dtypes[1]),
        command=shown_command(arguments.words),
        machine=describe_machine(),
        limits=limits,
        buckets=tuple(buckets),
    )
