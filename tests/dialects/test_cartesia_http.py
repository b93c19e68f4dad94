"""Cartesia's API over HTTP: bytes, events, and the list of voices."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import httpx2
import pytest

from realtime_tts.config import ServerConfig
from realtime_tts.engine.fake import FakeEngineConfig
from tests.dialects.asking import SLOW, fail_midway
from tests.dialects.cartesian import RAW, VOICE
from tests.dialects.tones import FRAME, TENTH
from tests.server.asking import answer_to
from tests.server.speaking import speaking

TEXT = "Hello there, how are you?"
ASKED = {"model_id": "sonic-3", "transcript": TEXT, "voice": VOICE, "output_format": RAW}


async def post(server: Any, path: str, **fields: Any) -> httpx2.Response:
    return await answer_to(server, "POST", path, json=ASKED | fields)


async def get(server: Any, path: str, **options: Any) -> httpx2.Response:
    return await answer_to(server, "GET", path, **options)


def events(response: httpx2.Response) -> list[dict[str, Any]]:
    lines = [line for line in response.text.splitlines() if line.startswith("data: ")]
    return [json.loads(line.removeprefix("data: ")) for line in lines]


async def test_bytes_are_the_sound() -> None:
    async with speaking() as server:
        response = await post(server, "/tts/bytes")
        assert response.status_code == 200
        assert response.headers["content-type"] == "audio/pcm"
        assert len(response.content) == len(TEXT) * FRAME
        wav = await post(server, "/tts/bytes", output_format=RAW | {"container": "wav"})
        assert wav.content.startswith(b"RIFF") and wav.headers["content-type"] == "audio/wav"
        nothing = await post(server, "/tts/bytes", transcript="…")
        assert nothing.content == TENTH
        await server.settled()


@pytest.mark.parametrize(
    ("encoding", "sample_rate", "frame"),
    [("pcm_mulaw", 8_000, 640), ("pcm_f32le", 16_000, 5_120), ("pcm_s16le", 48_000, 7_680)],
)
async def test_sound_comes_in_other_encodings_and_rates(
    encoding: str, sample_rate: int, frame: int
) -> None:
    """80 ms of each; resampling adds no sample and loses none."""
    wanted = {"container": "raw", "encoding": encoding, "sample_rate": sample_rate}
    async with speaking() as server:
        response = await post(server, "/tts/bytes", output_format=wanted)
        assert len(response.content) == len(TEXT) * frame


async def test_events_are_chunks_times_and_done() -> None:
    async with speaking() as server:
        response = await post(server, "/tts/sse", add_timestamps=True, context_id="mine")
        seen = events(response)
        assert {event["context_id"] for event in seen} == {"mine"}
        chunks = [base64.b64decode(event["data"]) for event in seen if event["type"] == "chunk"]
        assert len(b"".join(chunks)) == len(TEXT) * FRAME
        words, last = [], 0.0
        for event in seen:
            times = event.get("word_timestamps", {"words": [], "end": []})
            words += times["words"]
            for end in times["end"]:
                assert last <= end <= len(TEXT) * 0.08 + 1e-3
                last = end
        assert words == TEXT.split()
        assert seen[-1]["type"] == "done" and seen[-1]["done"] is True
        assert len(events(await post(server, "/tts/sse"))) == len(chunks) + 1


async def test_silence_in_a_stall_moves_the_times_of_what_follows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("realtime_tts.server.speech.STALL_SECONDS", 0.02)
    engine = FakeEngineConfig(frames_per_token=1, step_seconds=0.06)
    async with speaking(engine=engine) as server:
        text = "One two three."
        seen = events(await post(server, "/tts/sse", transcript=text, add_timestamps=True))
        heard, words, last = 0.0, [], 0.0
        for event in seen:
            if event["type"] == "chunk":
                heard += len(base64.b64decode(event["data"])) / 48_000
            times = event.get("word_timestamps", {"words": [], "end": []})
            words += times["words"]
            for end in times["end"]:
                assert last <= end <= heard + 1e-3
                last = end
        assert words == text.split()
        assert heard > len(text) * 0.08 + 0.1, "there was no stall"
        assert last > len(text) * 0.08 + 0.1, "the times know nothing of the silence"


@pytest.mark.parametrize("path", ["/tts/bytes", "/tts/sse"])
@pytest.mark.parametrize(
    ("fields", "names"),
    [
        ({"transcript": ""}, "transcript"),
        ({"transcript": "a" * 20_000}, "16384"),
        ({"voice": "nobody"}, "alto"),
        ({"output_format": RAW | {"sample_rate": 7}}, "7"),
        ({"speed": []}, "`speed` must be a number"),
        ({"model_id": 7}, "`model_id` must be a string"),
    ],
)
async def test_what_is_wrong_has_a_status(path: str, fields: dict[str, Any], names: str) -> None:
    async with speaking() as server:
        response = await post(server, path, **fields)
        assert response.status_code == 400
        body = response.json()
        assert names in body["message"] and body["title"] == "Bad request"
        assert response.headers["x-request-id"] == body["request_id"]
        assert server.running.front.sessions == 0


DEEP = b'{"transcript": "a", "x": ' + b'{"a": ' * 700 + b"1" + b"}" * 701


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"\xff", b"x" * 400_000, DEEP])
async def test_bodies_that_are_none(body: bytes) -> None:
    async with speaking() as server:
        response = await answer_to(server, "POST", "/tts/bytes", content=body)
        assert response.status_code == 400 and response.json()["message"]


async def test_a_failure_among_events_is_an_event() -> None:
    async with speaking(engine=SLOW) as server:
        asked = asyncio.create_task(post(server, "/tts/sse", transcript=TEXT * 5))
        await fail_midway(server)
        last = events(await asked)[-1]
        assert last["type"] == "error" and last["status_code"] >= 500 and last["done"] is False


async def test_voices_come_in_pages_or_as_a_list() -> None:
    async with speaking() as server:
        page = (await get(server, "/voices")).json()
        assert [voice["id"] for voice in page["data"]] == ["alto", "bass", "soprano", "tenor"]
        assert page["has_more"] is False and page["next_page"] is None
        first = (await get(server, "/voices", params={"limit": 3})).json()
        assert first["has_more"] and first["next_page"] == "soprano"
        rest = (await get(server, "/voices", params={"starting_after": "soprano"})).json()
        assert [voice["id"] for voice in rest["data"]] == ["tenor"]
        found = (await get(server, "/voices", params={"q": "BA"})).json()
        assert [voice["id"] for voice in found["data"]] == ["bass"]
        old = await get(server, "/voices", headers={"Cartesia-Version": "2024-06-10"})
        assert [voice["id"] for voice in old.json()] == ["alto", "bass", "soprano", "tenor"]
        assert (await get(server, "/voices/alto")).json()["name"] == "alto"
        wrong = await post(server, "/voices")
        assert wrong.status_code == 405 and wrong.headers["allow"] == "GET, HEAD"
        assert (await answer_to(server, "HEAD", "/voices")).status_code == 200
        missing = await get(server, "/voices/nobody")
        assert missing.status_code == 404 and "nobody" in missing.json()["message"]


async def test_keys_guard_all_of_it() -> None:
    key = "sesame-open-12345"
    async with speaking(ServerConfig(port=0, api_keys=(key,))) as server:
        denied = await post(server, "/tts/bytes")
        assert denied.status_code == 401 and denied.json()["error_code"] == "unauthorized"
        assert (await get(server, "/voices")).status_code == 401
        assert (await get(server, "/voices", params={"api_key": key})).status_code == 200
        assert (await get(server, "/voices", headers={"X-API-Key": key})).status_code == 200
