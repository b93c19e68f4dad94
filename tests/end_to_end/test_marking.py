"""A server that marks: what it says on a telephone is found to be synthetic."""

from __future__ import annotations

import io

import soundfile

from realtime_tts import RealtimeTTS
from realtime_tts.audio.detection import detect
from realtime_tts.config import ServerConfig
from realtime_tts.engine.settings import EngineConfig
from tests.end_to_end.serving import serving
from tts_scheduler import SchedulerConfig

TEXT = "Your order has been sent. It should arrive on Tuesday, between ten and twelve."


async def test_what_the_demo_voice_says_on_a_telephone_is_found_to_be_synthetic() -> None:
    engine = EngineConfig(scheduler=SchedulerConfig(slots=1, utilisation=1_000))
    async with serving(engine, ServerConfig(port=0, marking="watermark")) as server:
        async with RealtimeTTS(
            server.websocket_url,
            lead_ms=30_000,
            seed=5,
            voice="ava",
            audio={"encoding": "pcm_mulaw", "container": "wav"},
        ) as tts:
            data = b"".join([packet async for packet in tts.speak(TEXT)])
    assert detect(*soundfile.read(io.BytesIO(data))).found
