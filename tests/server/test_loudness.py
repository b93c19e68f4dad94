"""`loudness` over a socket: the tones of the fake engine are at -16 LUFS, in every turn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from realtime_tts.engine.fake import FakeEngineConfig
from tests.audio.sounds import loudness, samples_of
from tests.server.asking_voices import voice_server
from tests.server.speaking import speaking
from tests.server.talking import sound_of

TEXT = "The tide is coming in, and the boats are going out."
LONG = FakeEngineConfig(frames_per_token=1)


async def spoken(talker: Any, **fields: Any) -> tuple[bytes, Any]:
    """The sound of a turn, and its `turn.done`."""
    await talker.send("text", text=TEXT, end=True, **fields)
    messages = await talker.until("turn.done")
    return sound_of(messages), messages[-1]


async def test_turns_are_at_16_lufs_and_as_long_as_without() -> None:
    async with speaking(engine=LONG) as server:
        async with server.talk("?seed=3&lead_ms=30000") as talker:
            plain, done = await spoken(talker)
        assert abs(loudness(plain) + 16) > 1.3
        async with server.talk("?seed=3&lead_ms=30000&loudness=on") as talker:
            made = [await spoken(talker) for _ in range(3)]
    for pcm, end in made:
        assert len(pcm) == len(plain) and end["samples"] == done["samples"]
    assert all(loudness(pcm) == pytest.approx(-16, abs=1) for pcm, _ in made)
    first = [loudness(pcm[:48_000]) for pcm, _ in made[1:]]
    assert first == [pytest.approx(-16, abs=1)] * 2, "what was learned is there from the beginning"


async def test_a_turn_keeps_what_it_was_begun_with() -> None:
    async with speaking(engine=LONG) as server, server.talk("?seed=3&lead_ms=30000") as talker:
        plain, _ = await spoken(talker)
        await talker.send("session.start", loudness="on")
        assert (await talker.next())["settings"]["loudness"] == "on"
        louder, _ = await spoken(talker)
        await talker.send("session.start", loudness=None)
        assert (await talker.next())["settings"]["loudness"] == "off"
        again, _ = await spoken(talker)
    assert again == plain != louder
    assert np.corrcoef(samples_of(plain), samples_of(louder))[0, 1] > 0.95, "the same speech"


@pytest.mark.parametrize("query", ["", "&loudness=on"])
async def test_markup_makes_a_part_of_a_turn_louder_or_softer(query: str) -> None:
    marked = f'<prosody volume="+6dB">{TEXT}</prosody> <volume ratio="0.5"/>{TEXT}'
    async with speaking(engine=LONG) as server:
        async with server.talk(f"?seed=3&lead_ms=30000{query}") as talker:
            await spoken(talker)  # with `loudness`, what it is brought to is known now
            plain, done = await spoken(talker)
            await talker.send("text", text=f"{TEXT} {marked}", end=True)
            messages = await talker.until("turn.done")
        assert not [one for one in messages if not isinstance(one, bytes) and "code" in one]
    made, size = sound_of(messages), len(plain)
    assert len(made) == 3 * size == 6 * done["samples"]
    parts = [loudness(made[at : at + size]) for at in (0, size, 2 * size)]
    assert [part - loudness(plain) for part in parts] == [
        pytest.approx(change, abs=1.0) for change in (0, 6, -6)
    ]


async def test_a_voice_made_again_under_its_name_begins_as_unknown(tmp_path: Path) -> None:
    query = "?seed=3&lead_ms=30000&loudness=on&voice=anna"
    made = []
    async with voice_server(tmp_path, engine=LONG) as voices:
        for _ in range(2):
            await voices.give("anna")
            async with voices.speech.talk(query) as talker:
                made.append([(await spoken(talker))[0] for _ in range(2)])
            assert (await voices.http.delete("/v1/voices/anna")).status_code == 204
    first, second = made
    assert second[0] == first[0] != first[1]


async def test_a_voice_is_the_same_in_capitals(tmp_path: Path) -> None:
    query = "?seed=3&lead_ms=30000&loudness=on&voice="
    made = []
    async with voice_server(tmp_path, engine=LONG) as voices:
        await voices.give("anna")
        for name in ("anna", "Anna", "tenor", "TENOR"):
            async with voices.speech.talk(query + name) as talker:
                made.append((await spoken(talker))[0])
    anna, again, tenor, tenor_again = made
    assert again != anna and tenor_again != tenor, "the gain is known by then"


async def test_another_value_is_refused_by_name() -> None:
    async with speaking() as server, server.talk() as talker:
        await talker.send("session.start", loudness="loud")
        error = await talker.next()
    assert error["type"] == "error" and "loudness" in error["message"]
