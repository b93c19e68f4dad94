"""The command line: `realtime-tts serve`, `ingress`, `say`, `voices`, `lexicons`, `clone`, …

Each command is a module of this package with `add_arguments(parser)` and `run(arguments)`, which
returns the exit status. Only the module of the command that was asked for is imported, so that
`say` starts at once and works where the server's packages are not installed.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import cast

from realtime_tts.cli.failures import ExitStatus, explain

_COMMANDS = {
    "serve": "start a server",
    "ingress": "put HAProxy in front of several servers",
    "say": "speak a text: play it, or write it to a file",
    "voices": "list the voices and languages of a server, or delete a registered voice",
    "lexicons": "store, list or delete pronunciations on a server",
    "clone": "register a voice from a recording",
    "detect": "find the mark of synthetic speech in a recording",
    "bench": "measure a server under load",
    "profile": "measure the stages of one frame against what the machine could do",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Returns the exit status; errors are told on standard error."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        arguments = command_parser(words).parse_args(words, argparse.Namespace(words=words))
        return cast(int, arguments.run(arguments))
    except KeyboardInterrupt:
        return ExitStatus.INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has left (`… | head`): no reason for a traceback, and none for
        # Python to complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitStatus.FAILED
    except Exception as error:
        status, message = explain(error)
        print(f"realtime-tts: {message}", file=sys.stderr)
        return status


def command_parser(words: Sequence[str]) -> argparse.ArgumentParser:
    from realtime_tts.version import __version__

    parser = argparse.ArgumentParser(
        prog="realtime-tts",
        description="Streaming text-to-speech for voice agents: text deltas in, PCM packets out.",
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    wanted = next((word for word in words if not word.startswith("-")), None)
    for name, summary in _COMMANDS.items():
        command = commands.add_parser(
            name,
            help=summary,
            description=summary[0].upper() + summary[1:] + ".",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if name == wanted:
            module = import_module(f"realtime_tts.cli.{name}")
            module.add_arguments(command)
            command.set_defaults(run=module.run)
    return parser
