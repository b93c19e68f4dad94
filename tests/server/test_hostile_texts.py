"""A long text that is ordinary, or made to be slow: the event loop has its turn all the while."""

from __future__ import annotations

import gc
import json
import time
from asyncio.events import Handle
from collections.abc import Iterator

import pytest

from realtime_tts.engine.fake import FakeEngineConfig
from tests.server.speaking import speaking

MOST_CHARS, MOST_BYTES = 16_000, 60_000
ENGINE = FakeEngineConfig(safe_tokens=130, languages=("auto", "english", "chinese"))
"""A long text is spoken as many utterances, of as many tokens as the demo voice has in one."""
MOST_SECONDS = 0.1  # of computing: 0.002 to 0.004 are usual, and one of these once took 4.8
LEXICON = {f"a{number}": "say it slowly " * 9 for number in range(400)} | {"a": "ab " * 42}

TEXTS = {
    "prose": "The tide comes in, and the boats rise with it. ",
    "numbers": "It made $1.5 million in 2023, up 12% from 2022. ",
    "addresses": "a@b.c ",
    "no end": "word",
    "ends": "a. ",
    "no spaces": "你好",
    "markup": '<break time="1ms"/>a*b* ',
    "a lexicon": "a ",
}


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """Seconds that this thread computed in each call of the event loop. The heap is that of all
    tests here: to look through it once takes longer than any pass, and `serve` keeps from it."""
    seconds: list[float] = []
    run = Handle._run

    def measured(handle: Handle) -> None:
        began = time.thread_time()
        run(handle)
        seconds.append(time.thread_time() - began)

    monkeypatch.setattr(Handle, "_run", measured)
    gc.disable()
    yield seconds
    gc.enable()


@pytest.mark.parametrize("flushes", [False, True], ids=["with its end", "flushed"])
@pytest.mark.parametrize("unit", TEXTS)
async def test_no_pass_of_the_event_loop_is_long(
    passes: list[float], unit: str, flushes: bool
) -> None:
    text = TEXTS[unit]
    count = min(MOST_CHARS // len(text), MOST_BYTES // (len(json.dumps(text)) - 2))
    async with speaking(engine=ENGINE) as server:
        async with server.talk() as talker:
            language = "chinese" if unit == "no spaces" else "english"
            lexicon = LEXICON if unit == "a lexicon" else {}
            await talker.send(
                "session.start", language=language, lexicon=lexicon, text_normalization="on"
            )
            await talker.until("ready")
            passes.clear()
            await talker.send("text", text=text * count, end=not flushes)
            if flushes:
                await talker.send("flush")
            await talker.until("turn.started")
            await talker.send("interrupt")
            await talker.until("turn.done")
    assert max(passes) < MOST_SECONDS
