"""The voice worker's process: reads forms and recordings, encodes them, writes voice files.

It is a child of the server (see child_process.py) and runs at the lowest priority with one thread,
so that cloning never delays speech.

Memory is bounded by counting, not by RLIMIT_AS: torch and CUDA reserve far more address space than
they use, so a limit that fits a model bounds nothing. On Linux, a limit on *written* memory
(RLIMIT_DATA) also applies while a recording is decoded, against bugs in the decoders.
"""

from __future__ import annotations

import contextlib
import logging
import pickle
import queue
from collections.abc import Callable, Iterator
from pathlib import Path

from realtime_tts.access.key import matches
from realtime_tts.errors import CheckpointError, ConfigError, RealtimeTTSError
from realtime_tts.parent_process import Parent
from realtime_tts.voices import wire
from realtime_tts.voices.audio import decode
from realtime_tts.voices.errors import (
    BadAudio,
    CannotClone,
    CannotStore,
    EncoderFailed,
    VoiceRequestError,
    not_allowed,
    not_written,
    speaker_exists,
)
from realtime_tts.voices.form import parse_form
from realtime_tts.voices.maker import VoiceMaker
from realtime_tts.voices.registry import Registry

log = logging.getLogger(__name__)

_DECODING_BYTES = 256 * 1024 * 1024


class Worker:
    """Does one job at a time, and reports each stage with `reply`."""

    def __init__(self, load: Callable[[], VoiceMaker], reply: Callable[[wire.Reply], None]) -> None:
        self._load = load
        self._reply = reply
        self._maker: VoiceMaker | None = None

    def work(self, job: wire.Job, body: bytes) -> None:
        """Do one job: reply with Read, Loaded and at last Made, or with Refused."""
        try:
            self._make(job, body)
        except VoiceRequestError as error:
            self._reply(wire.Refused(error.code, str(error)))
        except ConfigError as error:  # something is missing on this machine
            self._reply(wire.Refused(EncoderFailed.code, str(error)))
        except OSError as error:
            log.error("the voice cannot be written: %s", error)
            self._reply(wire.Refused(CannotStore.code, str(not_written(error))))
        except RealtimeTTSError as error:  # the model rejects the recording
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
            # Checked here and not only when the voice is added, because encoding is expensive.
            if not matches(job.allowed, wanted.name):
                raise not_allowed(wanted.name)
            if wanted.name in job.reserved:
                raise speaker_exists(wanted.name)
            Registry(job.folder).check_free(wanted.name)
            recording = decode(wanted.audio)
        self._reply(wire.Read(recording.seconds))
        if self._maker is None:
            try:
                self._maker = self._load()
            except CheckpointError as error:  # trying again will not help
                raise CannotClone(f"this server makes no voices of recordings: {error}") from None
            except RealtimeTTSError as error:
                raise EncoderFailed(f"the encoder cannot be loaded: {error}") from None
        self._reply(wire.Loaded())
        self._maker(wanted, recording, Path(job.path))


def main(parent: Parent) -> None:
    """Serve one server. Its first message is the pickled loader; jobs and their forms follow.

    A thread receives them, so that the end of the server is noticed in the middle of a job, too.
    """
    logging.basicConfig(level=logging.WARNING, format="%(name)s: %(message)s")
    load: Callable[[], VoiceMaker] = pickle.loads(parent.receive())
    messages: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    parent.listen(messages.put, at_end=lambda: None)
    worker = Worker(load, lambda reply: parent.send(wire.encode(reply)))
    parent.send(wire.encode(wire.Started()))
    while True:
        job, form = wire.decode_job(messages.get()), messages.get()
        worker.work(job, form)


@contextlib.contextmanager
def _bounded_memory(more: int) -> Iterator[None]:
    """Within the block, limit this process to `more` bytes of written memory beyond the present."""
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
    """Return the bytes that RLIMIT_DATA counts now, or None where the kernel does not say."""
    try:
        status = Path("/proc/self/status").read_text("ascii", "replace")
    except OSError:
        return None
    line = next((line for line in status.splitlines() if line.startswith("VmData:")), None)
    return None if line is None else int(line.split()[1]) * 1024
