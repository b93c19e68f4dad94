"""Somebody's plugins for LiveKit, and turns with them; plugins/test_livekit.py is the suite."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import pytest
from livekit.agents import APIStatusError
from livekit.agents.tts import TTS, ChunkedStream, SynthesizeStream

from tests.clients.livekit_rig import ONCE, TEXT, Events, read, say, seconds
from tests.clients.serving import Server

LONG = " ".join([TEXT] * 6)

Make = Callable[..., Any]
"""Makes the plugin, as make(server, **options)."""


@dataclass(frozen=True)
class Plugin:
    """A plugin, told nothing but another address.

    `make(server, session, **options)`; `ways`: options that a conversation is held with, each;
    `plain`: those of the other tests; `default`: those that name the plugin's own voice; `words`:
    whether the text comes with the sound; `cut_off_as`: as what the server counts a turn that was
    cut off; `endless`: a text that goes on for longer than a test.
    """

    name: str
    make: Callable[..., TTS]
    default: Mapping[str, Any]
    ways: Sequence[Mapping[str, Any]] = ({},)
    plain: Mapping[str, Any] = field(default_factory=dict)
    words: bool = False
    cut_off_as: str = "closed"
    endless: str = LONG + " "


@contextlib.asynccontextmanager
async def makes(plugin: Plugin, server: Server) -> AsyncIterator[Make]:
    """Makes `plugin`, for `server` where no other is named; what was made is closed at the end."""
    made: list[TTS] = []
    async with aiohttp.ClientSession() as session:

        def one(of: Server = server, **options: Any) -> TTS:
            made.append(plugin.make(of, session, **options))
            return made[-1]

        yield one
        for each in made:
            await each.aclose()


def fixtures(plugins: Sequence[Plugin]) -> tuple[Any, Any]:
    """For a module's tests: `plugin`, each of them, and `make`, which makes it."""

    @pytest.fixture(params=plugins, ids=lambda plugin: plugin.name)
    def plugin(request: pytest.FixtureRequest) -> Any:
        return request.param

    @pytest.fixture
    async def make(plugin: Plugin, server: Server) -> AsyncIterator[Make]:
        async with makes(plugin, server) as found:
            yield found

    return plugin, make


def is_speech(events: Events, text: str = TEXT) -> bool:
    return 0.03 * len(text) < seconds(events) < 0.2 * len(text)


async def refusal(speech: Awaitable[Events]) -> APIStatusError:
    """The error that comes instead."""
    with pytest.raises(APIStatusError) as caught:
        await speech
    return caught.value


async def spoken(tts: TTS, *deltas: str) -> Events:
    """In a stream; whole where the plugin has no streams."""
    return await (say(tts, deltas) if tts.capabilities.streaming else read(tts, "".join(deltas)))


def begun(tts: TTS, text: str) -> SynthesizeStream | ChunkedStream:
    """The same with a text that does not end."""
    if not tts.capabilities.streaming:
        return tts.synthesize(text, conn_options=ONCE)
    stream = tts.stream(conn_options=ONCE)
    stream.push_text(text)
    return stream


async def three_turns(tts: TTS, *deltas: str) -> None:
    for _ in range(3):
        events = await spoken(tts, *deltas)
        assert is_speech(events)
        assert len({event.request_id for event in events}) == 1 and events[-1].is_final
