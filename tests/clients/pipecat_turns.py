"""A turn for a Pipecat pipeline around somebody's speech service, and what was heard of it."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from typing import Any

from pipecat.frames.frames import (
    ErrorFrame,
    Frame,
    InterruptionFrame,
    TTSAudioRawFrame,
    TTSStoppedFrame,
    TTSTextFrame,
)
from pipecat.processors.frame_processor import FrameProcessor

from tests.clients import pipecat_rig
from tests.clients.pipecat_rig import response
from tests.clients.serving import Server

__all__ = [
    "DELTAS", "LONG", "SENTENCES", "barge_in_and_next_turn", "is_speech", "pipeline", "response",
    "three_turns", "turns_of_nothing_to_speak", "words_in_time",
]  # fmt: skip

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
    return pipecat_rig.pipeline_with(Rig, service, audio_out_sample_rate=RATE)


def is_speech(seconds: float, text: str = SENTENCES) -> bool:
    return 0.03 * len(text) < seconds < 0.2 * len(text)


# What every plugin must stand.


async def three_turns(rig: Rig) -> None:
    for turn in range(1, 4):
        await rig.send(*response(*DELTAS))
        await rig.until_stopped(turn)
        assert len(rig.of(TTSStoppedFrame)) == turn
        assert is_speech(rig.seconds / turn)
    assert not rig.of(ErrorFrame)


async def words_in_time(rig: Rig) -> None:
    await rig.send(*response(*DELTAS))
    await rig.until(lambda: rig.of(TTSStoppedFrame))
    times = [frame.pts for frame in rig.of(TTSTextFrame)]
    assert len(times) == len(SENTENCES.split()) and times == sorted(times)
    spoken = (times[-1] - times[0]) / 1e9
    assert 0.5 * rig.seconds < spoken < rig.seconds


async def barge_in_and_next_turn(
    rig: Rig, server: Server, text: str = LONG, reason: str = "interrupted"
) -> None:
    """`reason`: as what the server counts the turn that was cut off."""
    series = f'tts_turns_total{{reason="{reason}"}}'
    counted = server.value(series)
    await rig.send(*response(text))
    await rig.until(lambda: rig.of(TTSAudioRawFrame))
    await rig.send(InterruptionFrame())
    await asyncio.to_thread(server.until, series, counted + 1)
    before = len(rig.of(TTSStoppedFrame))
    await rig.send(*response(*DELTAS))
    await rig.until(lambda: len(rig.of(TTSStoppedFrame)) > before)
    assert is_speech(rig.seconds_of_the_last)
    assert not rig.of(ErrorFrame)


async def turns_of_nothing_to_speak(rig: Rig) -> None:
    """After three turns without sound the framework would give the service up."""
    for turn in range(1, 6):
        await rig.send(*response("…"))
        await rig.until_stopped(turn)
    await rig.send(*response(*DELTAS))
    await rig.until(lambda: is_speech(rig.seconds))
    assert not rig.of(ErrorFrame)
