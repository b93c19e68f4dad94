"""A start with too little memory ends in a sentence: what it needs, what it has."""

from __future__ import annotations

import re
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from realtime_tts.engine.in_process import InProcessEngine
from realtime_tts.engine.interface import Engine, Progress
from realtime_tts.errors import CheckpointError, ConfigError
from realtime_tts.memory_limits import check_memory_limits, told_memory_limits
from tests.serving import serve_command
from tests.waiting import until
from tts_scheduler import SchedulerConfig

MIB = 2**20
LOOSE = 2**40


def limited(name: str, mib: int) -> None:
    limit = getattr(resource, name)
    resource.setrlimit(limit, (mib * MIB, mib * MIB))


@contextmanager
def under_a_limit(size: int = LOOSE) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


@pytest.mark.parametrize("name", ["RLIMIT_DATA", "RLIMIT_AS"])
@pytest.mark.parametrize(
    ("mib", "flags"),
    [(40, ()), (170, ()), (100, ("--engine", "fake"))],
    ids=["40, model", "170, model", "100, tones"],
)
def test_a_server_without_memory_says_what_it_needs_and_what_it_has(
    flags: tuple[str, ...], name: str, mib: int
) -> None:
    done = subprocess.run(
        serve_command(*flags),
        preexec_fn=partial(limited, name, mib),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    found = re.fullmatch(
        rf"realtime-tts: the server needs (\d+) MiB of .* at least, and may have {mib} MiB: "
        rf"raise {name} \(.*\)\n",
        done.stderr,
    )
    assert found is not None and int(found[1]) > mib, done.stderr


def test_the_weights_of_a_checkpoint_count(tmp_path: Path) -> None:
    with (tmp_path / "model.safetensors").open("wb") as file:
        file.truncate(LOOSE)  # a file of holes
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (LOOSE, hard))
    try:
        check_memory_limits([tmp_path / "not downloaded yet"])
        with pytest.raises(ConfigError, match=f"may have {LOOSE // MIB} MiB: raise RLIMIT_AS"):
            check_memory_limits([tmp_path])
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


async def test_an_engine_that_runs_out_of_memory_while_it_loads_names_the_limit() -> None:
    def load(progress: Progress) -> Engine:
        raise RuntimeError("could not create a primitive")

    link = InProcessEngine(load, SchedulerConfig())
    with under_a_limit():
        link.start(lambda events: None)
        await until(lambda: link.status().ready or link.status().failure)
        failure = link.status().failure
    assert failure is not None
    for part in (f"{LOOSE // MIB} MiB of data", "could not create a primitive", "RLIMIT_DATA"):
        assert part in failure
    await link.stop()


def test_what_says_itself_what_is_wrong_and_what_no_limit_explains_stay_as_they_are() -> None:
    with under_a_limit(), pytest.raises(CheckpointError), told_memory_limits():
        raise CheckpointError("there is no such folder")
    with under_a_limit(resource.RLIM_INFINITY), pytest.raises(MemoryError), told_memory_limits():
        raise MemoryError
