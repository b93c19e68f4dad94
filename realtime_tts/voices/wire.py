"""What a server and its voice worker say to each other: msgpack, through the pipes of a child.

Nothing that the worker says is unpickled: it has read what strangers sent.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

MAX_REPLY_BYTES = 64 * 1024


class Job(msgspec.Struct, frozen=True, tag=True):
    """A form to be made into a voice: its file is written at `path`, for who sent the job to add.

    The form itself is the next message. `folder` is the registry's; `reserved` are names that no
    voice may have, and `allowed` patterns of those that it may.
    """

    content_type: str
    folder: str
    path: str
    reserved: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ("*",)


class Started(msgspec.Struct, frozen=True, tag=True):
    """The worker waits for its first job."""


class Read(msgspec.Struct, frozen=True, tag=True):
    """Form and recording are good, with so many `seconds` of audio; the model is needed next."""

    seconds: float


class Loaded(msgspec.Struct, frozen=True, tag=True):
    """The model is there; encoding begins."""


class Made(msgspec.Struct, frozen=True, tag=True):
    """The voice lies at the job's `path`."""


class Refused(msgspec.Struct, frozen=True, tag=True):
    """A VoiceRequestError, by its code; the worker waits for the next job."""

    code: str
    message: str


Reply = Started | Read | Loaded | Made | Refused

encode = msgspec.msgpack.Encoder().encode
decode_job = msgspec.msgpack.Decoder(Job).decode
decode_reply: Callable[[bytes], Reply] = msgspec.msgpack.Decoder(Reply).decode
"""Both raise msgspec.DecodeError."""
