"""Runaway guards: speech that will not end is ended, each way with its own reason.

The model now and then misses its own end of speech (about three in a thousand turns for the
released checkpoints) and goes on with room tone or one repeated sound. Independent signs:

- **budget**: more frames than the text can need;
- **silence**: the text is used up and nothing audible has been made for a while;
- **repetition**: one first code, again and again;
- **text**: words are spoken a second time, where the checkpoint reports which token a frame speaks.
  Words that were left out are noticed where words are known (`server/listener.py`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from realtime_tts.audio.pcm import FULL_SCALE
from realtime_tts.engine.interface import BlockSamples, SoundBlock, StepOutput
from realtime_tts.engine.made_codes import last_number
from realtime_tts.text.progress import Progress

BUDGET = "guard_budget"
SILENCE = "guard_silence"
REPETITION = "guard_repetition"
TEXT = "guard_text"


@dataclass(frozen=True, slots=True)
class GuardConfig:
    """Limits of the guards; `enabled=False` switches all of them off. Silence is counted anyway.

    The budget is `budget_base + budget_per_token * text tokens` frames. Speech takes about three
    frames a token, digits up to five; eight leaves room for slow delivery.

    A pause repeats one first code too, so a run of `repetition_run` frames only counts when the
    same code also fills `repetition_share` of the last `repetition_window` frames (2.4 s).

    Words count as spoken again where `again_frames` frames in a row (1 s) are more than
    `again_tokens` text tokens behind the furthest one, and advance in `again_steps` steps: in a
    silence a model may look back, too, but not at one word after another.
    """

    enabled: bool = True
    budget_base: int = 100
    budget_per_token: int = 8
    silence_seconds: float = 2.0
    silence_dbfs: float = -50.0
    repetition_run: int = 10
    repetition_window: int = 30
    repetition_share: float = 0.8
    again_frames: int = 12
    again_tokens: int = 8
    again_steps: int = 3


_TAIL = 64
"""Samples at the end of a run that are checked first: speech is nearly always audible there."""


def trailing_silence(samples: BlockSamples, config: GuardConfig) -> list[int]:
    """Return how many samples at the end of each row [rows, n], float or PCM, are inaudible."""
    level = 10 ** (config.silence_dbfs / 20)
    if samples.dtype == np.int16:
        level = int(level * FULL_SCALE)
    length = samples.shape[1]
    if length == 0:
        return [0] * len(samples)
    tail = samples[:, -_TAIL:]
    audible = (tail > level) | (tail < -level)
    after: list[int] = np.argmax(audible[:, ::-1], axis=1).tolist()
    for row in np.flatnonzero(~audible.any(axis=1)).tolist():
        heard = np.flatnonzero((samples[row] > level) | (samples[row] < -level))
        after[row] = length - 1 - int(heard[-1]) if heard.size else length
    return after


class Guards:
    """Watches one utterance. Calls take what was made and return a reason to stop, or None."""

    def __init__(self, config: GuardConfig, sample_rate: int) -> None:
        self._config = config
        self._silence_limit = round(config.silence_seconds * sample_rate)
        self._codes: deque[int] = deque(maxlen=config.repetition_window)
        self._last = -1
        self._run = 0
        self._frames = 0
        self.silent_samples = 0
        """Number of inaudible samples in a row, up to the last sample."""
        self._progress = self._again = Progress()  # the latter in text that was spoken before
        self._behind = self._steps = 0  # frames in a row that speak such text, and their steps
        self.text_tokens = 0
        self.text_finished = False

    def resume(
        self, first_codes: Sequence[int], silent_samples: int, tokens: Sequence[int] = ()
    ) -> None:
        """Continue an utterance of another engine: the first codes of its frames, the text tokens
        that they speak, and how many samples at its end are inaudible."""
        for code in first_codes:
            self.frame(code)
        for token in tokens:
            self.token(token)
        self.silent_samples = silent_samples

    def frame(self, first_code: int) -> str | None:
        """Take a frame with this first code."""
        config = self._config
        if not config.enabled:
            return None
        self._codes.append(first_code)
        self._frames += 1
        if first_code == self._last:
            self._run += 1
        else:
            self._last, self._run = first_code, 1
        if self.text_finished:
            budget = config.budget_base + config.budget_per_token * self.text_tokens
            if self._frames > budget:
                return BUDGET
        if self._run >= config.repetition_run and self._repeats(first_code):
            return REPETITION
        return None

    def token(self, token: int) -> str | None:
        """Take the text token that the frame speaks."""
        config = self._config
        self._progress.frame(token)
        if self._progress.token - token <= config.again_tokens:
            self._behind = self._steps = 0
            return None
        if not self._behind:
            self._again = Progress(token)
        self._behind += 1
        self._steps += self._again.frame(token)
        again = self._behind >= config.again_frames and self._steps >= config.again_steps
        return TEXT if again and config.enabled else None

    def silence(self, trailing: int, length: int) -> str | None:
        """Take `length` samples that left the codec, the last `trailing` of which are inaudible."""
        self.silent_samples = trailing + (self.silent_samples if trailing == length else 0)
        if not self._config.enabled:
            return None
        # While text is still being fed (one token a frame) silence is a pause, not an end.
        if self.silent_samples < self._silence_limit or not self.text_finished:
            return None
        return SILENCE if self._frames > self.text_tokens else None

    def _repeats(self, code: int) -> bool:
        share = self._codes.count(code) / self._config.repetition_window
        return share >= self._config.repetition_share


class Watch:
    """The guards of all open utterances, by id. `report` gets the reason whenever they end one."""

    def __init__(
        self, config: GuardConfig, sample_rate: int, report: Callable[[str], None] | None = None
    ) -> None:
        self.guards: dict[str, Guards] = {}
        self._config, self._sample_rate, self._report = config, sample_rate, report

    def begin(self, id: str) -> None:
        """Guard a new utterance."""
        self.guards[id] = Guards(self._config, self._sample_rate)

    def end(self, id: str) -> None:
        """Stop guarding an utterance that is over. Idempotent."""
        self.guards.pop(id, None)

    def reasons(self, output: StepOutput, blocks: Sequence[SoundBlock]) -> dict[str, str]:
        """Return the reasons, by id, of all rows that end in this step: the engine's and the
        guards'. `blocks`: the sound of the step."""
        ended = dict(output.ended)
        guards = self.guards
        if self._config.enabled:
            for id, code in output.frames.items():
                if (reason := guards[id].frame(code)) is not None:
                    self._note(ended, id, reason)
            for id, tokens in output.tokens.items():
                if (reason := guards[id].token(last_number(tokens))) is not None:
                    self._note(ended, id, reason)
        for block in blocks:  # in any case: the times of words need to know what is silent
            length = block.samples.shape[1]
            trailing = trailing_silence(block.samples, self._config)
            for id, silent in zip(block.ids, trailing, strict=True):
                if (reason := guards[id].silence(silent, length)) is not None:
                    self._note(ended, id, reason)
        return ended

    def _note(self, ended: dict[str, str], id: str, reason: str) -> None:
        if id in ended:
            return
        ended[id] = reason
        if self._report is not None:
            self._report(reason)
