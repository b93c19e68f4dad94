"""From a WAV file to speech, as a client meets it: cloned over HTTP, spoken over the WebSocket.

The recording, its transcript and the texts are those of the stored cases, so that what is heard is
the official package's waveform: encoders, voice file, registry, prompt and codec, all in one.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import httpx2
import numpy as np
import pytest
import pytest_asyncio

from realtime_tts import RealtimeTTS
from realtime_tts.audio.pcm import FULL_SCALE
from realtime_tts.engine.guards import GuardConfig
from realtime_tts.engine.settings import EngineConfig
from realtime_tts.errors import RequestError
from realtime_tts.server.run import RunningServer
from tests.end_to_end.serving import pieces, serving
from tests.parity import PARITY
from tests.voices import recordings
from tts_scheduler import SchedulerConfig

pytestmark = pytest.mark.asyncio(loop_scope="module")

BASE = PARITY / "tiny-base"
SAID = "How are you doing today?"
CASES = {"xvec_st": "anna", "xvec_ns": "anna", "icl_textshort_st": "ben", "icl_ns": "ben"}
GREEDY: Any = {"temperature": 0.0, "predictor": {"temperature": 0.0}}


@pytest.fixture(scope="module")
def stored() -> dict[str, Any]:
    with np.load(BASE.with_suffix(".npz")) as arrays:
        return dict(arrays)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningServer]:
    """With the longest way: the engine in a process of its own. What the engine makes of the cases
    after these frames is compared in `tests/engine/test_cloned_voices.py`."""
    config = EngineConfig(
        model=str(BASE),
        kind="process",
        max_frames=24,
        scheduler=SchedulerConfig(slots=4, utilisation=1_000),  # lets everybody in
        guards=GuardConfig(enabled=False),  # random weights may well repeat themselves
        voices_dir=str(tmp_path_factory.mktemp("voices")),
    )
    async with serving(config) as running:
        yield running


async def clone(server: RunningServer, name: str, wav: bytes, **fields: str) -> dict[str, Any]:
    async with httpx2.AsyncClient(
        base_url=server.url, trust_env=False, verify=False, timeout=60
    ) as http:
        files = {"audio": ("ref.wav", wav)}
        answer = await http.post("/v1/voices", data={"name": name, **fields}, files=files)
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


async def spoken(server: RunningServer, deltas: Sequence[str], **options: Any) -> Any:
    """Sound of a turn whose text arrives in pieces."""
    options |= {"text_filter": "off", "trim_silence": "off"}
    async with RealtimeTTS(server.websocket_url, **options) as tts:
        turn = await tts.turn()
        for delta in deltas:
            await turn.send(delta)
            await asyncio.sleep(0.002)
        await turn.end()
        pcm = b"".join([packet async for packet in turn])
    return np.frombuffer(pcm, "<i2")


async def test_a_voice_cloned_from_a_wav_speaks_streamed_text_in_both_modes(
    server: RunningServer, stored: dict[str, Any]
) -> None:
    """Random weights may end their speech before the stored one: up to there it is the same."""
    wav = recordings.encoded(stored["ref/samples"], subtype="FLOAT")
    with pytest.raises(RequestError, match="unknown voice 'anna'"):
        await spoken(server, ["Hello."], voice="anna")
    await clone(server, "anna", wav)
    await clone(server, "ben", wav, text=SAID, append_silence="false")
    cases = json.loads(str(stored["meta"]))["cases"]
    for seed, (name, voice) in enumerate(CASES.items()):
        case = cases[name]
        pcm = await spoken(
            server,
            pieces(case["text"], seed),
            voice=voice,
            language=case["language"],
            layout="full_text" if case["non_streaming_mode"] else "streaming",
            sampling={**GREEDY, "repetition_penalty": 1.05},
        )
        wanted = stored[f"{name}/wav"][: len(pcm)] * FULL_SCALE
        assert len(pcm) >= 1_920 and len(pcm) % 1_920 == 0, name
        assert np.abs(pcm - wanted).max() <= 0.5 + 1e-4 * FULL_SCALE, name


async def test_cloned_voices_differ_and_stay_what_they_are(server: RunningServer) -> None:
    """As usual: sampled, silence appended, in company; a deleted voice is unknown at once."""
    wav = recordings.encoded(recordings.voice())
    await clone(server, "cara", wav)
    await clone(server, "dan", wav, text=SAID)
    text = "She said she would be here by noon, and that we should not wait for her."

    async def say(voice: str, seed: int) -> Any:
        options = {"voice": voice, "seed": 7, "layout": "streaming"}
        return await spoken(server, pieces(text, seed), **options)

    alone = [await say(voice, 1) for voice in ("cara", "dan")]
    together = await asyncio.gather(*(say(voice, 2) for voice in ("cara", "dan")))
    for ours, theirs in zip(together, alone, strict=True):
        assert len(ours) and np.array_equal(ours, theirs)
    assert not np.array_equal(*(one[: min(map(len, alone))] for one in alone))
    async with httpx2.AsyncClient(base_url=server.url, trust_env=False, verify=False) as http:
        assert (await http.delete("/v1/voices/dan")).status_code == 204
    with pytest.raises(RequestError, match="unknown voice 'dan'"):
        await say("dan", 1)
