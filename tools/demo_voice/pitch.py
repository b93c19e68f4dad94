"""The pitch of speech: how high it is, how far it moves and where it goes at the end.

F0 comes from WORLD's DIO, refined by StoneMask (Morise, Kawahara and Katayose 2009; MIT licence,
package `pyworld`). All distances are in semitones, so voices of different height compare.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tools.demo_voice.recognise import SAMPLE_RATE, Recording

STEP_SECONDS = 0.01
"""One value of F0 every 10 ms."""
_LOWEST, _HIGHEST = 60.0, 500.0  # Hz; the voices speak between 80 and 350
_EDGE_FRAMES = 25  # a quarter of a second at the beginning and at the end


@dataclass(frozen=True, slots=True, eq=False)
class Pitch:
    """`hertz` [T] float64: F0 every 10 ms, 0 where the speech has none."""

    hertz: NDArray[np.float64]

    @classmethod
    def of(cls, recording: Recording) -> Pitch:
        """Raises ImportError without pyworld."""
        try:
            import pyworld
        except ImportError as error:
            raise ImportError("pitch needs pyworld: pip install -e '.[demo-voice]'") from error
        samples = recording.resampled(SAMPLE_RATE)
        step = 1000 * STEP_SECONDS
        rough, times = pyworld.dio(samples, SAMPLE_RATE, _LOWEST, _HIGHEST, frame_period=step)
        return cls(pyworld.stonemask(samples, rough, times, SAMPLE_RATE))

    @property
    def voiced(self) -> NDArray[np.bool_]:
        """[T]: which frames have a pitch."""
        return self.hertz > 0

    @property
    def share(self) -> float:
        """Voiced frames among all; 0 for an empty recording."""
        return float(self.voiced.mean()) if len(self.hertz) else 0.0

    def semitones(self) -> NDArray[np.float64]:
        """[T] above the median of the voiced frames; NaN in the others."""
        found = np.full(len(self.hertz), np.nan)
        voiced = self.voiced
        if voiced.any():
            found[voiced] = 12 * np.log2(self.hertz[voiced] / np.median(self.hertz[voiced]))
        return found

    def median(self) -> float:
        """Hz, of the voiced frames; NaN if there are none."""
        return float(np.median(self.hertz[self.voiced])) if self.voiced.any() else float("nan")

    def range(self) -> float:
        """Semitones between the 5th and the 95th percentile; NaN without a voiced frame."""
        if not self.voiced.any():
            return float("nan")
        low, high = np.percentile(self.semitones()[self.voiced], [5, 95])
        return float(high - low)

    def movement(self) -> float:
        """Semitones from the first quarter of a second to the last one, from the first voiced
        frame to the last; medians of both. NaN if they would overlap."""
        tones = self._from_first_to_last_voiced()
        if len(tones) < 2 * _EDGE_FRAMES:
            return float("nan")
        return float(np.nanmedian(tones[-_EDGE_FRAMES:]) - np.nanmedian(tones[:_EDGE_FRAMES]))

    def terminal(self) -> float:
        """Semitones by which the last quarter of a second rises, by the median slope between its
        frames (Theil-Sen: one frame an octave off changes nothing). NaN with fewer than 5."""
        tones = self._from_first_to_last_voiced()[-_EDGE_FRAMES:]
        at = np.flatnonzero(~np.isnan(tones))
        if len(at) < 5:
            return float("nan")
        from scipy.stats import theilslopes

        slope: float = theilslopes(tones[at], at)[0]
        return slope * _EDGE_FRAMES

    def _from_first_to_last_voiced(self) -> NDArray[np.float64]:
        at = np.flatnonzero(self.voiced)
        return self.semitones()[at[0] : at[-1] + 1] if len(at) else np.empty(0)


def paired_semitones(
    one: Pitch, other: Pitch, path: NDArray[np.intp]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Semitones of both at the steps of `path` [P, 2] (`alignment.align`) where both are voiced."""
    rows = path[(path[:, 0] < len(one.hertz)) & (path[:, 1] < len(other.hertz))]
    first, second = one.semitones()[rows[:, 0]], other.semitones()[rows[:, 1]]
    both = ~np.isnan(first) & ~np.isnan(second)
    return first[both], second[both]
