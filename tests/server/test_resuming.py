"""A turn whose socket is lost goes on in another session, at the very next sample."""

from __future__ import annotations

from functools import partial
from random import Random
from typing import Any

import pytest

from realtime_tts.engine.fake import FakeEngineConfig
from tests.server.resuming import Kept, spoken, whole

ON = "?resume=on&word_times=on&lead_ms=30000"
TEXTS = [
    "The tide is coming in. Good morning to you, and to all who are with you!",
    'Wait.<break time="300ms"/> Go on, please.<break time="100ms"/>',
    "One **bold** word 🙂 and [a link](https://an.example/of/some/length) in between. " * 3,
    "It costs $3.50, and that is 42 in all.\n\n- a list\n- of two  ",
    "Hi.",
]


def same(kept: Kept, undisturbed: Kept) -> None:
    assert kept.audio == undisturbed.audio
    assert kept.done is not None and undisturbed.done is not None
    counts = ("reason", "samples", "text_chars")
    assert [kept.done[name] for name in counts] == [undisturbed.done[name] for name in counts]
    assert kept.said == undisturbed.said
    ttfa = kept.done["ttfa_ms"]
    assert ttfa is None or ttfa >= 0
    ends = [word["end_ms"] for word in kept.words]
    assert ends == sorted(ends)
    assert not [m for m in kept.messages if m["type"] in ("error", "warning")]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("size", [0, 7])
@pytest.mark.parametrize("silence", [0, 3_000])
async def test_a_turn_goes_on_at_the_next_sample(
    speech: Any, text: str, size: int, silence: int
) -> None:
    random = Random(text)
    engine = FakeEngineConfig(frames_per_token=1, silence=silence, safe_tokens=40)
    async with speech(engine=engine) as server:
        connect = partial(server.talk, ON)
        undisturbed = await spoken(connect, whole(text, size))
        for _ in range(4):
            moments = sorted(random.choices(range(undisturbed.packets + 1), k=3))
            kept = await spoken(connect, whole(text, size), moments)
            same(kept, undisturbed)
        await server.settled()
