"""Text for somebody's LiveKit plugin, and what came of it."""

from __future__ import annotations

from typing import Any

from livekit.agents import APIConnectOptions
from livekit.agents.tts import TTS

TEXT = "The museum is open until six. The café is open until nine."
DELTAS = ("The muse", "um is op", "en until six", ". The caf", "é is open until ni", "ne.")
LONG = " ".join([TEXT] * 6)
ONCE = APIConnectOptions(max_retry=0, timeout=60.0)


async def say(tts: TTS, deltas: tuple[str, ...] = DELTAS) -> list[Any]:
    async with tts.stream(conn_options=ONCE) as stream:
        for delta in deltas:
            stream.push_text(delta)
        stream.end_input()
        return [event async for event in stream]


def seconds(events: list[Any]) -> float:
    return sum(event.frame.duration for event in events)


def is_speech(events: list[Any], text: str = TEXT) -> bool:
    return 0.03 * len(text) < seconds(events) < 0.2 * len(text)
