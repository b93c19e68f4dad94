"""Why a lexicon could not be stored, found or removed, and the HTTP status that says so."""

from __future__ import annotations

from realtime_tts.errors import RequestError, RouteError


class LexiconError(RouteError, RequestError, code="bad_request"):
    """Base of all errors of requests that concern stored lexicons; by itself: a lexicon cannot be
    made of a field or a file."""


class UnknownLexicon(LexiconError, code="unknown_lexicon", status=404):
    """There is no lexicon of that name, or no such version of it."""


class NoLexicons(LexiconError, code="no_lexicons", status=409):
    """This server keeps no lexicons."""


class TooManyLexicons(LexiconError, code="too_many_lexicons", status=409):
    """There are as many lexicons as there may be, or as many versions of one."""


class Overtaken(LexiconError, code="overtaken", status=409, retryable=True):
    """Another version was stored first, where the new one was to be."""


class LexiconTooLarge(LexiconError, code="too_large", status=413):
    """The lexicon has more bytes or more entries than it may have."""


class UnsupportedMedia(LexiconError, code="unsupported_media", status=415):
    """The body is neither JSON nor PLS."""


class CannotStore(LexiconError, code="cannot_store", status=507, retryable=True):
    """The folder of lexicons cannot be written: a full disk, for example."""
