"""Whoever gets sound is told that it is synthetic and what made it; the sound may say it, too."""

from __future__ import annotations

import io
from contextlib import AbstractAsyncContextManager
from typing import Any

import numpy as np
import pytest

from realtime_tts.audio.encoders import Encoder
from realtime_tts.audio.formats import SYNTHETIC, parse_format
from realtime_tts.config import ServerConfig
from realtime_tts.version import __version__
from tests.audio.sounds import samples_of, voice
from tests.dialects.cartesian import RAW, cartesian
from tests.dialects.deepgrams import aura, flux
from tests.dialects.elevens import eleven
from tests.dialects.omni import omni
from tests.dialects.plain import plain
from tests.dialects.qwen_realtime import qwen_realtime
from tests.server.asking import answer_to
from tests.server.speaking import speaking
from tests.server.talking import sound_of

TOLD = f'mode=ai-originated, model="fake", provider="realtime-tts {__version__}"'
TEXT = "Hello."


def native(server: Any) -> AbstractAsyncContextManager[Any]:
    talk: AbstractAsyncContextManager[Any] = server.talk()
    return talk


@pytest.mark.parametrize(
    "connect", [native, plain, eleven, cartesian, aura, flux, omni, qwen_realtime]
)
async def test_the_upgrade_of_every_socket_says_that_its_sound_is_synthetic(connect: Any) -> None:
    async with speaking() as server, connect(server) as client:
        answer = client.socket.response
        assert answer.headers["ai-disclosure"] == TOLD


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/audio/speech", {"input": TEXT, "voice": "alto", "response_format": "pcm"}),
        ("/v1/text-to-speech/alto/stream?output_format=pcm_24000", {"text": TEXT}),
        ("/v1/text-to-speech/alto/with-timestamps?output_format=pcm_24000", {"text": TEXT}),
        ("/tts/bytes", {"transcript": TEXT, "output_format": RAW}),
        ("/tts/sse", {"transcript": TEXT, "output_format": RAW}),
        ("/v1/speak?encoding=linear16&container=none", {"text": TEXT}),
    ],
)
async def test_every_answer_with_sound_says_that_it_is_synthetic(
    path: str, body: dict[str, Any]
) -> None:
    async with speaking() as server:
        answer = await answer_to(server, "POST", path, json=body)
    assert answer.status_code == 200 and answer.content
    assert answer.headers["ai-disclosure"] == TOLD


@pytest.mark.parametrize("marking", ["off", "watermark"])
async def test_ready_says_what_the_sound_is_and_how_it_is_marked(marking: Any) -> None:
    async with speaking(ServerConfig(port=0, marking=marking)) as server, server.talk() as talker:
        await talker.send("session.start")
        ready = await talker.next()
    assert ready["digital_source_type"] == "trainedAlgorithmicMedia"
    assert ready["marking"] == marking and ready["model"] == "fake"


async def sound(server: Any, query: str = "") -> bytes:
    async with server.talk("?seed=3&lead_ms=30000" + query) as talker:
        await talker.send("text", text="The tide is coming in.", end=True)
        messages = await talker.until("turn.done")
    made = sound_of(messages)
    assert messages[-1]["samples"] == len(made) // 2
    return made


async def test_a_server_that_marks_changes_all_sound_and_its_length_by_nothing() -> None:
    async with speaking() as server:
        before = samples_of(await sound(server))
    async with speaking(ServerConfig(port=0, marking="watermark")) as server:
        native = samples_of(await sound(server))
        asked = {"input": TEXT, "voice": "alto", "response_format": "pcm"}
        answer = await answer_to(server, "POST", "/v1/audio/speech", json=asked)
    assert len(native) == len(before) and not np.array_equal(native, before)
    assert 10 * np.log10((before**2).sum() / ((native - before) ** 2).sum()) > 20
    assert answer.status_code == 200 and len(answer.content) % 3_840 == 0


@pytest.mark.parametrize("name", ["opus", "webm", "flac"])
def test_files_with_room_for_a_comment_say_it_themselves(name: str) -> None:
    av = pytest.importorskip("av")
    encoder = Encoder(parse_format(name))
    data = encoder.encode(voice(0.5, -20)) + encoder.finish()
    with av.open(io.BytesIO(data)) as file:
        tags = {**file.metadata, **file.streams.audio[0].metadata}
    assert SYNTHETIC in tags.values()
