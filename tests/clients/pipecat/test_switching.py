"""Two of our services in Pipecat's ServiceSwitcher."""

from __future__ import annotations

import pytest
from pipecat.frames.frames import (
    LLMFullResponseEndFrame,
    LLMFullResponseStartFrame,
    LLMTextFrame,
    ManuallySwitchServiceFrame,
)
from pipecat.pipeline.service_switcher import ServiceSwitcher
from pipecat.services.tts_service import TextAggregationMode

from tests.clients.pipecat.our_service import service
from tests.clients.pipecat.test_service import TEXT, spoken
from tests.clients.pipecat_rig import pipeline, response
from tests.clients.serving import Server


@pytest.mark.parametrize("mode", list(TextAggregationMode))
async def test_who_takes_over_in_mid_reply_speaks_the_rest_and_what_follows(
    fake: Server, mode: TextAggregationMode
) -> None:
    first, second = (service(fake.url, text_aggregation_mode=mode) for _ in range(2))
    async with pipeline(ServiceSwitcher([first, second])) as rig:
        await rig.send(LLMFullResponseStartFrame(), LLMTextFrame(TEXT))
        await rig.send(ManuallySwitchServiceFrame(service=second))
        await rig.send(LLMTextFrame("And "), LLMTextFrame("so on."), LLMFullResponseEndFrame())
        await rig.send(*response(TEXT))
        await rig.until(lambda: len(rig.of(LLMFullResponseEndFrame)) == 2)
    assert not rig.errors
    space = " " if mode is TextAggregationMode.SENTENCE else ""
    rest, following = (rig.audio(context) for context in rig.contexts()[-2:])
    assert rest == await spoken(fake.url, f"And so on.{space}")
    assert following == await spoken(fake.url, f"{TEXT}{space}")
