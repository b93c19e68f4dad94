"""A voice is cloned from a WAV over HTTP on a small Base checkpoint, and speaks as text streams."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import pytest_asyncio

from realtime_tts import RealtimeTTS
from realtime_tts.client.voices import VoiceClient
from realtime_tts.engine.guards import GuardConfig
from realtime_tts.engine.settings import EngineConfig
from realtime_tts.errors import RequestError, TurnError
from tests.end_to_end.serving import serving
from tests.parity import PARITY
from tests.voices import recordings
from tts_scheduler import SchedulerConfig

pytestmark = pytest.mark.asyncio(loop_scope="module")

CHECKPOINT = PARITY / "tiny-base"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def url(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[str]:
    """A server with the engine in a thread of it; `test_cloned_parity.py` has it in a process."""
    config = EngineConfig(
        model=str(CHECKPOINT),
        voices_dir=str(tmp_path_factory.mktemp("voices")),
        max_frames=8,
        scheduler=SchedulerConfig(slots=2, utilisation=1_000),  # lets everybody in
        guards=GuardConfig(enabled=False),  # random weights may well repeat themselves
    )
    async with serving(config) as server:
        yield server.websocket_url.removesuffix("/v1/tts")


async def spoken(url: str, voice: str, **options: Any) -> bytes:
    async def deltas() -> AsyncIterator[str]:
        for piece in ("How are", " you do", "ing today", "?"):
            yield piece
            await asyncio.sleep(0.01)

    async with RealtimeTTS(url, voice=voice, seed=5, **options) as tts:
        return b"".join([packet async for packet in tts.speak(deltas())])


async def test_a_recording_becomes_a_voice_that_speaks_in_both_modes(url: str) -> None:
    client = VoiceClient(url)
    wav = recordings.encoded(recordings.voice(2.5, 16_000), 16_000)
    sound = await asyncio.to_thread(client.clone, "sound", wav)
    manner = await asyncio.to_thread(client.clone, "manner", wav, text="How are you doing today?")
    assert (sound["in_context"], manner["in_context"]) == (False, True)
    listed = await asyncio.to_thread(client.voices)
    assert sound["model"] == manner["model"] == listed["details"][0]["model"]
    for layout in ("streaming", "full_text"):
        heard = {v: await spoken(url, v, layout=layout) for v in ("sound", "manner")}
        assert min(map(len, heard.values())) > 10_000
        assert heard["sound"] != heard["manner"]
        assert await spoken(url, "sound", layout=layout) == heard["sound"]
    exported = await asyncio.to_thread(client.embedding, "sound")
    given = exported["embedding"]
    await asyncio.to_thread(client.register, "copy", given, model=exported["model"])
    assert await spoken(url, "copy", layout=layout) == heard["sound"]
    with pytest.raises(RequestError, match="embedding has 3 numbers"):
        await asyncio.to_thread(client.register, "short", [0.5, -0.5, 0.25])
    await asyncio.to_thread(client.register, "foreign", [0.5, -0.5, 0.25], model="another")
    with pytest.raises((RequestError, TurnError), match="embedding has 3 numbers"):
        await spoken(url, "foreign")
    await asyncio.to_thread(client.delete, "sound")
    with pytest.raises(RequestError, match="sound"):
        await spoken(url, "sound")


async def test_a_base_checkpoint_without_encoders_says_so_at_the_start_and_for_good(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "checkpoint"
    shutil.copytree(CHECKPOINT, folder)
    config = json.loads((folder / "config.json").read_text())
    del config["speaker_encoder_config"]
    (folder / "config.json").write_text(json.dumps(config))
    engine = EngineConfig(
        model=str(folder),
        voices_dir=str(tmp_path / "voices"),
        max_frames=12,
        scheduler=SchedulerConfig(slots=2),
    )
    wav = {"audio": ("ref", recordings.encoded(recordings.voice(2.5, 16_000), 16_000))}
    async with serving(engine) as server:
        said = [record.__dict__["fields"] for record in caplog.records if "clone" in record.msg]
        assert [one["reason"].count("no speaker_encoder_config") for one in said] == [1]
        async with httpx2.AsyncClient(
            base_url=server.url, trust_env=False, verify=False, timeout=60
        ) as http:
            for name in ("anna", "ben"):
                answer = await http.post("/v1/voices", data={"name": name}, files=wav)
                error = answer.json()
                assert (answer.status_code, error["code"]) == (409, "cannot_clone")
                assert not error["retryable"] and "retry-after" not in answer.headers
                assert "no speaker_encoder_config" in error["message"]
            given = await http.post("/v1/voices", json={"name": "anna", "embedding": [0.5] * 128})
            assert given.status_code == 201
        assert len(await spoken(server.websocket_url.removesuffix("/v1/tts"), "anna")) > 10_000


async def test_a_turn_without_a_voice_is_told_to_name_one(url: str) -> None:
    async with RealtimeTTS(url) as tts:
        with pytest.raises((TurnError, RequestError), match="name one of /v1/voices"):
            async for _ in tts.speak("Hello."):
                raise AssertionError("nobody spoke")
