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
    """What everybody with one key may do together; None: as much as the server can.

    `sessions` and `turns` count what is open at once, `turns_per_minute`, `chars_per_minute` and
    `chars_per_day` what begins, or comes, in a window of that length.
    """

    sessions: Positive | None = None
    turns: Positive | None = None
    turns_per_minute: Positive | None = None
    chars_per_minute: Positive | None = None
    chars_per_day: Positive | None = None


class Key(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """As it is stored. `digest`: SHA-256 of the whole key, in hexadecimal digits. `created` and
    `expires`: in seconds since 1970. `origins`: of the pages that may use it; empty: any that the
    server allows. `voices`, `register`: patterns (`acme-*`) of the voices that it may speak with,
    and that it may register and delete. `share`: how much of a full server it gets, beside others'
    shares. An `admin` key sees the usage of all keys, metrics and load, and may change what all
    customers share."""

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
        """Whether its time is over; `now` in seconds since 1970."""
        return self.expires is not None and self.expires <= now

    def is_of(self, shown: bytes) -> bool:
        """Whether this is the key that was shown. The time it takes tells nothing."""
        return hmac.compare_digest(digest_of(shown), self.digest)

    def may_use(self, voice: str | None) -> bool:
        """Whether it may speak with this voice; None is the checkpoint's only one."""
        return matches(self.voices, voice or "")


def matches(patterns: tuple[str, ...], voice: str) -> bool:
    """Whether one of the patterns fits the name, in capitals or not."""
    return any(fnmatchcase(voice.lower(), pattern.lower()) for pattern in patterns)


def digest_of(shown: bytes) -> str:
    """What is stored of a key."""
    return hashlib.sha256(shown).hexdigest()


def new_secret(key_id: str) -> str:
    """A key that nobody has had before, for the key of this id."""
    return f"{PREFIX}_{key_id}_{secrets.token_urlsafe(_SECRET_BYTES)}"


def new_id() -> str:
    """The id of a new key."""
    return secrets.token_hex(_ID_BYTES)


def id_in(shown: bytes) -> str | None:
    """The id that a key names, if it looks like one of ours."""
    prefix, _, rest = shown.partition(b"_")
    key_id, separator, _ = rest.partition(b"_")
    ours = prefix == PREFIX.encode() and separator and key_id.isalnum()
    return key_id.decode("ascii", "replace") if ours else None
