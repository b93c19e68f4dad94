"""ElevenLabs' API over HTTP: speech, with and without times, voices and models."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import httpx2
import pytest

from realtime_tts.config import ServerConfig
from tests.dialects.asking import SLOW, fail_midway
from tests.dialects.tones import FRAME, TENTH
from tests.server.asking import answer_to
from tests.server.speaking import speaking

TEXT = "Hello there, how are you?"
SPEECH = "/v1/text-to-speech/alto"
ROUTES = ("", "/stream", "/with-timestamps", "/stream/with-timestamps")
OURS = {"xi-api-key": "none"}


async def post(server: Any, rest: str = "", **options: Any) -> httpx2.Response:
    asked = {"json": {"text": TEXT}, "params": {"output_format": "pcm_24000"}, **options}
    return await answer_to(server, "POST", SPEECH + rest, **asked)


async def get(server: Any, path: str, **options: Any) -> httpx2.Response:
    return await answer_to(server, "GET", path, **options)


def objects(response: httpx2.Response) -> list[dict[str, Any]]:
    return [json.loads(line) for line in response.text.splitlines() if line]


@pytest.mark.parametrize("rest", ["", "/stream"])
async def test_bytes_are_the_sound(rest: str) -> None:
    async with speaking() as server:
        response = await post(server, rest)
        assert response.status_code == 200
        assert response.headers["content-type"] == "audio/pcm"
        assert len(response.content) == len(TEXT) * FRAME
        assert (await post(server, rest, json={"text": "…"})).content == TENTH
        telephone = await post(server, rest, params={"output_format": "ulaw_8000"})
        assert telephone.headers["content-type"] == "audio/basic"
        assert len(telephone.content) == pytest.approx(8_000 * len(TEXT) * 0.08, rel=0.01)
        await server.settled()


async def test_a_request_can_be_named_in_the_next_one() -> None:
    async with speaking() as server:
        first = await post(server)
        assert first.headers["request-id"] == first.headers["x-request-id"]
        named = {"text": TEXT, "previous_request_ids": [first.headers["request-id"]]}
        assert (await post(server, json=named)).status_code == 200
        voices = await get(server, "/v2/voices")
        assert voices.headers["request-id"] == voices.headers["x-request-id"]


async def test_mp3_unless_something_else_is_asked_for() -> None:
    pytest.importorskip("av", reason="needs the extra codecs")
    async with speaking() as server:
        response = await post(server, params={})
        assert response.headers["content-type"] == "audio/mpeg"
        assert len(response.content) == pytest.approx(16_000 * len(TEXT) * 0.08, rel=0.1)


@pytest.mark.parametrize("rest", ["/with-timestamps", "/stream/with-timestamps"])
async def test_characters_come_with_the_sound(monkeypatch: pytest.MonkeyPatch, rest: str) -> None:
    monkeypatch.setattr("realtime_tts.dialects.elevenlabs._SOUND_BYTES", 3 * 1_111)
    async with speaking() as server:
        response = await post(server, rest)
        assert response.headers["content-type"] == "application/json"
        seen = objects(response)
        assert (len(seen) == 1) is (rest == "/with-timestamps")
        sound = b"".join(base64.b64decode(one["audio_base64"]) for one in seen)
        assert len(sound) == len(TEXT) * FRAME
        chars, starts, ends = [], [], []
        for one in seen:
            assert one["alignment"] == one["normalized_alignment"]
            times = one["alignment"] or {}
            chars += times.get("characters", [])
            starts += times.get("character_start_times_seconds", [])
            ends += times.get("character_end_times_seconds", [])
        assert "".join(chars) == TEXT and len(chars) == len(starts) == len(ends)
        assert starts == sorted(starts) and starts[0] == 0
        assert all(start <= end for start, end in zip(starts, ends, strict=True))
        assert ends[-1] == pytest.approx(len(sound) / 48_000, abs=0.002)


@pytest.mark.parametrize("rest", ROUTES)
@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"json": {"text": ""}}, "text"),
        ({"json": {}}, "text"),
        ({"json": {"text": None}}, "text"),
        ({"json": {"text": 5}}, "text"),
        ({"json": {"text": "a" * 20_000}}, "16384"),
        ({"json": {"text": "a", "seed": -1}}, "seed"),
        ({"params": {"output_format": "pcm_7"}}, "pcm_7"),
        ({"content": b"\xff", "json": None}, "UTF-8"),
        ({"content": b"{", "json": None}, "JSON"),
        ({"content": b"x" * 400_000, "json": None}, "bytes"),
    ],
)
async def test_what_is_wrong_has_a_status(rest: str, options: dict[str, Any], names: str) -> None:
    async with speaking() as server:
        response = await post(server, rest, **options)
        assert response.status_code == 400
        detail = response.json()["detail"]
        assert names in detail["message"] and detail["status"]
        assert response.headers["x-request-id"] == detail["request_id"]
        assert response.headers["request-id"] == detail["request_id"]
        assert server.running.front.sessions == 0


async def test_what_other_servers_have_is_accepted() -> None:
    body = {
        "text": "Hello.",
        "model_id": "eleven_v9",
        "language_code": "xx",
        "seed": 7,
        "voice_settings": {"stability": 0.5, "speed": 1.0, "style": None},
        "previous_text": "So.",
        "pronunciation_dictionary_locators": None,
        "apply_text_normalization": "auto",
        "unheard_of": {"a": None},
    }
    query = {"output_format": "pcm_24000", "enable_logging": "false", "x": "y"}
    async with speaking() as server:
        path = "/v1/text-to-speech/21m00Tcm4TlvDq8ikWAM/stream"
        response = await answer_to(server, "POST", path, json=body, params=query)
        assert len(response.content) == len("Hello.") * FRAME


async def test_an_unknown_voice_is_404() -> None:
    async with speaking() as server:
        response = await answer_to(server, "POST", "/v1/text-to-speech/nobody", json={"text": TEXT})
        assert response.status_code == 404
        detail = response.json()["detail"]
        assert detail["status"] == "voice_not_found" and "alto" in detail["message"]


async def test_a_failure_before_an_answer_in_one_has_a_status() -> None:
    async with speaking(engine=SLOW) as server:
        asked = asyncio.create_task(post(server, "/with-timestamps", json={"text": TEXT * 5}))
        await fail_midway(server)
        response = await asked
        assert response.status_code >= 500 and response.json()["detail"]["message"]


# Lists.


async def test_voices_and_models_for_whoever_asks() -> None:
    """The same paths are OpenAI's and our own."""
    async with speaking() as server:
        for headers in (OURS, {"X-Fern-SDK-Name": "elevenlabs"}):
            voices = (await get(server, "/v1/voices", headers=headers)).json()["voices"]
            names = [voice["voice_id"] for voice in voices]
            assert names == ["alto", "bass", "soprano", "tenor"]
            assert {"name", "category", "labels"} < set(voices[0])
            (model,) = (await get(server, "/v1/models", headers=headers)).json()
            assert model["can_do_text_to_speech"] is True and model["languages"]
            one = await get(server, "/v1/voices/Alto", headers=headers)
            assert one.json()["voice_id"] == "alto"
            missing = await get(server, "/v1/voices/nobody", headers=headers)
            assert missing.status_code == 404
            assert missing.json()["detail"]["status"] == "voice_not_found"
        native = (await get(server, "/v1/voices")).json()
        assert native["voices"] == names and native["details"]
        theirs = (await get(server, "/v1/models", headers={"Authorization": "Bearer x"})).json()
        assert theirs["object"] == "list" and theirs["data"][0]["id"] == model["model_id"]


