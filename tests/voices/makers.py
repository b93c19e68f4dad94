"""Voice makers that go wrong, for the worker: it imports them from here, as its path is ours."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from realtime_tts.errors import CheckpointError, RequestError
from realtime_tts.voices.audio import Recording
from realtime_tts.voices.form import NewVoice
from realtime_tts.voices.maker import VoiceMaker, make_fake


@dataclass(frozen=True)
class FaultyMaker:
    """Does what the transcript says: die, hang, raise, refuse, full,
    litter; else it is the fake."""

    started: str
    """Each worker that loads it adds its process id, and how nice it is, to this file."""

    def __call__(self, wanted: NewVoice, recording: Recording, path: Path) -> None:
        match wanted.text:
            case "die":
                os._exit(7)
            case "hang":
                Path(f"{self.started}.hangs").touch()
                time.sleep(600)
            case "slow":
                time.sleep(0.5)
            case "raise":
                raise ZeroDivisionError
            case "refuse":
                raise RequestError("the model does not like it")
            case "full":
                raise OSError(28, os.strerror(28))
            case "litter":
                path.write_bytes(b"rubbish")
                return
            case "print":
                os.write(1, b"what a library says on standard output")
        make_fake(wanted, recording, path)


def _load(started: str) -> VoiceMaker:
    with open(started, "a") as file:
        file.write(f"{os.getpid()} {os.nice(0)}\n")
    return FaultyMaker(started)


def faulty(started: Path) -> partial[VoiceMaker]:
    return partial(_load, str(started))


def hangs(started: Path) -> bool:
    """Whether a worker that loaded it has begun to hang."""
    return Path(f"{started}.hangs").exists()


def missing() -> VoiceMaker:
    raise CheckpointError("there is no such checkpoint")


def endless() -> VoiceMaker:
    time.sleep(600)
    raise AssertionError
