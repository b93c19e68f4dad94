"""`realtime-tts random-checkpoint`: a model to try cloning with, without a download."""

from __future__ import annotations

import argparse
from pathlib import Path
from shlex import quote

from rich.console import Console

from realtime_tts.cli.failures import ExitStatus

_EPILOG = """\
What such a checkpoint speaks is noise. It has all parts of a Base checkpoint, so that all there is
around voices works with it: `realtime-tts clone`, /v1/voices, and the recorder of the demo page.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    parser.add_argument("folder", type=Path, help="where to write it: a new folder")


def run(arguments: argparse.Namespace) -> int:
    """Write the checkpoint, and print what to type next. Returns the exit status."""
    from realtime_tts.model.random_checkpoint import write_random_checkpoint

    folder: Path = arguments.folder
    write_random_checkpoint(folder)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    lines = (
        f"wrote {folder}, {size / 1e6:.0f} MB: a Base checkpoint with random weights, "
        "which speaks noise",
        f"  realtime-tts serve --model {quote(str(folder))} "
        f"--voices-dir {quote(f'{folder}-voices')}",
        "  realtime-tts clone ref.wav --name anna",
        '  realtime-tts say --voice anna "Hello there."',
    )
    console = Console()
    for line in lines:
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    return ExitStatus.OK