async def test_voices_in_pages() -> None:
    async with speaking() as server:
        page = (await get(server, "/v2/voices", params={"page_size": 3})).json()
        assert [voice["voice_id"] for voice in page["voices"]] == ["alto", "bass", "soprano"]
        assert (page["has_more"], page["total_count"]) == (True, 4)
        rest = {"page_size": 3, "next_page_token": page["next_page_token"]}
        page = (await get(server, "/v2/voices", params=rest)).json()
        assert [voice["voice_id"] for voice in page["voices"]] == ["tenor"]
        assert page["has_more"] is False and page["next_page_token"] is None
        found = (await get(server, "/v2/voices", params={"search": "BA", "page_size": "x"})).json()
        assert [voice["voice_id"] for voice in found["voices"]] == ["bass"]
        asked = (await get(server, "/v2/voices", params={"voice_ids": ["bass", "tenor"]})).json()
        assert asked["total_count"] == 2


async def test_a_method_that_is_not_for_a_path() -> None:
    async with speaking() as server:
        response = await get(server, SPEECH)
        assert response.status_code == 405 and "POST" in response.json()["detail"]["message"]
        response = await answer_to(server, "POST", "/v1/text-to-dialogue/stream", json={})
        assert response.status_code == 404
        assert "eleven_flash_v2_5" in response.json()["detail"]["message"]


async def test_keys_guard_all_of_it() -> None:
    key = "sesame-open-12345"
    async with speaking(ServerConfig(port=0, api_keys=(key,))) as server:
        for headers in ({}, {"xi-api-key": "wrong"}):
            denied = await post(server, "/stream", headers=headers)
            assert denied.status_code == 401
            assert denied.json()["detail"]["status"] == "invalid_api_key"
            assert (await get(server, "/v2/voices", headers=headers)).status_code == 401
        wrong = {"xi-api-key": "wrong"}
        for path in ("/v1/voices", "/v1/models", "/v1/voices/alto"):
            denied = await get(server, path, headers=wrong)
            assert (denied.status_code, list(denied.json())) == (401, ["detail"])
            assert "detail" not in (await get(server, path)).json()
        known = {"xi-api-key": key}
        assert (await post(server, headers=known)).status_code == 200
        assert (await get(server, "/v1/models", headers=known)).status_code == 200
