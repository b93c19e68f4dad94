"""The framework's FallbackAdapter over two of our servers, one of which is down for a while."""

from __future__ import annotations

import asyncio
import socket

import pytest
from livekit.agents import APIConnectionError, APIConnectOptions
from livekit.agents.tts import FallbackAdapter

from realtime_tts.adapters.livekit import TTS
from tests.clients.livekit_rig import Way, assert_well_formed, collected, read, say
from tests.clients.serving import Server, serving

OPTIONS = APIConnectOptions(max_retry=0, retry_interval=0.0, timeout=60.0)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize("way", [say, read])
async def test_another_server_speaks_until_the_first_is_back(server: Server, way: Way) -> None:
    port = free_port()
    first, second = TTS(f"127.0.0.1:{port}"), TTS(server.url)
    adapter = FallbackAdapter([first, second], max_retry_per_tts=0)
    changes = collected(adapter, "tts_availability_changed")
    firsts, seconds = collected(first, "metrics_collected"), collected(second, "metrics_collected")

    assert_well_formed(await way(adapter, "Hello.", OPTIONS))
    assert [(change.tts, change.available) for change in changes] == [(first, False)]
    assert len(seconds) == 1 and not firsts

    with serving("--engine", "fake", "--port", str(port)):
        recovered = asyncio.Event()
        adapter.on("tts_availability_changed", lambda _: recovered.set())
        # A reply lets the adapter try the first server again, in the background; before
        # livekit-agents 1.7 a streamed one does not.
        await read(adapter, "Hello.", OPTIONS)
        await asyncio.wait_for(recovered.wait(), 60)
        assert [(change.tts, change.available) for change in changes[1:]] == [(first, True)]
        heard = len(firsts)
        assert_well_formed(await way(adapter, "Hello.", OPTIONS))
        assert len(firsts) == heard + 1
        await first.aclose()
    await adapter.aclose()
    await second.aclose()


async def test_where_all_servers_are_down_the_agent_is_told() -> None:
    speakers = [TTS(f"127.0.0.1:{free_port()}") for _ in range(2)]
    adapter = FallbackAdapter(list(speakers), max_retry_per_tts=0)
    with pytest.raises(APIConnectionError, match="all TTSs failed"):
        await say(adapter, ["Hello."], OPTIONS)
    await adapter.aclose()
    for speaker in speakers:
        await speaker.aclose()
