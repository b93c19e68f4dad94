"""The voice worker: one job at a time, killed when late, started again, gone with the server."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path
from typing import Any

import httpx2
import psutil
import pytest

from realtime_tts.lexicons.folder import LexiconFolder
from realtime_tts.text.lexicon import Entry
from realtime_tts.voices.encoding import WorkerLimits
from realtime_tts.voices.errors import (
    BadAudio,
    BadVoiceRequest,
    CannotClone,
    CannotStore,
    EncoderBusy,
    EncoderFailed,
    NotAllowed,
    VoiceExists,
)
from realtime_tts.voices.file import VoiceRecord
from realtime_tts.voices.library import VoiceLibrary
from tests.voices import makers, recordings
from tests.waiting import SECONDS, until, wait_until

Made = Callable[..., VoiceLibrary]


@pytest.fixture
async def library(tmp_path: Path) -> AsyncIterator[Made]:
    made: list[VoiceLibrary] = []

    def make(maker: Any = None, **limits: Any) -> VoiceLibrary:
        maker = maker or makers.faulty(tmp_path / "started")
        made.append(VoiceLibrary(tmp_path / "voices", maker, WorkerLimits(**limits)))
        return made[-1]

    yield make
    for one in made:
        await one.stop()
        folder = one.registry.folder
        assert not folder.exists() or not [
            path for path in folder.iterdir() if path.suffix != ".safetensors"
        ], "unfinished files are left"


async def clone(
    library: VoiceLibrary,
    name: str = "anna",
    text: str = "",
    audio: bytes | None = None,
    allowed: Iterable[str] = (),
) -> VoiceRecord:
    """`allowed`: the pattern at each time that it is asked for; by default always all names."""
    patterns = iter(allowed)
    files = {"audio": ("ref", recordings.encoded(recordings.voice()) if audio is None else audio)}
    request = httpx2.Request("POST", "http://x", data={"name": name, "text": text}, files=files)
    body, kind = request.read(), request.headers["content-type"]
    async with library.place() as worker:
        return await library.clone(worker, [body], kind, ("alto",), lambda: (next(patterns, "*"),))


def workers(tmp_path: Path) -> list[str]:
    """What each worker has noted when it loaded its maker."""
    file = tmp_path / "started"
    return file.read_text().splitlines() if file.exists() else []


async def test_a_recording_becomes_a_voice_in_a_process_of_the_lowest_priority(
    library: Made, tmp_path: Path
) -> None:
    one = library()
    assert one.worker is not None and one.worker.pid is None, "nothing runs before the first job"
    record = await clone(one, text="print")
    assert record.id == "anna" and record.in_context
    await clone(one, "ben")
    assert [voice.id for voice in one.registry.voices()] == ["anna", "ben"]
    assert workers(tmp_path) == [f"{one.worker.pid} 19"], "one worker, which loads once"


async def test_what_the_worker_refuses_is_raised_here_and_it_goes_on(library: Made) -> None:
    one = library()
    await clone(one)
    assert one.worker is not None
    pid = one.worker.pid
    with pytest.raises(VoiceExists, match="delete it first"):
        await clone(one)
    with pytest.raises(VoiceExists, match="speaker of a loaded checkpoint"):
        await clone(one, "alto")
    with pytest.raises(BadVoiceRequest, match="a-z"):
        await clone(one, "../up")
    with pytest.raises(BadAudio, match="empty"):
        await clone(one, "ben", audio=b"")
    with pytest.raises(BadAudio, match="the model does not like it"):
        await clone(one, "ben", "refuse")
    with pytest.raises(EncoderFailed, match="ZeroDivisionError"):
        await clone(one, "ben", "raise")
    with pytest.raises(CannotStore, match="No space left"):
        await clone(one, "ben", "full")
    with pytest.raises(EncoderFailed, match="no voice"):
        await clone(one, "ben", "litter")
    await clone(one, "ben")
    assert one.worker.pid == pid


async def test_who_may_read_a_voice_or_a_lexicon_is_what_the_umask_says(library: Made) -> None:
    """Whichever way it came, so that servers which share the folder can all read it."""
    one, before = library(), os.umask(0o027)
    try:
        await clone(one, "manner", text="So be it.")
        await clone(one, "sound")
        embedding = one.registry.embedding("sound")
        await one.register("given", embedding, model="fake", language=None, reserved=())
        lexicons = LexiconFolder(one.registry.folder.with_name("lexicons"))
        stored = lexicons.put("brands", [Entry("SQL", "sequel")])
    finally:
        os.umask(before)
    paths = [*(voice.path for voice in one.registry.voices()), stored.path]
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in paths}
    assert len(modes) == 4 and set(modes.values()) == {0o640}, modes


@pytest.mark.parametrize("text", ["die", "hang"])
async def test_a_worker_that_dies_or_hangs_is_started_again(
    library: Made, tmp_path: Path, text: str
) -> None:
    one = library(encode=0.5)
    with pytest.raises(EncoderFailed, match="could not encode") as failed:
        await clone(one, text=text)
    assert failed.value.retryable
    first = int(workers(tmp_path)[0].split()[0])
    assert not psutil.pid_exists(first)
    assert (await clone(one)).id == "anna"


async def test_a_worker_that_died_between_jobs_costs_nobody_a_recording(
    library: Made, tmp_path: Path
) -> None:
    one = library()
    await clone(one)
    assert one.worker is not None and one.worker._child is not None
    child = one.worker._child
    os.kill(child.pid, signal.SIGKILL)
    await until(lambda: not child.running)
    await clone(one, "ben")
    assert len(workers(tmp_path)) == 2


async def test_an_upload_that_is_too_much_for_the_reader_is_the_client_s_fault(
    library: Made,
) -> None:
    one = library(read=0.0001)
    with pytest.raises(BadAudio, match="within 0.0001 s"):
        await clone(one, audio=recordings.long_flac())
    assert one.worker is not None and one.worker.pid is None


async def test_a_checkpoint_that_is_missing_or_never_loads_is_said(library: Made) -> None:
    with pytest.raises(CannotClone, match="no such checkpoint"):
        await clone(library(makers.missing))
    with pytest.raises(EncoderFailed, match="could not load"):
        await clone(library(makers.endless, load=0.3))


async def test_a_key_that_ends_while_its_recording_is_encoded_registers_nothing(
    library: Made, tmp_path: Path
) -> None:
    one = library()
    with pytest.raises(NotAllowed, match="named 'anna'"):
        await clone(one, allowed=["anna", "nothing"])
    assert len(workers(tmp_path)) == 1 and not one.registry.has("anna")


async def test_jobs_wait_for_each_other_and_places_are_few(library: Made) -> None:
    one = library(places=2)
    jobs = [asyncio.create_task(clone(one, f"v{number}", "slow")) for number in range(2)]
    await until(lambda: one.worker is not None and one.worker._pending == 2)
    with pytest.raises(EncoderBusy) as busy:
        await clone(one, "v2")
    assert busy.value.retryable and busy.value.retry_after > 0
    assert [record.id for record in await asyncio.gather(*jobs)] == ["v0", "v1"]
    await clone(one, "v2")


async def test_a_job_that_is_cancelled_takes_its_worker_with_it(
    library: Made, tmp_path: Path
) -> None:
    one = library()
    await clone(one)
    assert one.worker is not None
    job = asyncio.create_task(clone(one, "ben", "hang"))
    await until(lambda: makers.hangs(tmp_path / "started"))
    job.cancel()
    with pytest.raises(asyncio.CancelledError):
        await job
    assert one.worker.pid is None
    assert (await clone(one, "carl")).id == "carl"
    assert not one.registry.has("ben")


async def test_stopping_waits_for_the_end_that_a_cancelled_job_has_begun(
    library: Made, tmp_path: Path
) -> None:
    one = library()
    await clone(one)
    assert one.worker is not None
    pid = one.worker.pid
    assert pid is not None
    job = asyncio.create_task(clone(one, "ben", "hang"))
    await until(lambda: makers.hangs(tmp_path / "started"))
    job.cancel()
    await asyncio.sleep(0)  # it has begun to end its worker
    job.cancel()  # and does not wait for that
    await one.worker.stop()
    assert not psutil.pid_exists(pid)
    with pytest.raises(asyncio.CancelledError):
        await job


async def test_stopping_kills_the_worker_and_fails_its_job(library: Made, tmp_path: Path) -> None:
    one = library()
    job = asyncio.create_task(clone(one, text="hang"))
    await until(lambda: workers(tmp_path))
    began = time.monotonic()
    await one.stop()
    with pytest.raises(EncoderFailed):
        await job
    assert time.monotonic() - began < 20
    assert not psutil.pid_exists(int(workers(tmp_path)[0].split()[0]))
    with pytest.raises(EncoderFailed, match="shutting down"):
        await clone(one)


async def test_without_an_encoder_embeddings_can_be_kept_all_the_same(tmp_path: Path) -> None:
    one = VoiceLibrary(tmp_path)
    with pytest.raises(CannotClone):
        await clone(one)


SERVER = """
import asyncio, sys
sys.path[:] = {path!r}
from tests.voices import makers
from pathlib import Path
from tests.voices.test_encoding import clone
from realtime_tts.voices.library import VoiceLibrary

folder = Path(sys.argv[1])
asyncio.run(clone(VoiceLibrary(folder / "voices", makers.faulty(folder / "started")), text="hang"))
"""


def test_the_worker_ends_whatever_its_server_dies_of_even_in_a_job(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SERVER.format(path=sys.path), str(tmp_path)]
    with subprocess.Popen(command) as server:
        wait_until(lambda: workers(tmp_path))
        worker = psutil.Process(int(workers(tmp_path)[0].split()[0]))
        server.kill()
    with contextlib.suppress(psutil.NoSuchProcess):
        worker.wait(timeout=SECONDS)


def test_memory_is_bounded_while_a_recording_is_decoded() -> None:
    code = (
        "from realtime_tts.voices.worker import _bounded_memory\n"
        "import numpy as np\n"
        "with _bounded_memory(64 << 20):\n"
        "    try:\n"
        "        np.ones(200 << 20, np.uint8)\n"
        "    except MemoryError:\n"
        "        print('refused')\n"
        "print(len(np.ones(200 << 20, np.uint8)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    expected = ["refused"] if sys.platform == "linux" else []
    assert done.stdout.split() == [*expected, str(200 << 20)], done.stderr
