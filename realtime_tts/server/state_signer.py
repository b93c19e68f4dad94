"""StateSigner: the server signs the state that a client keeps of a turn, and verifies it.

Made-up codes would let a model continue in any voice, even for a client with only a token to speak.
So `state` ends with a MAC over itself, its part and all codes since: keyed BLAKE2b (RFC 7693). The
secret comes from the API key that the client showed: all servers with that key accept the state,
and no other key's clients can use it. Without keys there is nothing to protect.
"""

from __future__ import annotations

import hashlib
import hmac

SECRET = "realtime_tts.secret"
"""Key in the ASGI scope of an authenticated request: bytes that only servers with its key know."""
_PURPOSE = b"rt-tts turn"  # 16 bytes at most
_MAC_BYTES = 16


class StateSigner:
    """Signs the states of one turn. `secret`: at most 64 bytes; empty: states are not signed."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        if secret:
            self._begin(b"")

    def _begin(self, part: bytes) -> None:
        self._hash = hashlib.blake2b(
            part, key=self._secret, person=_PURPOSE, digest_size=_MAC_BYTES
        )
        self._codes = 0  # bytes of codes

    def sign(self, part: bytes, state: bytes, codes: bytes) -> bytes:
        """Return the state, if any, with a MAC over it, these codes and, if one begins, this
        part."""
        if not self._secret:
            return state
        if part:
            self._begin(part)
        self._hash.update(codes)
        self._codes += len(codes)
        return state and state + self._mac(state)

    def verify(self, part: bytes, state: bytes, codes: bytes) -> bytes | None:
        """Verify the MAC; return the state without it, or None if it is wrong. `codes`: all codes
        of the part. Later states are signed from here on."""
        if not self._secret:
            return state
        self._begin(part)
        self._hash.update(codes)
        self._codes = len(codes)
        bare, mac = state[:-_MAC_BYTES], state[-_MAC_BYTES:]
        return bare if hmac.compare_digest(mac, self._mac(bare)) else None

    def _mac(self, state: bytes) -> bytes:
        signed = self._hash.copy()
        signed.update(self._codes.to_bytes(8) + state)
        return signed.digest()
