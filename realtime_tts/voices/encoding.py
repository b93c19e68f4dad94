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
from collections.abc import AsyncIterator, Callable, Sequence
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
_LAST_WORDS_SECONDS = 0.5

_Heard = wire.Reply | str
"""What the worker said, or why it says nothing more."""


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
        self._replies: asyncio.Queue[_Heard] = asyncio.Queue()
        self._readers: list[asyncio.Task[None]] = []
        self._endings: set[asyncio.Task[None]] = set()
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

    async def make(self, job: wire.Job, body: Sequence[bytes]) -> float:
        """Have the job done, after those before it; returns the seconds of audio.

        `body` are the pieces of the form, which are never joined here: every copy of ten megabytes
        would hold up the event loop.

        Raises the VoiceRequestError that the worker found, or EncoderFailed. What then lies at the
        job's path is no voice.
        """
        async with self._turn:
            try:
                if self._process is not None and self._process.returncode is not None:
                    await self._end()  # it died while it had nothing to do
                process = self._process or await self._start()
                seconds, reply = await self._converse(process, job, body)
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
        assert process.stdin and process.stdout and process.stderr
        self._replies = asyncio.Queue()
        self._readers = [
            asyncio.create_task(_read_replies(process.stdout, self._replies)),
            asyncio.create_task(_log_output(process.stderr)),
        ]
        if self._stopped:
            raise EncoderFailed("the server is shutting down")
        process.stdin.write(self._load)
        started = await self._reply(self._limits.start, "did not start")
        assert isinstance(started, wire.Started), started
        event(log, logging.INFO, "voice.worker_started", pid=process.pid)
        return process

    async def _converse(
        self, process: asyncio.subprocess.Process, job: wire.Job, body: Sequence[bytes]
    ) -> tuple[float, wire.Reply]:
        """The seconds of audio, and the answer: Made or Refused."""
        assert process.stdin is not None
        try:
            await self._send(process.stdin, (wire.framed(job), *body))
            reply = await self._reply(self._limits.read, "could not read the recording")
        except EncoderFailed as error:
            # So far it had only the upload to work on, so that is what was too much for it.
            raise BadAudio(f"{error}: send another file, 16-bit WAV is the safest") from None
        if not isinstance(reply, wire.Read):
            return 0.0, reply
        seconds = reply.seconds
        reply = await self._reply(self._limits.load, "could not load its model")
        if isinstance(reply, wire.Loaded):
            reply = await self._reply(self._limits.encode, "could not encode")
        return seconds, reply

    async def _send(self, stream: asyncio.StreamWriter, pieces: Sequence[bytes]) -> None:
        """Raises EncoderFailed for a worker that takes nothing; one that ended says so later."""
        try:
            async with asyncio.timeout(self._limits.read):
                for piece in pieces:
                    stream.write(piece)
                    await stream.drain()
        except TimeoutError:
            raise EncoderFailed("the worker took no recording") from None
        except ConnectionError:
            return

    async def _reply(self, patience: float, failed: str) -> wire.Reply:
        """The worker's next words. Raises EncoderFailed if it ends, is late or talks nonsense."""
        try:
            async with asyncio.timeout(patience):
                found = await self._replies.get()
        except TimeoutError:
            found = f"within {patience:g} s"
        if not isinstance(found, str):
            return found
        event(log, logging.ERROR, "voice.worker_failed", pid=self.pid, why=f"{failed} {found}")
        raise EncoderFailed(f"the worker {failed} {found}")

    async def _end(self) -> None:
        """Leave no process behind, even if whoever waits for it is cancelled. Idempotent."""
        process, self._process = self._process, None
        if process is not None:
            ending = asyncio.create_task(_bury(process, self._readers), name="voice-worker-end")
            self._endings.add(ending)
            ending.add_done_callback(self._endings.discard)
        if self._endings:
            await asyncio.shield(asyncio.gather(*self._endings))


async def _bury(process: asyncio.subprocess.Process, readers: list[asyncio.Task[None]]) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    await process.wait()
    assert process.stdin is not None
    process.stdin.close()
    # Both pipes have ended, but for a grandchild that holds them.
    await asyncio.wait(readers, timeout=_LAST_WORDS_SECONDS)
    for reader in readers:
        reader.cancel()
    await asyncio.gather(*readers, return_exceptions=True)


async def _read_replies(output: asyncio.StreamReader, replies: asyncio.Queue[_Heard]) -> None:
    """Message by message, and why there are no more."""
    try:
        while True:
            (size,) = wire.LENGTH.unpack(await output.readexactly(wire.LENGTH.size))
            if size > wire.MAX_REPLY_BYTES:
                break
            replies.put_nowait(wire.decode_reply(await output.readexactly(size)))
        replies.put_nowait(f"and said {size} bytes")
    except asyncio.IncompleteReadError:
        replies.put_nowait("and ended")
    except msgspec.DecodeError as error:
        replies.put_nowait(f"and said what is no answer: {error}")


async def _log_output(output: asyncio.StreamReader) -> None:
    """What libraries print, and a crash's last words."""
    while data := await output.read(_STDERR_BYTES):
        for line in data.decode(errors="replace").splitlines():
            if line.strip():
                event(log, logging.WARNING, "voice.worker_output", line=line[:500])
