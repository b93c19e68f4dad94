"""`realtime-tts completion`: what makes a shell complete commands and flags."""

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
    """The shell."""
    parser.epilog = _EXAMPLES
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="the shell to complete in")


def run(arguments: argparse.Namespace) -> int:
    """Print what the shell is to read. Returns the exit status."""
    sys.stdout.write(shellcode(["realtime-tts"], shell=arguments.shell) + "\n")
    return ExitStatus.OK


def words_to_complete() -> list[str]:
    """What has been typed so far behind the name of the program, as the shell says."""
    line = os.environ.get("COMP_LINE", "")
    try:
        return shlex.split(line)[1:]
    except ValueError:  # inside quotes
        return line.split()[1:]
