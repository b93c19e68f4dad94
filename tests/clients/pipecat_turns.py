"""Somebody's services for Pipecat, and turns with them; plugins/test_pipecat.py is the suite."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any

from pipecat.frames.frames import ErrorFrame, Frame, TTSStoppedFrame, TTSTextFrame
from pipecat.processors.frame_processor import FrameProcessor

from tests.clients import pipecat_rig
from tests.clients.pipecat_rig import response

RATE = 24_000
SENTENCES = "Your table is free. Come at eight, and bring your friends."
DELTAS = ("Your ta", "ble is fr", "ee. Come at e", "ight, and bring your fri", "ends.")
LONG = "The museum is open until six. " * 12


@dataclass(frozen=True)
class Service:
    """A service, told nothing but another address.

    `make(server, **options)`; `http(server, session)`: the same over HTTP, where there is one;
    `ways`: options that a conversation is held with, each; `words`: whether the words come with
    the sound; `timed`: whether they also have their times; `contexts`: whether each turn has a
    context; `reconnects`: whether it stands turns of nothing to speak; `cut_off_as`: as what the
    server counts a turn that was cut off; `endless`: a text that goes on for longer than a test.
    """

    name: str
    make: Callable[..., FrameProcessor]
    http: Callable[..., FrameProcessor] | None = None
    ways: Sequence[Mapping[str, Any]] = field(default_factory=lambda: [{}])
    words: bool = True
    timed: bool = False
    contexts: bool = True
    reconnects: bool = True
    cut_off_as: str = "interrupted"
    endless: str = LONG


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

    async def one_turn(self) -> None:
        await self.send(*response(*DELTAS))
        await self.until(lambda: self.of(TTSStoppedFrame))
        assert is_speech(self.seconds)

    async def first_error(self) -> str:
        """What the first error says, when it is there."""
        await self.until(lambda: self.of(ErrorFrame))
        text: str = self.of(ErrorFrame)[0].error
        return text


def pipeline(service: FrameProcessor) -> AbstractAsyncContextManager[Rig]:
    return pipecat_rig.pipeline_with(Rig, service, audio_out_sample_rate=RATE)


def is_speech(seconds: float, text: str = SENTENCES) -> bool:
    return 0.03 * len(text) < seconds < 0.2 * len(text)


async def three_turns(rig: Rig) -> None:
    for turn in range(1, 4):
        await rig.send(*response(*DELTAS))
        await rig.until(lambda turns=turn: len(rig.of(TTSStoppedFrame)) == turns)  # type: ignore[misc]
        assert is_speech(rig.seconds / turn)
    assert not rig.of(ErrorFrame)
