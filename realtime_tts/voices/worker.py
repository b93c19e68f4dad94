"""The voice worker's process: reads forms and recordings, encodes them, writes voice files.

It runs beside the engine at the lowest priority and with one thread, so that cloning never delays
speech. It ends with the server: its standard input is a pipe that the kernel closes whatever the
server dies of.

Memory is bounded by counting, not by RLIMIT_AS: torch and CUDA reserve far more address space than
they use, so a limit that fits a model bounds nothing. On Linux a limit on *written* memory
(RLIMIT_DATA) is set on top while a recording is decoded, against faults of the decoders themselves.
"""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import queue
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from realtime_tts.errors import ConfigError, RealtimeTTSError
from realtime_tts.voices import wire
from realtime_tts.voices.audio import decode
from realtime_tts.voices.errors import BadAudio, EncoderFailed, VoiceRequestError, speaker_exists
from realtime_tts.voices.form import parse_form
from realtime_tts.voices.maker import VoiceMaker
from realtime_tts.voices.registry import Registry

log = logging.getLogger(__name__)

_NICENESS = 19
_DECODING_BYTES = 256 * 1024 * 1024


class Worker:
    """One job at a time, from `jobs` to `replies`."""

    def __init__(self, load: Callable[[], VoiceMaker], reply: Callable[[wire.Reply], None]) -> None:
        self._load = load
        self._reply = reply
        self._maker: VoiceMaker | None = None

    def work(self, job: wire.Job, body: bytes) -> None:
        """Answers with Made or Refused, after Read and Loaded."""
        try:
            self._make(job, body)
        except VoiceRequestError as error:
            self._reply(wire.Refused(error.code, str(error)))
        except ConfigError as error:  # something is missing on this machine
            self._reply(wire.Refused(EncoderFailed.code, str(error)))
        except RealtimeTTSError as error:  # the model's own word on a recording
            self._reply(wire.Refused(BadAudio.code, str(error)))
        except Exception as error:
            log.exception("the voice could not be encoded")
            why = f"the recording could not be encoded ({type(error).__name__})"
            self._reply(wire.Refused(EncoderFailed.code, why))
        else:
            self._reply(wire.Made())

    def _make(self, job: wire.Job, body: bytes) -> None:
        with _bounded_memory(_DECODING_BYTES):
            wanted = parse_form(body, job.content_type)
            # Asked here and not only when the voice is added: encoding is what costs.
            if wanted.name in job.reserved:
                raise speaker_exists(wanted.name)
            Registry(job.folder).check_free(wanted.name)
            recording = decode(wanted.audio)
        self._reply(wire.Read(recording.seconds))
        if self._maker is None:
            try:
                self._maker = self._load()
            except RealtimeTTSError as error:
                raise EncoderFailed(f"the encoder cannot be loaded: {error}") from None
        self._reply(wire.Loaded())
        self._maker.make(wanted, recording, Path(job.path))


def main() -> None:
    """Entry of the process; the loader comes first on standard input, pickled, then jobs."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server's business, and SIGTERM as well
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with contextlib.suppress(OSError, AttributeError):  # a courtesy, and not known everywhere
        os.nice(_NICENESS)
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever libraries print is for the log
    logging.basicConfig(level=logging.WARNING, format="%(name)s: %(message)s")
    load: Callable[[], VoiceMaker] = pickle.load(sys.stdin.buffer)
    jobs: queue.SimpleQueue[tuple[wire.Job, bytes]] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(sys.stdin.buffer, jobs), daemon=True).start()

    def reply(message: wire.Reply) -> None:
        replies.write(wire.framed(message))
        replies.flush()

    worker = Worker(load, reply)
    reply(wire.Started())
    while True:
        worker.work(*jobs.get())


def _receive(stream: BinaryIO, jobs: queue.SimpleQueue[tuple[wire.Job, bytes]]) -> None:
    """In a thread, so that the server's end is noticed in the middle of a job, too."""
    while True:
        head = stream.read(wire.LENGTH.size)
        if len(head) < wire.LENGTH.size:
            os._exit(0)
        (size,) = wire.LENGTH.unpack(head)
        job = wire.decode_job(stream.read(size))
        jobs.put((job, stream.read(job.size)))


@contextlib.contextmanager
def _bounded_memory(more: int) -> Iterator[None]:
    """While it lasts, this process may write at most `more` bytes beyond what it has now."""
    used = _data_bytes()
    if used is None:
        yield
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limit = used + more
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _data_bytes() -> int | None:
    """What RLIMIT_DATA counts, where the kernel tells: Linux."""
    try:
        status = Path("/proc/self/status").read_text("ascii", "replace")
    except OSError:
        return None
    line = next((line for line in status.splitlines() if line.startswith("VmData:")), None)
    return None if line is None else int(line.split()[1]) * 1024
