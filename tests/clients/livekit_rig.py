"""What an agent does with somebody's TTS for LiveKit, and what it hears."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from livekit.agents import APIConnectOptions, tts

TEXT = "The museum is open until six. The café is open until nine."
DELTAS = ("The muse", "um is op", "en until six", ". The caf", "é is open until ni", "ne.")
ONCE = APIConnectOptions(max_retry=0, timeout=60.0)

Events = list[tts.SynthesizedAudio]
Way = Callable[..., Awaitable[Events]]
"""To speak: `say` or `read`."""


def audio(events: Iterable[tts.SynthesizedAudio]) -> bytes:
    return b"".join(bytes(event.frame.data.cast("B")) for event in events)


def seconds(events: Iterable[tts.SynthesizedAudio]) -> float:
    return sum(event.frame.duration for event in events)


def collected(speaker: tts.TTS[Any], event: str) -> list[Any]:
    """All events of this kind from now on."""
    found: list[Any] = []
    speaker.on(event, found.append)
    return found


async def say(
    speaker: tts.TTS[Any], deltas: Iterable[str] = DELTAS, options: APIConnectOptions = ONCE
) -> Events:
    """All of a stream, whose text comes at once but in pieces."""
    async with speaker.stream(conn_options=options) as stream:
        for delta in deltas:
            stream.push_text(delta)
        stream.end_input()
        return [event async for event in stream]


async def read(speaker: tts.TTS[Any], text: str, options: APIConnectOptions = ONCE) -> Events:
    """All of a text that is known whole."""
    async with speaker.synthesize(text, conn_options=options) as stream:
        return [event async for event in stream]


async def until_audio(stream: tts.SynthesizeStream | tts.ChunkedStream) -> tts.SynthesizedAudio:
    return await asyncio.wait_for(anext(aiter(stream)), 60)


def assert_well_formed(events: Events) -> None:
    """What the framework's own tests ask of every plugin."""
    assert events, "expected audio"
    assert events[0].request_id
    assert {event.request_id for event in events} == {events[0].request_id}
    assert {event.segment_id for event in events} == {events[0].segment_id}
    assert [event.is_final for event in events] == [False] * (len(events) - 1) + [True]
    assert all(0 < event.frame.duration < 0.25 for event in events)
    assert {(e.frame.sample_rate, e.frame.num_channels) for e in events} == {(24_000, 1)}


def assert_same_audio(events: Events, expected: bytes) -> None:
    """To the byte; where speech is slow the framework marks the end with 10 ms of silence."""
    found = audio(events)
    assert found[: len(expected)] == expected
    assert found[len(expected) :] in (b"", bytes(480))
