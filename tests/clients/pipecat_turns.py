"""A turn for a Pipecat pipeline around somebody's speech service, and what was heard of it."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any

import pipecat_rig
from pipecat.frames.frames import Frame, TTSTextFrame
from pipecat.processors.frame_processor import FrameProcessor
from pipecat_rig import response

__all__ = ["DELTAS", "LONG", "SENTENCES", "is_speech", "pipeline", "response"]

RATE = 24_000
SENTENCES = "Your table is free. Come at eight, and bring your friends."
DELTAS = ("Your ta", "ble is fr", "ee. Come at e", "ight, and bring your fri", "ends.")
LONG = "The museum is open until six. " * 12


class Rig(pipecat_rig.Rig):
    def of(self, kind: type[Frame]) -> list[Any]:
        """At either end."""
        return [frame for frame in (*self.down, *self.up) if isinstance(frame, kind)]

    @property
    def seconds(self) -> float:
        return len(self.audio()) / 2 / RATE

    @property
    def seconds_of_the_last(self) -> float:
        """Of the context that was heard last."""
        return len(self.audio(self.contexts()[-1])) / 2 / RATE

    @property
    def words(self) -> list[str]:
        return " ".join(frame.text for frame in self.of(TTSTextFrame)).split()


def pipeline(service: FrameProcessor) -> AbstractAsyncContextManager[Rig]:
    return pipecat_rig.pipeline(service, Rig, audio_out_sample_rate=RATE)


def is_speech(seconds: float, text: str = SENTENCES) -> bool:
    return 0.03 * len(text) < seconds < 0.2 * len(text)
