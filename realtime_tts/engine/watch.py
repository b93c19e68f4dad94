"""Watch: the guards of everyone who has not ended, and what they say of a step."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from realtime_tts.engine.guards import GuardConfig, Guards, trailing_silence
from realtime_tts.engine.interface import SoundBlock, StepOutput


class Watch:
    """`guards` by id. `told` hears the reason whenever they end somebody."""

    def __init__(
        self, config: GuardConfig, sample_rate: int, told: Callable[[str], None] | None = None
    ) -> None:
        self.guards: dict[str, Guards] = {}
        self._config, self._sample_rate, self._told = config, sample_rate, told

    def begin(self, id: str) -> None:
        """A new utterance."""
        self.guards[id] = Guards(self._config, self._sample_rate)

    def end(self, id: str) -> None:
        """It is over. Idempotent."""
        self.guards.pop(id, None)

    def reasons(self, output: StepOutput, blocks: Sequence[SoundBlock]) -> dict[str, str]:
        """Reasons by id of all rows that end in this step, whose sound is `blocks`: their own, and
        the guards'."""
        ended = dict(output.ended)
        guards = self.guards
        if not self._config.enabled:
            return ended
        for id, code in output.frames.items():
            if (reason := guards[id].frame(code)) is not None:
                self._note(ended, id, reason)
        for block in blocks:
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
        if self._told is not None:
            self._told(reason)
