"""How the speech of one voice sounds over a set of texts, as one row of the evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tools.demo_voice.alignment import align
from tools.demo_voice.pitch import Pitch, paired_semitones
from tools.demo_voice.recognise import Recording
from tools.demo_voice.voice_quality import (
    bandwidth,
    flutter,
    harmonics_to_noise,
    loudness,
    silence_before,
)


@dataclass(frozen=True, slots=True)
class Sound:
    """Means over the texts that have a value; NaN where none has. Semitones but where said.

    `movement_*`: from the first quarter of a second to the last; `end_*`: within the last one.
    `correlation`: of F0 with the teacher's of the same texts, 1 for the teacher itself.
    """

    set: str
    source: str
    voice: str
    hertz: float
    range: float
    movement_statements: float
    movement_questions: float
    end_statements: float
    end_questions: float
    correlation: float
    voiced: float
    harmonics_db: float
    bandwidth_hertz: float
    loudness_lufs: float
    flutter_db: float
    lead_ms: float


class Listening:
    """Measures recordings against the teacher's of the same texts; each pitch is found once."""

    def __init__(self, name: str, texts: Sequence[str]) -> None:
        self._name, self._texts = name, texts
        self._questions = np.array([text.rstrip("\"'\u201d)").endswith("?") for text in texts])

    def sound(
        self,
        source: str,
        voice: str,
        recordings: Sequence[Recording],
        teacher: Sequence[Recording],
    ) -> Sound:
        """`recordings`, `teacher`: one a text, in the order of the texts. Raises ImportError."""
        pitches = [Pitch.of(recording) for recording in recordings]
        movement = np.array([pitch.movement() for pitch in pitches])
        end = np.array([pitch.terminal() for pitch in pitches])
        asked = self._questions
        noise = [harmonics_to_noise(*both) for both in zip(recordings, pitches, strict=True)]
        return Sound(
            self._name,
            source,
            voice,
            hertz=_mean([pitch.median() for pitch in pitches]),
            range=_mean([pitch.range() for pitch in pitches]),
            movement_statements=_mean(movement[~asked]),
            movement_questions=_mean(movement[asked]),
            end_statements=_mean(end[~asked]),
            end_questions=_mean(end[asked]),
            correlation=_correlation(recordings, pitches, teacher),
            voiced=_mean([pitch.share for pitch in pitches]),
            harmonics_db=_mean(noise),
            bandwidth_hertz=bandwidth(recordings),
            loudness_lufs=loudness(recordings),
            flutter_db=flutter(pitches),
            lead_ms=1000 * _mean([silence_before(recording) for recording in recordings]),
        )


def _mean(values: Sequence[float] | np.ndarray) -> float:
    there = np.asarray(values, np.float64)
    there = there[~np.isnan(there)]
    return float(there.mean()) if len(there) else float("nan")


def _correlation(
    recordings: Sequence[Recording], pitches: Sequence[Pitch], teacher: Sequence[Recording]
) -> float:
    """Pearson's, over all aligned moments at which both are voiced; each recording's semitones are
    counted from its own median."""
    pairs = [
        paired_semitones(pitch, Pitch.of(model), align(recording, model))
        for recording, pitch, model in zip(recordings, pitches, teacher, strict=True)
    ]
    ours, theirs = (np.concatenate([pair[side] for pair in pairs]) for side in (0, 1))
    if len(ours) < 2 or not ours.std() or not theirs.std():
        return float("nan")
    return float(np.corrcoef(ours, theirs)[0, 1])
