"""Other APIs' times, of a model that tells: 0.24 s for each character (see
tests/server/test_exact_word_times.py)."""

from __future__ import annotations

import pytest

from realtime_tts.engine.fake import FakeEngineConfig
from tests.dialects.elevens import alignments, eleven
from tests.server.speaking import speaking

SECONDS = 0.24
TEXT = "Good morning, all. "


async def test_elevenlabs_characters_are_where_they_are_spoken() -> None:
    async with speaking(engine=FakeEngineConfig(aligned=True)) as server:
        async with eleven(server, "&sync_alignment=true", multi=False) as client:
            await client.send(text=TEXT)
            await client.send(text="")
            messages = await client.rest()
    told = alignments(messages)
    chars = [char for one in told for char in one["chars"]]
    starts = [start for one in told for start in one["charStartTimesMs"]]
    assert "".join(chars).strip() == TEXT.strip()
    spoken = [(at, start) for at, start in enumerate(starts) if not chars[at].isspace()]
    assert all(start == pytest.approx(at * SECONDS * 1000, abs=6) for at, start in spoken)
