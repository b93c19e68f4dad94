"""VoiceLibrary: the registry and the worker together, as the server's routes use them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from realtime_tts.access.key import matches
from realtime_tts.background import repeat
from realtime_tts.shared_folder import discard
from realtime_tts.voices import wire
from realtime_tts.voices.encoding import VoiceWorker, WorkerLimits
from realtime_tts.voices.errors import (
    CannotClone,
    EncoderFailed,
    not_allowed,
    speaker_exists,
)
from realtime_tts.voices.file import CorruptVoiceError, VoiceRecord, read_record, write_voice
from realtime_tts.voices.stored import UPDATE_SECONDS, StoredRegistry, open_registry

if TYPE_CHECKING:
    from realtime_tts.voices.maker import VoiceMaker

_FIRST_SECONDS = 10.0


class VoiceLibrary:
    """The registered voices of one server.

    `load_maker` is pickled and called in the worker; with None, this server keeps embeddings, but
    cannot encode recordings.

    Files are read and written in threads. Every method may raise a VoiceRequestError.
    """

    def __init__(
        self,
        folder: Path | str,
        load_maker: Callable[[], VoiceMaker] | None = None,
        limits: WorkerLimits | None = None,
    ) -> None:
        self.registry = open_registry(folder)
        self._following: asyncio.Task[None] | None = None
        self.worker = None if load_maker is None else VoiceWorker(load_maker, limits)

    @contextlib.asynccontextmanager
    async def place(self) -> AsyncIterator[VoiceWorker]:
        """Reserve room for one recording before its body is read.

        Raises EncoderBusy, or CannotClone without an encoder.
        """
        if self.worker is None:
            raise CannotClone("this server has no encoder for recordings; send an embedding")
        async with self.worker.place():
            yield self.worker

    async def clone(
        self,
        worker: VoiceWorker,
        body: Sequence[bytes],
        content_type: str,
        reserved: Collection[str],
        allowed: Callable[[], tuple[str, ...]] = lambda: ("*",),
    ) -> VoiceRecord:
        """Make a voice from the pieces of a form, with the worker that `place` gave.

        `reserved`: names that are taken; `allowed` returns patterns of the names that the client
        may use now. They are asked again at the end, since encoding may take minutes.
        """
        async with self._unfinished() as path:
            folder = str(self.registry.folder)
            job = wire.Job(content_type, folder, str(path), tuple(reserved), allowed())
            await worker.make(job, body)
            return await asyncio.to_thread(self._add, path, allowed())

    async def register(
        self,
        name: str,
        embedding: NDArray[np.float32],
        *,
        model: str,
        language: str | None,
        reserved: Collection[str],
    ) -> VoiceRecord:
        """Make a voice from a speaker embedding [H]. `reserved`: names that are taken."""
        if name in reserved:
            raise speaker_exists(name)
        await asyncio.to_thread(self.registry.check_free, name)
        async with self._unfinished() as path:

            def write() -> VoiceRecord:
                try:
                    write_voice(path, embedding, name=name, model=model, language=language)
                except OSError as error:
                    raise self.registry.cannot_store(error) from None
                return self._add(path)

            return await asyncio.to_thread(write)

    async def start(self) -> None:
        """Read all voices. From object storage, reload changes of other machines from now on, and
        do not wait for a store that does not answer in time."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_FIRST_SECONDS):
                await asyncio.to_thread(self.registry.update)
        await asyncio.to_thread(self.registry.voices)
        if isinstance(self.registry, StoredRegistry):
            following = repeat("voices.update", UPDATE_SECONDS, self._follow)
            self._following = asyncio.create_task(following, name="voices")

    async def _follow(self) -> None:
        await asyncio.to_thread(self.registry.update)

    async def stop(self) -> None:
        """End the worker, if there is one."""
        if self._following is not None:
            self._following.cancel()
        if self.worker is not None:
            await self.worker.stop()

    @contextlib.asynccontextmanager
    async def _unfinished(self) -> AsyncIterator[Path]:
        path = await asyncio.to_thread(self.registry.unfinished)
        try:
            yield path
        finally:
            await asyncio.to_thread(discard, path)

    def _add(self, path: Path, allowed: tuple[str, ...] = ("*",)) -> VoiceRecord:
        """Add a voice. Its name is checked again, because the worker has parsed untrusted input."""
        try:
            if not matches(allowed, name := read_record(path).id):
                raise not_allowed(name)
            return self.registry.add(path)
        except CorruptVoiceError as error:
            raise EncoderFailed(f"the encoder wrote what is no voice: {error}") from None
