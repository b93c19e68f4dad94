"""VoiceWorker: the worker process as the server sees it.

The process is started for the first recording and gets one job at a time. It is killed when a job
takes too long, started again for the next job, and ended with the server. Everything here runs on
the event loop, and nothing here parses what a client sent.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import pickle
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from realtime_tts.child_process import ChildProcess
from realtime_tts.logs import event
from realtime_tts.voices import wire
from realtime_tts.voices.errors import BY_CODE, BadAudio, EncoderBusy, EncoderFailed

if TYPE_CHECKING:
    from realtime_tts.voices.maker import VoiceMaker

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WorkerLimits:
    """Seconds for each stage of a job, after which the worker is killed.

    `places`: largest number of recordings in the server at once, including the one that is being
    encoded. Each may hold a whole upload in memory.
    """

    start: float = 60.0
    read: float = 15.0
    load: float = 600.0
    encode: float = 120.0
    places: int = 4


class VoiceWorker:
    """Encodes recordings in a process of its own, which is started for the first job.

    `load` is pickled and makes the encoder in that process.
    """

    def __init__(self, load: Callable[[], VoiceMaker], limits: WorkerLimits | None = None) -> None:
        self._load = pickle.dumps(load)
        self._limits = limits or WorkerLimits()
        self._pending = 0
        self._turn = asyncio.Lock()
        self._child: ChildProcess | None = None
        self._stopped = False

    @property
    def pid(self) -> int | None:
        """The worker's process id; None while no worker runs."""
        return None if self._child is None else self._child.pid

    @contextlib.asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Reserve room for one recording before its body is read. Raises EncoderBusy."""
        if self._pending >= self._limits.places:
            raise EncoderBusy(
                f"{self._pending} recordings are being read or encoded, which is as many as may: "
                "try again in some seconds"
            )
        self._pending += 1
        try:
            yield
        finally:
            self._pending -= 1

    async def make(self, job: wire.Job, body: Sequence[bytes]) -> float:
        """Run the job after all earlier ones, and return the seconds of audio.

        `body` holds the pieces of the form. They are never joined here: every copy of ten megabytes
        would hold up the event loop.

        Raises the VoiceRequestError that the worker found, or EncoderFailed. The file at the job's
        path is then not a voice.
        """
        async with self._turn:
            try:
                if self._child is not None and not self._child.running:
                    await self._end()  # it died while it was idle
                child = self._child or await self._start()
                seconds, reply = await self._converse(child, job, body)
            except BaseException:
                # The worker is late or dead, or this task was cancelled: its next reply would
                # not belong to the next job.
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

    async def _start(self) -> ChildProcess:
        if self._stopped:
            raise EncoderFailed("the server is shutting down")
        try:
            child = await ChildProcess.start(
                "realtime_tts.voices.worker", output=_log_line, background=True
            )
        except OSError as error:
            raise EncoderFailed(f"the worker could not be started: {error}") from None
        self._child = child
        if self._stopped:
            raise EncoderFailed("the server is shutting down")
        await child.send(self._load)
        started = await self._reply(child, self._limits.start, "did not start")
        assert isinstance(started, wire.Started), started
        event(log, logging.INFO, "voice.worker_started", pid=child.pid)
        return child

    async def _converse(
        self, child: ChildProcess, job: wire.Job, body: Sequence[bytes]
    ) -> tuple[float, wire.Reply]:
        """Send a job; return the seconds of audio and the last reply, Made or Refused."""
        try:
            await self._send(child, job, body)
            reply = await self._reply(child, self._limits.read, "could not read the recording")
        except EncoderFailed as error:
            # It has only read the upload so far, so the upload must be the cause.
            raise BadAudio(f"{error}: send another file, 16-bit WAV is the safest") from None
        if not isinstance(reply, wire.Read):
            return 0.0, reply
        seconds = reply.seconds
        reply = await self._reply(child, self._limits.load, "could not load its model")
        if isinstance(reply, wire.Loaded):
            reply = await self._reply(child, self._limits.encode, "could not encode")
        return seconds, reply

    async def _send(self, child: ChildProcess, job: wire.Job, body: Sequence[bytes]) -> None:
        """Send a job and its form. Raises EncoderFailed if the worker does not read them."""
        try:
            async with asyncio.timeout(self._limits.read):
                await child.send(wire.encode(job))
                await child.send(*body)
        except TimeoutError:
            raise EncoderFailed("the worker took no recording") from None

    async def _reply(self, child: ChildProcess, patience: float, failed: str) -> wire.Reply:
        """Return the next reply. Raises EncoderFailed if it is late or invalid, or none comes."""
        try:
            async with asyncio.timeout(patience):
                return wire.decode_reply(await child.receive(wire.MAX_REPLY_BYTES))
        except TimeoutError:
            why = f"within {patience:g} s"
        except EOFError:
            why = "and ended"
        except (ValueError, msgspec.DecodeError) as error:
            why = f"and said what is no answer: {error}"
        event(log, logging.ERROR, "voice.worker_failed", pid=child.pid, why=f"{failed} {why}")
        raise EncoderFailed(f"the worker {failed} {why}")

    async def _end(self) -> None:
        """End the process, even if the caller is cancelled meanwhile. Idempotent."""
        child = self._child
        if child is not None:
            await child.close()  # also if a caller that was cancelled has begun it
            if self._child is child:
                self._child = None


def _log_line(line: str) -> None:
    event(log, logging.WARNING, "voice.worker_output", line=line[:500])
