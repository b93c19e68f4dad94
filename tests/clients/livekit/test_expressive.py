"""Tags that a language model writes in expressive mode: the server's to understand, not ours."""

from __future__ import annotations

import pytest

from realtime_tts.adapters.livekit import TTS
from tests.clients.livekit.stand_in import Peer, stand_in
from tests.clients.livekit_rig import Way, read, say

TAGGED = '<expression value="excited"/>Oh! <break time="300ms"/>We are <emotion value="calm"/>open.'


@pytest.mark.parametrize("way", [say, read])
async def test_tags_come_to_the_server_as_they_were_written(way: Way) -> None:
    heard: list[str] = []

    async def script(peer: Peer) -> None:
        turn_id, text = await peer.text()
        heard.append(text)
        await peer.send("turn.started", turn_id, layout="streaming")
        await peer.audio(7, 4_800)
        await peer.done(turn_id, "complete", 4_800, len(text))
        await peer.socket.wait_closed()

    pieces = [TAGGED[at : at + 7] for at in range(0, len(TAGGED), 7)]
    async with stand_in(script) as url, TTS(url) as speaker:
        assert await way(speaker, pieces if way is say else TAGGED)
    assert heard == [TAGGED]
