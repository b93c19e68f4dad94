"""The demo voice through OpenAI's client: the same speech as over the WebSocket."""

from __future__ import annotations

import asyncio
import io

import numpy as np
import pytest

from realtime_tts import RealtimeTTS
from realtime_tts.server.run import RunningServer
from tests.dialects.asking import openai

pytestmark = pytest.mark.asyncio(loop_scope="session")

TEXT = "The museum is open."


@pytest.fixture
def server(demo_server: RunningServer) -> RunningServer:
    return demo_server


async def asked(server: RunningServer, response_format: str, voice: str = "nova") -> bytes:
    async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none") as api:
        answer = await api.audio.speech.create(
            model="tts-1",
            voice=voice,
            input=TEXT,
            response_format=response_format,
            extra_body={"seed": 11},
        )
        return answer.content


def loudness(samples: np.ndarray, rate: int) -> np.ndarray:
    """Root mean square of each tenth of a second."""
    tenth = rate // 10
    whole = len(samples) // tenth * tenth
    return np.sqrt(np.mean(samples[:whole].astype(float).reshape(-1, tenth) ** 2, axis=1))


async def test_the_samples_are_those_of_the_native_protocol(server: RunningServer) -> None:
    options = {"voice": "ava", "seed": 11, "layout": "full_text"}  # a request is a whole text

    async def spoken() -> bytes:
        async with RealtimeTTS(server.websocket_url, **options) as tts:  # type: ignore[arg-type]
            return b"".join([packet async for packet in tts.speak([TEXT])])

    native, pcm, wav = await asyncio.gather(
        spoken(), asked(server, "pcm"), asked(server, "wav", "ava")
    )
    assert pcm == native, "nova is ava"
    assert wav[44:] == native


async def test_mp3_is_that_speech_compressed(server: RunningServer) -> None:
    av = pytest.importorskip("av")
    pcm, mp3 = await asyncio.gather(asked(server, "pcm"), asked(server, "mp3"))
    with av.open(io.BytesIO(mp3)) as container:
        frames = [frame.to_ndarray().ravel() for frame in container.decode(audio=0)]
    heard = np.concatenate(frames)
    heard = heard if heard.dtype == np.int16 else heard * 32_767
    said = np.frombuffer(pcm, dtype="<i2")
    assert 0 <= len(heard) - len(said) < 0.1 * 24_000
    delay = 1_105  # samples that the coder and the decoder add before the sound
    ours, theirs = loudness(said, 24_000), loudness(heard[delay:], 24_000)
    common = min(len(ours), len(theirs))
    assert np.corrcoef(ours[:common], theirs[:common])[0, 1] > 0.98
