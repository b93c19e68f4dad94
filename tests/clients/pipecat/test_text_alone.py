"""Text that belongs to no reply: a TextFrame by itself, or what a ServiceSwitcher cut off."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pipecat.frames.frames import (
    Frame,
    LLMFullResponseEndFrame,
    LLMFullResponseStartFrame,
    LLMTextFrame,
    ManuallySwitchServiceFrame,
    TextFrame,
    TTSSpeakFrame,
)
from pipecat.pipeline.service_switcher import ServiceSwitcher

from realtime_tts.adapters import pipecat
from tests.clients.pipecat.our_service import service
from tests.clients.pipecat.test_service import spoken
from tests.clients.pipecat.test_words import words_of
from tests.clients.pipecat_rig import pipeline, response
from tests.clients.serving import Server

FOLLOWING: dict[str, Callable[[], list[Frame]]] = {
    "a reply": lambda: response("Yes?"),
    "speech": lambda: [TTSSpeakFrame("Yes?")],
}


@pytest.fixture(params=list(FOLLOWING))
def following(request: pytest.FixtureRequest) -> list[Frame]:
    return FOLLOWING[request.param]()


async def test_what_follows_on_a_bare_text_does_not_wait(
    fake: Server, following: list[Frame]
) -> None:
    async with pipeline(service(fake.url)) as rig:
        await rig.send(TextFrame("Good "), TextFrame("morning."), *following)
        await rig.until_stopped(2)
    assert [rig.audio(context) for context in rig.contexts()] == [
        await spoken(fake.url, "Good morning."),
        await spoken(fake.url, "Yes?"),
    ]
    assert len(rig.of(LLMFullResponseEndFrame)) == 1 + isinstance(
        following[-1], LLMFullResponseEndFrame
    )


async def test_a_bare_text_is_complete_after_a_while(
    fake: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipecat, "_TEXT_SECONDS", 0.5)
    async with pipeline(service(fake.url)) as rig:
        await rig.send(TextFrame("Good morning."))
        await rig.until_stopped()
        await rig.until(lambda: rig.of(LLMFullResponseEndFrame))
        assert [frame.text for frame in words_of(rig)] == ["Good", "morning."]


async def test_a_reply_may_pause_for_longer(fake: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipecat, "_TEXT_SECONDS", 0.0)
    async with pipeline(service(fake.url)) as rig:
        await rig.send(LLMFullResponseStartFrame(), LLMTextFrame("One moment, "))
        await rig.until(lambda: words_of(rig))
        await rig.send(LLMTextFrame("please."), LLMFullResponseEndFrame())
        await rig.until_stopped()
    assert len(rig.contexts()) == 1


async def test_a_service_that_is_switched_back_to_owes_nothing(
    fake: Server, following: list[Frame]
) -> None:
    first, second = (service(fake.url) for _ in range(2))
    async with pipeline(ServiceSwitcher([first, second])) as rig:
        await rig.send(LLMFullResponseStartFrame(), LLMTextFrame("Good morning."))
        await rig.until(lambda: words_of(rig))
        await rig.send(ManuallySwitchServiceFrame(service=second), LLMFullResponseEndFrame())
        await rig.send(ManuallySwitchServiceFrame(service=first), *following)
        await rig.until_stopped(2)
    assert rig.audio(rig.contexts()[-1]) == await spoken(fake.url, "Yes?")
    assert not rig.errors
