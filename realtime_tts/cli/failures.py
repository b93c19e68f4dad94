"""The exit status of each kind of error, and the sentence that says what to do."""

from __future__ import annotations

import os
from enum import IntEnum
from pathlib import Path

from realtime_tts import signals
from realtime_tts.errors import (
    ConfigError,
    ConnectionLost,
    HandshakeRefused,
    OverloadedError,
    RealtimeTTSError,
    RequestError,
    Unreachable,
)
from realtime_tts.extras import install


class ExitStatus(IntEnum):
    """Exit statuses of every command. 2 is argparse's own for a wrong command line."""

    OK = 0
    FAILED = 1
    USAGE = 2
    UNREACHABLE = 3
    NOT_ALLOWED = 4
    NO_CAPACITY = 5
    INTERRUPTED = signals.INTERRUPTED


def explain(error: Exception) -> tuple[ExitStatus, str]:
    """Return the exit status and the message for an error. A bug of our own is raised again."""
    match error:
        case ConfigError() | RequestError():
            return ExitStatus.USAGE, str(error)
        case HandshakeRefused() if error.status in (401, 403):
            advice = "Give the key with --api-key, or in REALTIME_TTS_API_KEY."
            return ExitStatus.NOT_ALLOWED, f"{error}\n{advice}"
        case Unreachable():
            return ExitStatus.UNREACHABLE, f"{error}\n{_HOW_TO_START}"
        case HandshakeRefused() if error.status == 0:  # another server, another protocol
            return ExitStatus.UNREACHABLE, str(error)
        case OverloadedError() | HandshakeRefused(status=503):
            return ExitStatus.NO_CAPACITY, str(error)
        case ConnectionLost():
            return ExitStatus.UNREACHABLE, str(error)
        case RealtimeTTSError():
            return ExitStatus.FAILED, str(error)
        case ImportError() if error.name and not error.name.startswith(_OURS):
            return ExitStatus.FAILED, _missing(error.name)
        case OSError() if error.filename is not None and error.strerror:
            return ExitStatus.FAILED, f"{os.fsdecode(error.filename)}: {error.strerror}"
        case OSError():
            return ExitStatus.FAILED, error.strerror or str(error)
        case _:
            raise error


def check_writable(*files: Path | None) -> None:
    """Raise ConfigError for files that could not be written, before a long run ends in that."""
    for file in files:
        if file is not None and (why := _obstacle(file)):
            raise ConfigError(f"{file} cannot be written: {why}")


def _obstacle(file: Path) -> str:
    if file.is_dir():
        return "it is a folder"
    if not file.parent.is_dir():
        return f"there is no folder {file.parent}"
    may = os.access(file if file.exists() else file.parent, os.W_OK)
    return "" if may else "permission denied"


_OURS = ("realtime_tts", "tts_scheduler")
_EXTRAS = {"matplotlib": "plot", "cryptography": "tls", "limits": "keys", "sqlalchemy": "keys"}
_HOW_TO_START = (
    "Start a server with:   realtime-tts serve\n"
    "or use another one:    --url ws://HOST:PORT\n"
    "or speak without one:  realtime-tts say --local ..."
)


def _missing(module: str) -> str:
    package = module.partition(".")[0]
    extra = _EXTRAS.get(package, "server")
    return (
        f"this needs the Python package {package!r}, which is not installed; get it with\n"
        f"    {install(extra)}"
    )
