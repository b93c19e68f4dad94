"""What every TTS for LiveKit must stand, whoever made it: conversations with plugins."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

import pytest
from livekit.agents import APIStatusError
from livekit.agents.tts import TTS, ChunkedStream, SynthesizeStream
from livekit.agents.types import USERDATA_TIMED_TRANSCRIPT

from tests.clients.livekit_rig import DELTAS, ONCE, TEXT, Events, read, say, seconds, until_audio
from tests.clients.serving import Server

__all__ = [
    "LONG", "TEXT", "all_closed", "barge_in_and_next_turn", "busy_server_says_so", "is_speech",
    "key_is_checked", "nothing_to_speak", "read", "refusal", "say", "streams_in_parallel",
    "three_turns", "words_in_time",
]  # fmt: skip

LONG = " ".join([TEXT] * 6)

AnyTTS = TypeVar("AnyTTS", bound=TTS)


@contextlib.asynccontextmanager
async def all_closed(make: Callable[..., AnyTTS]) -> AsyncIterator[Callable[..., AnyTTS]]:
    """`make`; what it made is closed at the end."""
    made: list[AnyTTS] = []

    def one(*args: object, **options: object) -> AnyTTS:
        made.append(make(*args, **options))
        return made[-1]

    yield one
    for each in made:
        await each.aclose()


def is_speech(events: Events, text: str = TEXT) -> bool:
    return 0.03 * len(text) < seconds(events) < 0.2 * len(text)


async def refusal(speech: Awaitable[Events]) -> APIStatusError:
    """The error that comes instead."""
    with pytest.raises(APIStatusError) as caught:
        await speech
    return caught.value


async def _spoken(tts: TTS, *deltas: str) -> Events:
    """In a stream; whole where the plugin has no streams."""
    return await (say(tts, deltas) if tts.capabilities.streaming else read(tts, "".join(deltas)))


def _begun(tts: TTS, text: str) -> SynthesizeStream | ChunkedStream:
    """The same with a text that does not end."""
    if not tts.capabilities.streaming:
        return tts.synthesize(text, conn_options=ONCE)
    stream = tts.stream(conn_options=ONCE)
    stream.push_text(text)
    return stream


# What every plugin must stand.


async def three_turns(tts: TTS) -> None:
    for _ in range(3):
        events = await _spoken(tts, *DELTAS)
        assert is_speech(events)
        assert len({event.request_id for event in events}) == 1 and events[-1].is_final


async def words_in_time(tts: TTS) -> None:
    """Every word as it was written, with its spaces, when it is heard."""
    events = await _spoken(tts, *DELTAS)
    timed = [
        word for event in events for word in event.frame.userdata.get(USERDATA_TIMED_TRANSCRIPT, [])
    ]
    assert "".join(timed).strip() == TEXT and len(timed) == len(TEXT.split())
    starts = [word.start_time for word in timed]
    assert starts == sorted(starts)
    assert 0.7 < starts[-1] / seconds(events) < 1


async def barge_in_and_next_turn(
    tts: TTS, server: Server, reason: str, text: str = LONG + " "
) -> None:
    """`reason`: as what the server counts the turn that was cut off."""
    series = f'tts_turns_total{{reason="{reason}"}}'
    counted = await asyncio.to_thread(server.value, series)
    async with _begun(tts, text) as stream:
        await until_audio(stream)
    assert is_speech(await _spoken(tts, *DELTAS))
    await asyncio.to_thread(server.until, series, counted + 1)
    await asyncio.to_thread(server.until, "tts_open_turns", 0)


async def streams_in_parallel(tts: TTS) -> None:
    short, long, again = await asyncio.gather(
        _spoken(tts, "Yes."), _spoken(tts, *DELTAS), _spoken(tts, "Yes.")
    )
    assert min(seconds(short), seconds(again)) > 0
    assert seconds(long) > 2 * max(seconds(short), seconds(again))


async def nothing_to_speak(tts: TTS) -> None:
    assert 0 < seconds(await _spoken(tts, "…")) < 0.5


async def key_is_checked(make: Callable[..., TTS], keyed: Server) -> None:
    assert is_speech(await _spoken(make(keyed), *DELTAS))
    wrong = make(keyed, api_key="wrong")
    assert (await refusal(_spoken(wrong, *DELTAS))).status_code == 401


async def busy_server_says_so(tts: TTS) -> None:
    assert (await refusal(_spoken(tts, *DELTAS))).status_code == 429
