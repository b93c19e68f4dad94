"""PartSound: the speech of one utterance, as it is made and as it is played."""

from __future__ import annotations

from realtime_tts.audio.pcm import BYTES_PER_SAMPLE
from realtime_tts.audio.speed import Speed
from realtime_tts.audio.time_scale import Place, TimeScale


class PartSound:
    """At a speed of 1 the very bytes that came are played, and nothing is held."""

    def __init__(self, speed: Speed) -> None:
        self.speed = speed
        self.came = 0
        """Samples that the engine made."""
        self._scale = TimeScale(speed) if speed.changes else None

    def resume(self, came: int, place: Place | None) -> None:
        """So many samples were made elsewhere, and played up to the place."""
        self.came = came
        if self._scale is not None:
            self._scale = TimeScale(self.speed, place, came)

    def add(self, pcm: bytes) -> tuple[bytes, int]:
        """More came: what is played now, and how many samples all of it is when it is played."""
        before = self.came
        self.came += len(pcm) // BYTES_PER_SAMPLE
        if self._scale is None:
            return pcm, self.came - before
        return self._scale.push(pcm), self.speed.played(self.came) - self.speed.played(before)

    def rest(self) -> bytes:
        """Nothing follows: all that was held."""
        return b"" if self._scale is None else self._scale.finish()

    @property
    def played(self) -> int:
        """Samples that all that came is when it is played."""
        return self.speed.played(self.came)

    def has_left_behind(self, came: int) -> bool:
        """Whether what follows the place does not depend on the first so many samples."""
        return self._scale is None or came <= self._scale.place.next - self._scale.HISTORY

    @property
    def place(self) -> Place | None:
        """How far it was played; None: it is all that came."""
        return None if self._scale is None else self._scale.place
