"""`realtime-tts config`: look at the settings of `serve` without starting it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import cache

from realtime_tts.cli import serve_arguments
from realtime_tts.cli.failures import ExitStatus
from realtime_tts.cli.serve import server_config, tls_files
from realtime_tts.cli.serve_arguments import RELOADED
from realtime_tts.cli.serve_engine import device_choice, engine_configs, front_count
from realtime_tts.cli.serve_settings import Sources, faults_in, serve_options
from realtime_tts.configuration.settings import Faults
from realtime_tts.configuration.toml import example, settings_as_toml

_EXAMPLES = """\
examples:
  realtime-tts config --example > realtime-tts.toml     every option, with its default
  realtime-tts config --check realtime-tts.toml         all that is wrong with it; status 1
  realtime-tts config --print --config realtime-tts.toml --port 9000
                                                        what `serve` with these flags would use

the flags of `serve` and the environment count here, too; FILE may be -, standard input
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `config`, and those of `serve`."""
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "--check", metavar="FILE", help="say all that is wrong with a configuration file"
    )
    what.add_argument(
        "--print",
        action="store_true",
        help="print each setting as TOML, with where it came from and without secrets",
    )
    what.add_argument(
        "--example", action="store_true", help="print a configuration file with every option"
    )
    serve_arguments.add_arguments(parser)
    parser.epilog = _EXAMPLES


def run(arguments: argparse.Namespace) -> int:
    """Print what was asked for. Returns the exit status."""
    if arguments.example:
        print(example(serve_options(), RELOADED), end="")
        return ExitStatus.OK
    sources = Sources(arguments.words[arguments.words.index("config") + 1 :], add=add_arguments)
    if arguments.print:
        print(settings_as_toml(sources.read()), end="")
        return ExitStatus.OK
    sources.file = arguments.check
    return _check(sources)


def _check(sources: Sources) -> int:
    try:
        settings = sources.read()
        faults = faults_in(settings, _building())
    except Faults as error:
        faults, settings = list(error.faults), None
    for line in faults:
        print(line, file=sys.stderr)
    for warning in settings.warnings if settings else ():
        print(f"warning: {warning}", file=sys.stderr)
    if not faults:
        print(f"{sources.file}: nothing is wrong")
    return ExitStatus.FAILED if faults else ExitStatus.OK


def _building() -> Callable[[argparse.Namespace], None]:
    """Return a function that makes all that `serve` makes of its settings before it loads."""
    from realtime_tts.engine.devices import look_up
    from realtime_tts.server.checks import check_access, check_tracing
    from realtime_tts.server.tls import server_context

    machine = cache(look_up)

    def build(arguments: argparse.Namespace) -> None:
        engines = engine_configs(arguments, device_choice(arguments, machine))
        front_count(arguments.fronts, engines)
        config = server_config(arguments, terminal=False, tls=tls_files(arguments))
        if config.tls is not None:
            server_context(config.tls)
        check_access(config)
        check_tracing(config)

    return build
