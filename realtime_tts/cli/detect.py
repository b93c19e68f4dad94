"""`realtime-tts detect`: whether a recording has the mark of `serve --marking watermark`."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from realtime_tts.cli.failures import ExitStatus
from realtime_tts.errors import RequestError

_SLOWEST = 8_000
"""The lowest sample rate, in hertz, that has room for the mark."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, help="a recording: .wav, .mp3, .opus, .ogg, .flac")
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.epilog = "The exit status is 0 if the mark was found, and 1 if it was not."


def run(arguments: argparse.Namespace) -> int:
    """Print what was found. Returns the exit status. Raises RequestError if it is no recording."""
    import soundfile

    from realtime_tts.audio.detection import THRESHOLD, detect

    file: Path = arguments.file
    try:
        with file.open("rb") as opened:
            samples, rate = soundfile.read(opened, dtype="float32", always_2d=True)
    except OSError as error:  # not status 1, which means that a recording has no mark
        raise RequestError(f"{file}: {error.strerror}") from None
    except soundfile.LibsndfileError as error:
        why = error.error_string
        raise RequestError(f"{file}: not a recording that can be read: {why}") from None
    if rate < _SLOWEST:
        raise RequestError(f"{file}: found {rate} Hz; the mark needs {_SLOWEST} or more")
    found = detect(samples.mean(axis=1), rate)
    if arguments.json:
        print(json.dumps({"found": found.found, "threshold": THRESHOLD, **asdict(found)}))
    elif found.found:
        where = f"clearest from {found.begins:.1f} to {found.ends:.1f} s"
        print(f"marked as synthetic: score {found.score:.1f}, {where}")
    else:
        print(f"no mark found: score {found.score:.1f}, a mark has {THRESHOLD:g} or more")
    return ExitStatus.OK if found.found else ExitStatus.FAILED
