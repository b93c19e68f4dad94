"""Why a voice could not be made, found or removed, each with the HTTP status it is answered with.

`code` is the word in the answer's `error`; `retryable` says that the same request may work later.
"""

from __future__ import annotations

from typing import ClassVar

from realtime_tts.errors import RealtimeTTSError


class VoiceRequestError(RealtimeTTSError):
    """Base of all errors of requests that concern voices."""

    code = "voice_error"
    status: ClassVar[int] = 400
    retry_after: ClassVar[int] = 0
    """Whole seconds; 0: the answer does not say."""


class BadVoiceRequest(VoiceRequestError):
    """A field is missing, of the wrong kind or out of range."""

    code = "bad_request"


class UnknownVoice(VoiceRequestError):
    """There is no voice of that id."""

    code = "unknown_voice"
    status = 404


class VoiceExists(VoiceRequestError):
    """The id is taken, by a registered voice or by a speaker of the checkpoint."""

    code = "voice_exists"
    status = 409


class BuiltInVoice(VoiceRequestError):
    """A speaker of the checkpoint has no embedding of its own to give, and cannot be removed."""

    code = "built_in_voice"
    status = 409


class CannotClone(VoiceRequestError):
    """This server keeps no voices, or none of its checkpoints can clone one."""

    code = "cannot_clone"
    status = 409


class UploadTooLarge(VoiceRequestError):
    """The body has more bytes than a recording may have."""

    code = "too_large"
    status = 413


class UnsupportedMedia(VoiceRequestError):
    """The body is neither a form nor JSON, or the file is of a kind that is not read."""

    code = "unsupported_media"
    status = 415


class BadAudio(VoiceRequestError):
    """The recording cannot be used; the message says why and what to send instead."""

    code = "bad_audio"
    status = 422


class EncoderFailed(VoiceRequestError):
    """The worker that encodes voices ended or took too long; it is started again."""

    code = "encoder_failed"
    status = 503
    retryable = True
    retry_after = 5


class EncoderBusy(VoiceRequestError):
    """As many recordings as may wait are waiting already."""

    code = "encoder_busy"
    status = 503
    retryable = True
    retry_after = 10


class CannotStore(VoiceRequestError):
    """The folder of voices cannot be written: a full disk, for example."""

    code = "cannot_store"
    status = 507
    retryable = True


def speaker_exists(name: str) -> VoiceExists:
    """Make the error for a name that belongs to a checkpoint's speaker."""
    return VoiceExists(f"{name!r} is a speaker of a loaded checkpoint: choose another name")


BY_CODE: dict[str, type[VoiceRequestError]] = {
    kind.code: kind for kind in VoiceRequestError.__subclasses__()
}
