"""VoiceWorker: the worker process as the server sees it.

Started when the first recording comes, given one job at a time, killed when it is late, started
again for the next job, and gone with the server. Everything here is on the event loop, and nothing
a client sent is looked at.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import pickle
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from realtime_tts.logs import event
from realtime_tts.voices import wire
from realtime_tts.voices.errors import BY_CODE, BadAudio, EncoderBusy, EncoderFailed

if TYPE_CHECKING:
    from realtime_tts.voices.maker import VoiceMaker

log = logging.getLogger(__name__)

_ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
_STDERR_BYTES = 16_384


@dataclass(frozen=True, slots=True)
class WorkerLimits:
    """Seconds for each stage of a job; a worker that takes longer is killed.

    `places`: recordings in the server at once, the one that is encoded included. Each may hold a
    whole upload in memory.
    """

    start: float = 60.0
    read: float = 15.0
    load: float = 600.0
    encode: float = 120.0
    places: int = 4


class VoiceWorker:
    """`load` makes the encoder over there: it is pickled. Nothing runs before the first job."""

    def __init__(self, load: Callable[[], VoiceMaker], limits: WorkerLimits | None = None) -> None:
        self._load = pickle.dumps(load)
        self._limits = limits or WorkerLimits()
        self._taken = 0
        self._turn = asyncio.Lock()
        self._process: asyncio.subprocess.Process | None = None
        self._log_task: asyncio.Task[None] | None = None
        self._stopped = False

    @property
    def pid(self) -> int | None:
        """The worker's process id; None while there is none."""
        return None if self._process is None else self._process.pid

    @contextlib.asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Room for one recording, to be taken before its body is read. Raises EncoderBusy."""
        if self._taken >= self._limits.places:
            raise EncoderBusy(
                f"{self._taken} recordings are being read or encoded, which is as many as may: "
                "try again in some seconds"
            )
        self._taken += 1
        try:
            yield
        finally:
            self._taken -= 1

    async def make(self, job: wire.Job) -> float:
        """Have the job done, after those before it; returns the seconds of audio.

        Raises the VoiceRequestError that the worker found, or EncoderFailed. What then lies at the
        job's path is no voice.
        """
        async with self._turn:
            try:
                if self._process is not None and self._process.returncode is not None:
                    await self._end()  # it died while it had nothing to do
                process = self._process or await self._start()
                seconds, reply = await self._converse(process, job)
            except BaseException:
                # Late, dead, or nobody waits any more: what this worker says next would not
                # answer the next job.
                await self._end()
                raise
        if isinstance(reply, wire.Refused):
            raise BY_CODE.get(reply.code, EncoderFailed)(reply.message)
        return seconds

    async def stop(self) -> None:
        """Kill the worker; a job under way fails."""
        self._stopped = True
        await self._end()

    # One worker.

    async def _start(self) -> asyncio.subprocess.Process:
        if self._stopped:
            raise EncoderFailed("the server is shutting down")
        code = (
            f"import sys; sys.path[:] = {sys.path!r}; import realtime_tts.voices.worker as worker"
        )
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-P", "-c", f"{code}; worker.main()",
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=os.environ | _ONE_THREAD,
                start_new_session=True,  # Ctrl-C in the terminal is the server's
            )  # fmt: skip
        except OSError as error:
            raise EncoderFailed(f"the worker could not be started: {error}") from None
        self._process = process
        assert process.stdin is not None and process.stderr is not None
        self._log_task = asyncio.create_task(_log_output(process.stderr), name="voice-worker-log")
        process.stdin.write(self._load)
        started = await self._reply(process, self._limits.start, "did not start")
        assert isinstance(started, wire.Started), started
        event(log, logging.INFO, "voice.worker_started", pid=process.pid)
        return process

    async def _converse(
        self, process: asyncio.subprocess.Process, job: wire.Job
    ) -> tuple[float, wire.Reply]:
        """The seconds of audio, and the answer: Made or Refused."""
        assert process.stdin is not None
        process.stdin.write(wire.framed(job))
        try:
            reply = await self._reply(process, self._limits.read, "could not read the recording")
        except EncoderFailed as error:
            # So far it had only the upload to work on, so that is what was too much for it.
            raise BadAudio(f"{error}: send another file, 16-bit WAV is the safest") from None
        if not isinstance(reply, wire.Read):
            return 0.0, reply
        seconds = reply.seconds
        reply = await self._reply(process, self._limits.load, "could not load its model")
        if isinstance(reply, wire.Loaded):
            reply = await self._reply(process, self._limits.encode, "could not encode")
        return seconds, reply

    async def _reply(
        self, process: asyncio.subprocess.Process, patience: float, failed: str
    ) -> wire.Reply:
        """The worker's next words. Raises EncoderFailed if it ends, is late or talks nonsense."""
        assert process.stdout is not None
        try:
            async with asyncio.timeout(patience):
                (size,) = wire.LENGTH.unpack(await process.stdout.readexactly(wire.LENGTH.size))
                if size > wire.MAX_REPLY_BYTES:
                    raise EncoderFailed(f"the worker {failed}: a reply of {size} bytes")
                return wire.decode_reply(await process.stdout.readexactly(size))
        except TimeoutError:
            why = f"within {patience:g} s"
        except asyncio.IncompleteReadError:
            why = "and ended"
        except msgspec.DecodeError as error:
            why = f"and said {error}"
        event(log, logging.ERROR, "voice.worker_failed", pid=process.pid, why=f"{failed} {why}")
        raise EncoderFailed(f"the worker {failed} {why}")

    async def _end(self) -> None:
        """Leave no process behind. Idempotent."""
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        assert process.stdin is not None
        process.stdin.close()
        if self._log_task is not None:
            self._log_task.cancel()
            await asyncio.gather(self._log_task, return_exceptions=True)


async def _log_output(output: asyncio.StreamReader) -> None:
    """What libraries print, and a crash's last words."""
    while data := await output.read(_STDERR_BYTES):
        for line in data.decode(errors="replace").splitlines():
            if line.strip():
                event(log, logging.WARNING, "voice.worker_output", line=line[:500])
