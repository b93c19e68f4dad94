"""Messages between a server and its voice worker: msgpack, through the pipes of a child process.

Nothing from the worker is unpickled, because the worker parses untrusted input.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

MAX_REPLY_BYTES = 64 * 1024


class Job(msgspec.Struct, frozen=True, tag=True):
    """Make a voice from a form, and write its file at `path`. The server then adds the file.

    The form itself is the next message. `folder`: the registry's folder. `reserved`: names that the
    voice may not have. `allowed`: patterns of the names that it may have.
    """

    content_type: str
    folder: str
    path: str
    reserved: tuple[str, ...]
    allowed: tuple[str, ...]


class Started(msgspec.Struct, frozen=True, tag=True):
    """The worker is ready for its first job."""


class Read(msgspec.Struct, frozen=True, tag=True):
    """Form and recording are valid; the audio lasts `seconds`. Loading the model comes next."""

    seconds: float


class Loaded(msgspec.Struct, frozen=True, tag=True):
    """The model is loaded; encoding begins."""


class Made(msgspec.Struct, frozen=True, tag=True):
    """The voice has been written at the job's `path`."""


class Refused(msgspec.Struct, frozen=True, tag=True):
    """The job failed with the VoiceRequestError of this code; the worker is ready for another."""

    code: str
    message: str


Reply = Started | Read | Loaded | Made | Refused

encode = msgspec.msgpack.Encoder().encode
decode_job = msgspec.msgpack.Decoder(Job).decode
decode_reply: Callable[[bytes], Reply] = msgspec.msgpack.Decoder(Reply).decode
"""Decodes a reply of the worker. Raises msgspec.DecodeError, as `decode_job` does."""
