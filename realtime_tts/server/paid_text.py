"""PaidText: what of a turn's text has been paid for, also where it goes on from another socket.

Then its text comes again. The client brings, signed, how many characters were paid for, and a
digest of them: they are free if they are the same, and whoever sends others pays for all.
"""

from __future__ import annotations

from hashlib import blake2b

_DIGEST_BYTES = 8


class PaidText:
    """`chars` with this `digest` were paid for elsewhere. `keeps`: the turn may go on elsewhere."""

    def __init__(self, chars: int = 0, digest: bytes = b"", *, keeps: bool = False) -> None:
        self.left = self._elsewhere = chars
        """Of those, still to come again."""
        self.is_other = False
        """What came in their place was not that text."""
        self._digest = digest
        self._text = blake2b(digest_size=_DIGEST_BYTES) if keeps or chars else None
        self._chars = 0

    @property
    def so_far(self) -> tuple[int, bytes]:
        """Characters that came, and their digest; none of a turn that goes on nowhere."""
        return self._chars, b"" if self._text is None else self._text.digest()

    def add(self, text: str) -> int:
        """More text came. Gives how many characters are to be paid for with it."""
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
