"""`realtime-tts completion`: the code with which a shell completes commands and flags."""

from __future__ import annotations

import argparse
import os
import shlex
import sys

from argcomplete.shell_integration import shellcode

from realtime_tts.cli.failures import ExitStatus

_EXAMPLES = """\
examples:
  realtime-tts completion bash >> ~/.bashrc
  realtime-tts completion zsh >> ~/.zshrc
  realtime-tts completion fish > ~/.config/fish/completions/realtime-tts.fish
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="the shell to complete in")


def run(arguments: argparse.Namespace) -> int:
    """Print the code for the shell. Returns the exit status."""
    sys.stdout.write(shellcode(["realtime-tts"], shell=arguments.shell) + "\n")
    return ExitStatus.OK


def words_to_complete() -> list[str]:
    """Return what has been typed behind the name of the program, by the shell's variables."""
    line = os.environ.get("COMP_LINE", "")
    try:
        return shlex.split(line)[1:]
    except ValueError:  # inside quotes
        return line.split()[1:]
