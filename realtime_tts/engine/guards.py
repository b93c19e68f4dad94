"""Runaway guards: speech that will not end is ended, each way with its own reason.

The model now and then misses its own end of speech (about three in a thousand turns for the
released checkpoints) and goes on with room tone or one repeated sound. Three independent signs:

- **budget**: more frames than the text can need;
- **silence**: the text is used up and nothing audible has come for a while;
- **repetition**: one first code, again and again.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from realtime_tts.engine.interface import Samples

BUDGET = "guard_budget"
SILENCE = "guard_silence"
REPETITION = "guard_repetition"


@dataclass(frozen=True, slots=True)
class GuardConfig:
    """Limits of the three guards; `enabled=False` switches all of them off.

    The budget is `budget_base + budget_per_token * text tokens` frames. Speech takes about three
    frames a token, digits up to five; eight leaves room for slow delivery.

    A pause repeats one first code too, so a run of `repetition_run` frames only counts when the
    same code also fills `repetition_share` of the last `repetition_window` frames (2.4 s).
    """

    enabled: bool = True
    budget_base: int = 100
    budget_per_token: int = 8
    silence_seconds: float = 2.0
    silence_dbfs: float = -50.0
    repetition_run: int = 10
    repetition_window: int = 30
    repetition_share: float = 0.8


class Guards:
    """Watches one utterance. Feed it what was made; it answers with a reason to stop, or None."""

    def __init__(self, config: GuardConfig, sample_rate: int) -> None:
        self._config = config
        self._silence_limit = round(config.silence_seconds * sample_rate)
        self._silence_level = 10 ** (config.silence_dbfs / 20)
        self._codes: deque[int] = deque(maxlen=config.repetition_window)
        self._run = 0
        self._frames = 0
        self._silent_samples = 0
        self.text_tokens = 0
        self.text_finished = False

    def frame(self, first_code: int) -> str | None:
        """A frame was made with this first code."""
        if not self._config.enabled:
            return None
        self._run = self._run + 1 if self._codes and self._codes[-1] == first_code else 1
        self._codes.append(first_code)
        self._frames += 1
        if self._over_budget():
            return BUDGET
        if self._repeats(first_code):
            return REPETITION
        return None

    def samples(self, samples: Samples) -> str | None:
        """These samples (float32, [-1, 1]) left the codec."""
        if not self._config.enabled:
            return None
        audible = np.flatnonzero(np.abs(samples) > self._silence_level)
        if audible.size:
            self._silent_samples = len(samples) - 1 - int(audible[-1])
        else:
            self._silent_samples += len(samples)
        # While text is still being fed (one token a frame) silence is a pause, not an end.
        used_up = self.text_finished and self._frames > self.text_tokens
        return SILENCE if used_up and self._silent_samples >= self._silence_limit else None

    def _over_budget(self) -> bool:
        budget = self._config.budget_base + self._config.budget_per_token * self.text_tokens
        return self.text_finished and self._frames > budget

    def _repeats(self, code: int) -> bool:
        if self._run < self._config.repetition_run:
            return False
        share = self._codes.count(code) / self._config.repetition_window
        return share >= self._config.repetition_share
