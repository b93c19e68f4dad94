"""Settings updates that follow on each other before the server has answered."""

from __future__ import annotations

import pytest
from pipecat.frames.frames import TTSSpeakFrame, TTSUpdateSettingsFrame

from tests.clients.pipecat.our_service import Settings, service
from tests.clients.pipecat_rig import pipeline
from tests.clients.serving import Server


@pytest.mark.parametrize("connected", [False, True])
async def test_a_refused_update_takes_no_other_with_it(fake: Server, connected: bool) -> None:
    tts = service(fake.url, settings=Settings(voice="alto"))
    updates = [Settings(voice=name) for name in ("nobody", "nobody else")]
    async with pipeline(tts) as rig:
        if connected:
            await rig.send(TTSSpeakFrame("One."))
            await rig.until_stopped()
        for delta in (*updates, Settings(speed=1.2)):
            await rig.send(TTSUpdateSettingsFrame(delta=delta))
        await rig.send(TTSSpeakFrame("Two."))
        await rig.until_stopped(2 if connected else 1)
        assert (tts.settings.voice, tts.settings.speed) == ("alto", 1.2)
        await rig.send(TTSUpdateSettingsFrame(delta=Settings(voice="tenor")))
        await rig.send(TTSSpeakFrame("Three."))
        await rig.until_stopped(3 if connected else 2)
        assert tts._link.client.ready.settings.voice == "tenor"
        assert tts._link.client.ready.settings.speed == 1.2
    assert len(rig.errors) == 2 and all("unknown voice" in each.error for each in rig.errors)
