"""What a client sends of a turn whose socket was lost, so that this session continues it."""

from __future__ import annotations

from base64 import b64decode
from dataclasses import dataclass

from realtime_tts.protocol import messages as m
from realtime_tts.protocol.settings import Limits

FRAME_BYTES = 34
"""Bytes of one frame's codes, at most: 16 numbers of two bytes, and one for the token spoken."""
FRAME_MS = 80


@dataclass(frozen=True, slots=True)
class Resume:
    """What came of a turn on other sockets: `samples` of audio, and the words of its first
    `words_chars` characters; `text_chars` of its text were spoken, by estimate. `part` and `state`
    are as the server gave them, None if the client does not say; `codes` are of all its frames."""

    samples: int
    text_chars: int
    words_chars: int
    part: bytes | None
    state: bytes | None
    codes: bytes
    too_much: bool
    """Whether more codes came in this session than anybody can have heard: all are dropped."""


class BroughtCodes:
    """Codes of a turn that is about to be resumed: of one turn at a time, and no more than one turn
    can have.

    An engine computes all codes that clients send, while others wait for it. So a session may send
    as many as one turn can have, plus those of the time since: nobody has heard more.
    """

    def __init__(self, limits: Limits) -> None:
        self._most = limits.max_turn_audio_ms // FRAME_MS * FRAME_BYTES
        self._turn_id: str | None = None
        self._codes = bytearray()
        self._left, self._left_at = float(self._most), 0.0

    def add(self, message: m.TurnCodes) -> str | None:
        """Keep the codes. If they are too many, keep none and return a sentence that says so."""
        codes = b"".join(map(b64decode, message.codes))
        if message.turn_id != self._turn_id:
            self._turn_id, self._codes = message.turn_id, bytearray()
        size = len(self._codes) + len(codes)
        if size > self._most:
            self._turn_id, self._codes = None, bytearray()
            return f"turn.codes: expected at most {self._most} bytes of codes, found {size}"
        self._codes += codes
        return None

    def resume(self, message: m.TurnResume, now: float) -> Resume:
        """Return all that came for the turn, at `now` in seconds, and keep nothing."""
        codes = bytes(self._codes) if message.turn_id == self._turn_id else b""
        self._turn_id, self._codes = None, bytearray()
        too_much = not self._counted(len(codes), now)
        return Resume(
            samples=message.samples,
            text_chars=message.text_chars,
            words_chars=message.words_chars,
            part=None if message.part is None else b64decode(message.part),
            state=None if message.state is None else b64decode(message.state),
            codes=b"" if too_much else codes,
            too_much=too_much,
        )

    def _counted(self, size: int, now: float) -> bool:
        """Return whether `size` more bytes of codes are allowed now, and count them if so."""
        heard = (now - self._left_at) * 1000 / FRAME_MS * FRAME_BYTES
        self._left, self._left_at = min(self._most, self._left + heard), now
        if size > self._left:
            return False
        self._left -= size
        return True
