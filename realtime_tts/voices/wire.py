"""What a server and its voice worker say to each other: msgpack, through the pipes of a child.

Nothing that the worker says is unpickled: it has read what strangers sent.
"""

from __future__ import annotations

import msgspec

MAX_REPLY_BYTES = 64 * 1024


class Job(msgspec.Struct, frozen=True, tag=True):
    """A form to be made into a voice: its file is written at `path`, for who sent the job to add.

    The form itself is the next message. `folder` is the registry's; `reserved` are names that no
    voice may have.
    """

    content_type: str
    folder: str
    path: str
    reserved: tuple[str, ...] = ()


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

_encoder = msgspec.msgpack.Encoder()
_job_decoder = msgspec.msgpack.Decoder(Job)
_reply_decoder = msgspec.msgpack.Decoder(Reply)


def encode(message: Job | Reply) -> bytes:
    """The message as msgpack."""
    return _encoder.encode(message)


def decode_job(data: bytes) -> Job:
    """The job in a message of the server's. Raises msgspec.DecodeError."""
    found: Job = _job_decoder.decode(data)
    return found


def decode_reply(data: bytes) -> Reply:
    """The reply in a message of the worker's. Raises msgspec.DecodeError."""
    found: Reply = _reply_decoder.decode(data)
    return found
