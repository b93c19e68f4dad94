"""EngineHost: events find their handlers, whatever another handler does."""

from __future__ import annotations

from typing import Any

import pytest

from realtime_tts.engine.interface import UtteranceSpec
from realtime_tts.engine.link import Append, Audio, Ended, Event, Finish, Open

FRAME_BYTES = 3_840


async def test_a_handler_that_raises_loses_no_event_of_the_others(
    speech: Any, eventually: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def raises(event: Event) -> None:
        raise ZeroDivisionError("injected")

    heard: list[Event] = []
    async with speech() as server:
        engine = server.running.front.engine
        for id, handler in (("bad", raises), ("good", heard.append)):
            engine.open(Open(id, UtteranceSpec()), handler)
            engine.submit(Append(id, [1, 2, 3]))
            engine.submit(Finish(id))
        await eventually(lambda: heard and isinstance(heard[-1], Ended))
        engine.forget("good")
        pcm = b"".join(event.pcm for event in heard if isinstance(event, Audio))
        assert len(pcm) == 3 * FRAME_BYTES
        await server.settled_engine()
    lost = [record for record in caplog.records if record.message == "engine.event_lost"]
    assert len(lost) == 1, "nothing more of it was delivered"
