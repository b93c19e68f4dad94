"""StateSigner: the server signs what a client keeps of a turn, and knows again what it has signed.

Codes that somebody makes up would let a model go on in any voice, also for who has only a token to
speak with. So `state` ends with a MAC over it, its part and all codes since: keyed BLAKE2b
(RFC 7693). The secret comes from the API key that the client showed: all servers with that key take
the state, and no other key's clients can use it. Without keys there is nothing to protect.
"""

from __future__ import annotations

import hashlib
import hmac

SECRET = "realtime_tts.secret"
"""Key in the ASGI scope of a request with a valid key or token: bytes that only servers with that
key know."""
_PURPOSE = b"rt-tts turn"  # 16 bytes at most
_MAC_BYTES = 16


class StateSigner:
    """Of one turn. `secret`: 64 bytes at most; empty: nothing is signed, and all is taken."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        if secret:
            self._begin(b"")

    def _begin(self, part: bytes) -> None:
        self._hash = hashlib.blake2b(
            part, key=self._secret, person=_PURPOSE, digest_size=_MAC_BYTES
        )
        self._codes = 0  # bytes

    def sign(self, part: bytes, state: bytes, codes: bytes) -> bytes:
        """The state, signed, if there is one: behind these new codes and, if it begins, this
        part."""
        if not self._secret:
            return state
        if part:
            self._begin(part)
        self._hash.update(codes)
        self._codes += len(codes)
        return state and state + self._mac(state)

    def verify(self, part: bytes, state: bytes, codes: bytes) -> bytes | None:
        """The state without its signature, behind all codes of its part; None if another server
        has signed it, or nobody. The turn goes on from there."""
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
