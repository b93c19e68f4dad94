"""The command line: `realtime-tts serve`, `ingress`, `say`, `voices`, `lexicons`, `clone`, …

Each command is a module of this package with `add_arguments(parser)` and `run(arguments)`, which
returns the exit status. Only the module of the command that was asked for is imported, so that
`say` starts at once and works where the server's packages are not installed.
"""

from __future__ import annotations

import argparse
import difflib
import os
import sys
from collections.abc import Iterable, Sequence
from functools import partial
from importlib import import_module
from io import TextIOWrapper
from itertools import pairwise
from typing import Any, NoReturn, cast

from realtime_tts.cli.failures import ExitStatus, explain
from realtime_tts.configuration.options import WANTED
from realtime_tts.garbage import collect_seldom

_COMMANDS = {
    "serve": "start a server",
    "config": "check or print the settings of a server",
    "ingress": "put HAProxy in front of several servers",
    "say": "speak a text: play it, or write it to a file",
    "voices": "list the voices and languages of a server, or delete a registered voice",
    "lexicons": "store, list or delete pronunciations on a server",
    "keys": "create, list, rotate or revoke the keys of a server's customers",
    "clone": "register a voice from a recording",
    "random-checkpoint": "write a model with random weights, to try cloning with",
    "detect": "find the mark of synthetic speech in a recording",
    "bench": "measure a server under load",
    "profile": "measure the stages of one frame against what the machine could do",
    "doctor": "look at the machine, speak a test, and collect what a bug report needs",
    "completion": "make a shell complete commands and flags",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Returns the exit status; errors are printed on standard error."""
    collect_seldom()
    _mend_streams()
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        if "_ARGCOMPLETE" in os.environ:
            _complete()
        arguments = _parsed(words)
        return cast(int, arguments.run(arguments))
    except KeyboardInterrupt:
        return ExitStatus.INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has gone (`… | head`): no reason for a traceback, and none for
        # Python to complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitStatus.FAILED
    except Exception as error:
        status, message = explain(error)
        print(f"realtime-tts: {message}", file=sys.stderr)
        return status


def _mend_streams() -> None:
    """Replace a closed stream by the null device, and show a character that a terminal lacks by its
    number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            stream = open(os.devnull, mode)  # takes the lowest number: the closed one's
            os.set_inheritable(stream.fileno(), True)  # a child that had none would end at once
            setattr(sys, name, stream)
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # as standard error is anyway


def _complete() -> None:
    """Print for the shell what may follow, and end."""
    import argcomplete

    from realtime_tts.cli.completion import words_to_complete

    words = [word for word in words_to_complete() if word in _COMMANDS]
    argcomplete.autocomplete(command_parser(words[:1]))


def _parsed(words: list[str]) -> argparse.Namespace:
    """Parse the command line. A wrong one ends the program, with the usage of its command."""
    parser = command_parser(words)
    arguments, unknown = parser.parse_known_args(words, argparse.Namespace(words=words))
    if unknown:
        command: argparse.ArgumentParser = arguments.parser
        there_are = [name for action in command._actions for name in action.option_strings]
        hint = _nearest(unknown[0], there_are)
        before = next((word for word, after in pairwise(words) if after == unknown[0]), "")
        if before in _TAKE_FLAGS:
            hint = f"; flags of `serve` are one word: {before}='{unknown[0]}'"
        if not unknown[0].startswith("-"):
            hint = "; words that belong together go in quotes"
        command.error(f"unknown: {' '.join(unknown)}{hint}")
    return arguments


def _nearest(word: str, there_are: Iterable[str]) -> str:
    """Return a question if one of them is like the word; otherwise nothing."""
    found = difflib.get_close_matches(word.partition("=")[0], list(there_are), n=1)
    return f"; did you mean {found[0]}?" if found else ""


_LONG_USAGE = 6
_TAKE_FLAGS = ("--start", "--in-process")
"""What takes flags of `serve`. argparse sees no value in a word that looks like a flag."""


def _number(kind: type, text: str) -> object:
    """Return the number of a flag's text."""
    try:
        return kind(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected {WANTED[kind]}, got {text!r}") from None


class _Parser(argparse.ArgumentParser):
    """A parser that does not print an error below a page of flags, and says what a number must be
    in words."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        for kind in (int, float):
            self.register("type", kind, partial(_number, kind))

    def error(self, message: str) -> NoReturn:
        if message == "argument --start: expected one argument":
            message += ", as in --start='--eager'"
        usage, more = self.format_usage(), ""
        if usage.count("\n") > _LONG_USAGE:
            needed = [one for one in self._actions if one.required or not one.option_strings]
            formatter = self.formatter_class(prog=f"{self.prog} [OPTIONS]")
            formatter.add_usage(None, needed, self._mutually_exclusive_groups)
            usage, more = formatter.format_help(), f"all options: {self.prog} --help\n"
        self.exit(ExitStatus.USAGE, f"{usage}{self.prog}: error: {message}\n{more}")


def command_parser(words: Sequence[str]) -> argparse.ArgumentParser:
    from realtime_tts.version import __version__

    parser = _Parser(
        prog="realtime-tts",
        description="Streaming text-to-speech for voice agents: text deltas in, PCM packets out.",
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    wanted = next((word for word in words if not word.startswith("-")), None)
    if wanted is not None and wanted not in _COMMANDS:
        known = ", ".join(_COMMANDS)
        parser.error(f"no command {wanted!r}{_nearest(wanted, _COMMANDS)}; there are {known}")
    for name, summary in _COMMANDS.items():
        command = commands.add_parser(
            name,
            help=summary,
            description=summary[0].upper() + summary[1:] + ".",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if name == wanted:
            module = import_module(f"realtime_tts.cli.{name.replace('-', '_')}")
            module.add_arguments(command)
            command.set_defaults(run=module.run, parser=command)
    return parser
