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

    def played(self, pcm: bytes) -> bytes:
        """What is played of what came so far, and was not given yet."""
        self.came += len(pcm) // BYTES_PER_SAMPLE
        return pcm if self._scale is None else self._scale.push(pcm)

    def rest(self) -> bytes:
        """Nothing follows: all that was held."""
        return b"" if self._scale is None else self._scale.finish()

    def seconds(self, rate: int) -> float:
        """That all that came takes to be played."""
        return self.speed.played(self.came) / rate

    def has_left_behind(self, came: int) -> bool:
        """Whether what follows the place does not depend on the first so many samples."""
        return self._scale is None or came <= self._scale.place.next - self._scale.HISTORY

    @property
    def place(self) -> Place | None:
        """How far it was played; None: it is all that came."""
        return None if self._scale is None else self._scale.place
