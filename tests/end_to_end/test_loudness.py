"""The demo voices, 3 to 5 LU apart by themselves, are equally loud where a session asks for it."""

from __future__ import annotations

import asyncio
from typing import Literal

import pytest

from realtime_tts import RealtimeTTS
from realtime_tts.engine.settings import EngineConfig
from tests.audio.sounds import loudness, true_peak
from tests.end_to_end.conftest import Serve
from tts_scheduler import SchedulerConfig

VOICES = ("ava", "ray", "kal")
TEXT = "The train to the coast leaves at nine, and it is never late, so be there early."


async def test_the_demo_voices_are_at_16_lufs_and_no_peak_is_above_minus_1_db(
    serve: Serve,
) -> None:
    engine = EngineConfig(scheduler=SchedulerConfig(slots=2, utilisation=1_000))
    made: dict[tuple[str, str], bytes] = {}
    async with serve(engine) as server:

        async def say(chosen: Literal["off", "on"]) -> None:
            url = server.websocket_url
            async with RealtimeTTS(url, lead_ms=30_000, seed=5, loudness=chosen) as tts:
                for voice in VOICES:
                    await tts.configure(voice=voice)
                    made[voice, chosen] = b"".join([one async for one in tts.speak(TEXT)])

        await asyncio.gather(say("off"), say("on"))
    before = [loudness(made[voice, "off"]) for voice in VOICES]
    assert max(before) - min(before) > 3
    for voice in VOICES:
        assert len(made[voice, "on"]) == len(made[voice, "off"])
        assert loudness(made[voice, "on"]) == pytest.approx(-16, abs=1)
        assert true_peak(made[voice, "on"]) <= -1.0
