"""Two checkpoints in one server, over real sockets: each with its voices and its tokenizer."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
import websockets
from msgspec.structs import replace

from realtime_tts.config import ServerConfig
from realtime_tts.engine.fake import VOICES, FakeEngine, FakeEngineConfig
from realtime_tts.engine.in_process import InProcessEngine
from realtime_tts.engine.interface import EngineInfo, UtteranceSpec
from realtime_tts.engine.models import Models
from realtime_tts.errors import RequestError
from realtime_tts.server.run import RunningServer, running
from realtime_tts.text.stable_bpe import ALPHABET
from realtime_tts.text.tokenizer import Qwen2Tokenizer
from realtime_tts.voices.library import VoiceLibrary
from realtime_tts.voices.maker import load_fake
from tests.voices import recordings
from tts_scheduler import SchedulerConfig


class Custom(FakeEngine):
    """Has speakers and clones nothing."""

    @property
    def info(self) -> EngineInfo:
        return replace(super().info, model="custom", variant="custom_voice", voice_family="")

    def check(self, spec: UtteranceSpec) -> None:
        if spec.voice and spec.voice not in VOICES:
            raise RequestError("no such speaker")


class Base(FakeEngine):
    """Speaks with registered voices and has no speakers."""

    @property
    def info(self) -> EngineInfo:
        told = {"model": "base", "variant": "base", "voices": (), "default_voice": None}
        return replace(super().info, **told, voice_numbers=64)

    def check(self, spec: UtteranceSpec) -> None:
        if not spec.voice:
            raise RequestError("name a voice")
        super().check(spec)


def tokenizer(first: int) -> Qwen2Tokenizer:
    """One token a byte, counted from `first`, so that a test can tell whose ids they are."""
    return Qwen2Tokenizer({char: first + index for index, char in enumerate(ALPHABET)}, [])


class Both:
    def __init__(self, server: RunningServer, given: dict[str, list[int]]) -> None:
        self.server, self.given = server, given

    async def speak(self, query: str) -> dict[str, Any]:
        """One short turn; its `ready`."""
        async with websockets.connect(self.server.websocket_url + query) as socket:
            ready = json.loads(await socket.recv())
            await socket.send('{"type": "text", "text": "Hi.", "end": true}')
            async for message in socket:
                if isinstance(message, str) and json.loads(message)["type"] == "turn.done":
                    done = json.loads(message)
                    assert done["reason"] == "complete" and done["samples"] > 0
                    return dict(ready)
        raise AssertionError("no turn.done")


def giving(engine: FakeEngine) -> Callable[[Any], FakeEngine]:
    """Loads it."""
    return lambda progress: engine


@pytest.fixture
async def both(tmp_path: Path) -> AsyncIterator[Both]:
    library = VoiceLibrary(tmp_path, load_fake)
    config = FakeEngineConfig(frames_per_token=1)
    engines = {"custom": Custom(config), "base": Base(config, library.registry.has)}
    given: dict[str, list[int]] = {name: [] for name in engines}
    for name, engine in engines.items():
        append = engine.append

        def spy(id: str, ids: Any, name: str = name, append: Any = append) -> None:
            given[name] += ids
            append(id, ids)

        engine.append = spy  # type: ignore[method-assign, assignment]
    links = {
        name: InProcessEngine(giving(engine), SchedulerConfig(slots=4))
        for name, engine in engines.items()
    }
    models = Models(links, lambda voice: "fake" if library.registry.has(voice) else None)
    tokenizers = {"custom": lambda: tokenizer(0), "base": lambda: tokenizer(1000)}
    async with running(ServerConfig(port=0), models, tokenizers, voices=library) as server:
        yield Both(server, given)


async def test_a_session_s_voice_or_model_picks_the_checkpoint(both: Both) -> None:
    async with httpx2.AsyncClient(base_url=both.server.url, trust_env=False, verify=False) as http:
        files = {"audio": ("ref", recordings.encoded(recordings.voice()))}
        made = await http.post("/v1/voices", data={"name": "anna"}, files=files)
        assert made.status_code == 201, made.text
        about = (await http.get("/v1/voices")).json()
    assert about["models"] == [
        {"model": "custom", "variant": "custom_voice", "instructions": True},
        {"model": "base", "variant": "base", "instructions": True},
    ]
    assert about["clones"] is True
    assert {voice["id"]: voice["kind"] for voice in about["details"]}["anna"] == "registered"
    ready = await both.speak("?voice=anna")
    assert ready["models"] == ["custom", "base"] and "anna" in ready["voices"]
    assert not both.given["custom"] and min(both.given["base"]) >= 1000
    both.given["base"].clear()
    await both.speak("?voice=alto")
    assert not both.given["base"] and max(both.given["custom"]) < 1000
    both.given["custom"].clear()
    ready = await both.speak("?model=base&voice=anna")
    assert not both.given["custom"] and both.given["base"]
    assert (ready["settings"]["model"], ready["settings"]["voice"]) == ("base", "anna")


async def test_an_embedding_has_the_length_that_its_checkpoint_takes(both: Both) -> None:
    async with httpx2.AsyncClient(base_url=both.server.url, trust_env=False, verify=False) as http:

        async def give(name: str, numbers: int, **model: str) -> httpx2.Response:
            body = {"name": name, "embedding": [0.5] * numbers, **model}
            return await http.post("/v1/voices", json=body)

        for model in ({}, {"model": "fake"}):
            refused = await give("anna", 3, **model)
            assert (refused.status_code, refused.json()["code"]) == (400, "bad_request")
            assert "its embedding has 3 numbers" in refused.json()["message"]
        assert (await give("anna", 64)).status_code == 201
        assert (await give("ben", 3, model="of another server")).status_code == 201


async def test_a_session_may_name_its_voice_later_but_a_turn_needs_one(both: Both) -> None:
    async with websockets.connect(both.server.websocket_url + "?model=base") as socket:
        assert json.loads(await socket.recv())["type"] == "ready"
        await socket.send('{"type": "text", "text": "Hi.", "end": true}')
        error, done = json.loads(await socket.recv()), json.loads(await socket.recv())
        assert (error["code"], error["message"]) == ("bad_request", "name a voice")
        assert (done["type"], done["reason"]) == ("turn.done", "error")


async def test_what_the_checkpoint_cannot_do_is_a_bad_setting(both: Both) -> None:
    for query, says in (("?model=huge", "custom, base"), ("?model=custom&voice=anna", "speaker")):
        async with websockets.connect(both.server.websocket_url + query) as socket:
            error = json.loads(await socket.recv())
            assert error["code"] == "bad_settings" and says in error["message"]
