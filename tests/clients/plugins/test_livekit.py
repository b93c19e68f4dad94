"""What every TTS for LiveKit must stand, whoever made it: conversations with the plugins of this
environment, told nothing but another address. `REALTIME_TTS_CLIENT` names their folder."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
from livekit.agents.types import USERDATA_TIMED_TRANSCRIPT

from tests.clients.livekit_rig import DELTAS, TEXT, read, seconds, until_audio
from tests.clients.livekit_turns import (
    Make,
    Plugin,
    begun,
    fixtures,
    is_speech,
    refusal,
    spoken,
    three_turns,
)
from tests.clients.serving import Server, serving

CLIENT = os.environ["REALTIME_TTS_CLIENT"]
PLUGINS: list[Plugin] = import_module(f"tests.clients.{CLIENT}.test_livekit").PLUGINS
WAYS = [
    pytest.param(plugin, way, id=f"{plugin.name}-{'-'.join(map(str, way.values()))}")
    for plugin in PLUGINS
    for way in plugin.ways
]

plugin, make = fixtures(PLUGINS)


@pytest.mark.parametrize(("plugin", "way"), WAYS, indirect=["plugin"])
async def test_three_turns(make: Make, way: dict[str, Any]) -> None:
    await three_turns(make(**way), *DELTAS)


@pytest.mark.parametrize(("plugin", "way"), WAYS, indirect=["plugin"])
async def test_a_text_that_is_whole(make: Make, way: dict[str, Any]) -> None:
    assert is_speech(await read(make(**way), TEXT))


async def test_every_word_comes_as_it_was_written_when_it_is_heard(
    plugin: Plugin, make: Make
) -> None:
    """With its spaces."""
    if not plugin.words:
        pytest.skip("this plugin tells nobody when a word is heard")
    events = await spoken(make(), *DELTAS)
    timed = [
        word for event in events for word in event.frame.userdata.get(USERDATA_TIMED_TRANSCRIPT, [])
    ]
    assert "".join(timed).strip() == TEXT and len(timed) == len(TEXT.split())
    starts = [word.start_time for word in timed]
    assert starts == sorted(starts)
    assert 0.7 < starts[-1] / seconds(events) < 1


async def test_a_barge_in_and_the_next_turn(plugin: Plugin, make: Make, server: Server) -> None:
    series = f'tts_turns_total{{reason="{plugin.cut_off_as}"}}'
    counted = await asyncio.to_thread(server.value, series)
    tts = make(**plugin.plain)
    async with begun(tts, plugin.endless) as stream:
        await until_audio(stream)
    assert is_speech(await spoken(tts, *DELTAS))
    await asyncio.to_thread(server.until, series, counted + 1)
    await asyncio.to_thread(server.until, "tts_open_turns", 0)


@pytest.fixture(scope="module")
def pinging_server() -> Iterator[Server]:
    with serving("--ping-interval", "0.3", "--ping-timeout", "0.7") as found:
        yield found


async def test_a_turn_after_a_pause_needs_no_second_attempt(
    plugin: Plugin, make: Make, pinging_server: Server
) -> None:
    """Its socket was in the plugin's pool, where nobody reads it and answers pings."""
    tts = make(pinging_server, **plugin.plain)
    assert is_speech(await spoken(tts, *DELTAS))
    await asyncio.sleep(2)
    assert is_speech(await spoken(tts, *DELTAS))


async def test_streams_in_parallel(plugin: Plugin, make: Make) -> None:
    tts = make(**plugin.plain)
    short, long, again = await asyncio.gather(
        spoken(tts, "Yes."), spoken(tts, *DELTAS), spoken(tts, "Yes.")
    )
    assert min(seconds(short), seconds(again)) > 0
    assert seconds(long) > 2 * max(seconds(short), seconds(again))


async def test_text_with_nothing_to_speak(make: Make) -> None:
    assert 0 < seconds(await spoken(make(), "…")) < 0.5


async def test_the_plugin_s_own_voice_is_the_default(plugin: Plugin, make: Make) -> None:
    assert is_speech(await spoken(make(**plugin.default), *DELTAS))


async def test_the_key_is_checked(make: Make, keyed_server: Server) -> None:
    assert is_speech(await spoken(make(keyed_server), *DELTAS))
    wrong = make(keyed_server, api_key="wrong")
    assert (await refusal(spoken(wrong, *DELTAS))).status_code == 401


async def test_a_busy_server_says_so(make: Make, busy_server: Server) -> None:
    assert (await refusal(spoken(make(busy_server), *DELTAS))).status_code == 503
