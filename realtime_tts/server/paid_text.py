"""PaidText: how much of a turn's text has been paid for, also after it moves to another socket.

There its text comes again. The client sends, signed, how many characters were paid for, and their
digest: the same text is free, and whoever sends another one pays for all of it.
"""

from __future__ import annotations

from hashlib import blake2b

_DIGEST_BYTES = 8


class PaidText:
    """What of a turn's text is paid for: `chars` with this `digest` on another socket. `keeps`: the
    turn may move to yet another one."""

    def __init__(self, chars: int = 0, digest: bytes = b"", *, keeps: bool = False) -> None:
        self.left = self._elsewhere = chars
        """Characters paid for elsewhere that are still to come again."""
        self.is_other = False
        """Whether another text came in their place."""
        self._digest = digest
        self._text = blake2b(digest_size=_DIGEST_BYTES) if keeps or chars else None
        self._chars = 0

    @property
    def so_far(self) -> tuple[int, bytes]:
        """Characters received and their digest; the digest is empty if the turn cannot move."""
        return self._chars, b"" if self._text is None else self._text.digest()

    def add(self, text: str) -> int:
        """Add text; return how many characters must be paid for because of it."""
        again, more = text[: self.left], text[self.left :]
        self.left -= len(again)
        self._keep(again)
        if again and not self.left and self.so_far[1] != self._digest:
            self.is_other = True
        self._keep(more)
        return len(more) + (self._elsewhere if again and self.is_other else 0)

    def _keep(self, text: str) -> None:
        if text and self._text is not None:
            self._chars += len(text)
            self._text.update(text.encode(errors="surrogatepass"))
