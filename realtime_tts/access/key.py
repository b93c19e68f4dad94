"""Key: what a customer shows to be let in, and what it allows.

A key is 256 random bits, so a plain SHA-256 of it is stored: nobody can try them all, however fast
the hash is. Slow hashes (scrypt, Argon2) are for passwords, which people choose, and would cost
each request 50 ms. The part in front of the secret names the key; it is in listings and logs.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from fnmatch import fnmatchcase
from typing import Annotated

import msgspec

PREFIX = "rtts"
_ID_BYTES, _SECRET_BYTES = 6, 32

Positive = Annotated[int, msgspec.Meta(ge=1)]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]


class KeyLimits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What all clients with one key may use together; None means no limit but the server's.

    `sessions` and `turns` count what is open at once, `turns_per_minute`, `chars_per_minute` and
    `chars_per_day` what begins, or arrives, in a window of that length.
    """

    sessions: Positive | None = None
    turns: Positive | None = None
    turns_per_minute: Positive | None = None
    chars_per_minute: Positive | None = None
    chars_per_day: Positive | None = None


class Key(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A key as it is stored. `digest`: SHA-256 of the whole key, in hexadecimal digits. `created`,
    `expires`: seconds since 1970. `origins`: origins of the pages that may use it; empty: any that
    the server allows. `voices`, `register`: patterns (`acme-*`) of the voices that it may speak
    with, and of those that it may register and delete. `share`: its weight when a full server is
    divided among keys. An `admin` key sees the usage of all keys, metrics and load, and may change
    what all customers share."""

    id: Name
    name: Name
    digest: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
    created: float
    expires: float | None = None
    origins: tuple[str, ...] = ()
    voices: tuple[str, ...] = ("*",)
    register: tuple[str, ...] = ()
    share: Annotated[float, msgspec.Meta(gt=0)] = 1.0
    admin: bool = False
    limits: KeyLimits = KeyLimits()

    def expired(self, now: float) -> bool:
        """Return whether the key has expired at `now`, in seconds since 1970."""
        return self.expires is not None and self.expires <= now

    def is_of(self, shown: bytes) -> bool:
        """Return whether this is the key `shown`, compared in constant time."""
        return hmac.compare_digest(digest_of(shown), self.digest)

    def may_use(self, voice: str | None) -> bool:
        """Return whether the key may speak with `voice`; None is the checkpoint's only voice."""
        return matches(self.voices, voice or "")


def matches(patterns: tuple[str, ...], voice: str) -> bool:
    """Return whether one of the patterns matches the voice's name, ignoring case."""
    return any(fnmatchcase(voice.lower(), pattern.lower()) for pattern in patterns)


def digest_of(shown: bytes) -> str:
    """Return the SHA-256 of a key in hexadecimal digits, which is all that is stored of it."""
    return hashlib.sha256(shown).hexdigest()


def new_secret(key_id: str) -> str:
    """Make a new random key whose id is `key_id`."""
    return f"{PREFIX}_{key_id}_{secrets.token_urlsafe(_SECRET_BYTES)}"


def new_id() -> str:
    """Make the id of a new key."""
    return secrets.token_hex(_ID_BYTES)


def id_in(shown: bytes) -> str | None:
    """Return the id that a key names, or None if it does not look like one of this project."""
    prefix, _, rest = shown.partition(b"_")
    key_id, separator, _ = rest.partition(b"_")
    ours = prefix == PREFIX.encode() and separator and key_id.isalnum()
    return key_id.decode("ascii", "replace") if ours else None
