"""Errors of making, finding and removing voices, each with its HTTP status."""

from __future__ import annotations

from realtime_tts.errors import RouteError


class VoiceRequestError(RouteError, code="voice_error"):
    """Base of all errors of requests about voices."""


class BadVoiceRequest(VoiceRequestError, code="bad_request"):
    """A field is missing, of the wrong kind or out of range."""


class UnknownVoice(VoiceRequestError, code="unknown_voice", status=404):
    """No voice has the id."""


class VoiceExists(VoiceRequestError, code="voice_exists", status=409):
    """The id is taken, by a registered voice or by a speaker of the checkpoint."""


class BuiltInVoice(VoiceRequestError, code="built_in_voice", status=409):
    """A speaker of the checkpoint has no embedding of its own to give, and cannot be removed."""


class CannotClone(VoiceRequestError, code="cannot_clone", status=409):
    """This server keeps no voices, or none of its checkpoints can clone one."""


class NotAllowed(VoiceRequestError, code="voice_not_allowed", status=403):
    """The key may not register or delete voices of this name."""


class UploadTooLarge(VoiceRequestError, code="too_large", status=413):
    """The body has more bytes than a recording may have."""


class UnsupportedMedia(VoiceRequestError, code="unsupported_media", status=415):
    """The body is neither a form nor JSON, or the file has a format that is not supported."""


class BadAudio(VoiceRequestError, code="bad_audio", status=422):
    """The recording cannot be used; the message says why and what to send instead."""


class EncoderFailed(
    VoiceRequestError, code="encoder_failed", status=503, retryable=True, retry_after=5
):
    """The worker that encodes voices ended or took too long; it is started again."""


class EncoderBusy(
    VoiceRequestError, code="encoder_busy", status=503, retryable=True, retry_after=10
):
    """The largest number of recordings is being read or encoded already."""


class CannotStore(VoiceRequestError, code="cannot_store", status=507, retryable=True):
    """The folder of voices cannot be written: a full disk, for example."""


def speaker_exists(name: str) -> VoiceExists:
    """Make the error for a name that belongs to a checkpoint's speaker."""
    return VoiceExists(f"{name!r} is a speaker of a loaded checkpoint: choose another name")


def wrong_length(name: str, model: str, found: int, family: str, wanted: int) -> str:
    """Return the message for a voice made for `model` whose embedding has not the length that a
    checkpoint of this family takes."""
    return (
        f"voice {name!r} was made for {model}: its embedding has {found} numbers, this checkpoint "
        f"({family}) takes {wanted}. A Base checkpoint of the voice's own size can speak it, or "
        "clone it again with this one"
    )


def not_allowed(name: str) -> NotAllowed:
    """Make the error for a name that the client's key may not use."""
    return NotAllowed(f"this key may not register or delete a voice named {name[:80]!r}")


BY_CODE: dict[str, type[VoiceRequestError]] = {
    kind.code: kind for kind in VoiceRequestError.__subclasses__()
}


def not_written(error: OSError) -> CannotStore:
    """Make the error for a folder of voices that cannot be written. Names no path: it is a client
    that reads this."""
    return CannotStore(
        f"the server cannot write its folder of voices ({error.strerror or error}): "
        "its operator has to look at --voices-dir"
    )
