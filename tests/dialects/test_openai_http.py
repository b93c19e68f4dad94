"""The speech route without a client library: what is sent wrong, and what is read slowly."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import httpx2
import pytest

from realtime_tts.config import LimitsConfig, ServerConfig, SocketConfig
from realtime_tts.engine.fake import FakeEngine, FakeEngineConfig
from tests.server.asking import answer_to, client_of
from tests.server.peers import Connecting
from tests.server.speaking import speaking
from tests.waiting import SECONDS, until

PATH = "/v1/audio/speech"
GOOD = {"input": "Hi.", "response_format": "pcm"}


async def post(server: Any, body: Any, **options: Any) -> httpx2.Response:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return await answer_to(server, "POST", PATH, content=content, **options)


def error_of(answer: httpx2.Response) -> dict[str, Any]:
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-request-id"].startswith("req_")
    assert set(answer.json()) == {"error"}
    error: dict[str, Any] = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    return error


async def test_the_least_that_can_be_asked() -> None:
    async with speaking() as server:
        answer = await post(server, GOOD)
        assert answer.status_code == 200 and len(answer.content) == 3 * 3_840
        assert answer.headers["x-request-id"].startswith("req_")


@pytest.mark.parametrize(
    ("body", "param"),
    [
        (b"", None),
        (b"{not json", None),
        (b"[1]", None),
        (b'{"input": "\xff\xfe"}', None),
        ({}, "input"),
        ({"input": None}, "input"),
        ({"input": 5}, "input"),
        ({"input": ""}, "input"),
        ({"input": "x" * 16_385}, "input"),
        ({**GOOD, "voice": 5}, "voice"),
        ({**GOOD, "voice": "\ud83d"}, "voice"),
        ({**GOOD, "response_format": "vorbis"}, "response_format"),
        ({**GOOD, "stream_format": "websocket"}, "stream_format"),
        ({**GOOD, "lead_ms": 40_000}, "lead_ms"),
        ({**GOOD, "language": "klingon"}, "language"),
        ({**GOOD, "ref_audio": "https://example.com/a.wav"}, "ref_audio"),
        ({**GOOD, "ref_text": "Hello."}, "ref_text"),
        ({**GOOD, "references": [{"audio_path": "a.wav"}]}, "references"),
        ({**GOOD, "speaker_embedding": [0.1]}, "speaker_embedding"),
        ({**GOOD, "task_type": "VoiceDesign"}, "task_type"),
        ({**GOOD, "task_type": "voice_design"}, "task_type"),
        ({**GOOD, "voice": None, "speaker": "nobody"}, "voice"),
    ],
)
async def test_a_bad_request_is_told_what_is_wrong(body: Any, param: Any) -> None:
    async with speaking() as server:
        answer = await post(server, body)
        error = error_of(answer)
        assert answer.status_code == 400 and error["message"]
        assert (error["type"], error["param"]) == ("invalid_request_error", param)
        assert (await post(server, GOOD)).status_code == 200, "the next one is served"
        await server.settled()


async def test_the_longest_text_is_taken_however_it_is_written() -> None:
    """16,384 emoji as JSON escapes are twelve bytes each."""
    async with speaking() as server:
        answer = await post(server, {**GOOD, "input": "\U0001f600" * 16_384})
        assert answer.status_code == 200, answer.text


async def test_a_body_beyond_all_bounds_is_refused_and_not_kept() -> None:
    async with speaking() as server:
        answer = await post(server, b" " * 3_000_000)
        assert answer.status_code == 413
        assert "16384 characters" in error_of(answer)["message"]


async def test_limits_are_the_server_s() -> None:
    limits = LimitsConfig(max_text_chars=10, max_instructions_chars=5)
    async with speaking(ServerConfig(port=0, limits=limits)) as server:
        error = error_of(await post(server, {**GOOD, "input": "x" * 11}))
        assert "at most 10 characters" in error["message"]
        error = error_of(await post(server, {**GOOD, "instructions": "x" * 6}))
        assert error["param"] == "instructions"


@pytest.mark.parametrize(("method", "path"), [("GET", PATH), ("PUT", PATH), ("POST", "/v1/models")])
async def test_another_method_is_told_the_right_one(method: str, path: str) -> None:
    async with speaking() as server, client_of(server) as http:
        answer = await http.request(method, path)
        assert answer.status_code == 405
        assert answer.headers["allow"].split(", ")[0] in error_of(answer)["message"]


async def test_another_site_s_page_is_kept_out() -> None:
    async with speaking() as server:
        answer = await post(server, GOOD, headers={"origin": "http://evil.example"})
        assert answer.status_code == 403
        assert error_of(answer)["code"] == "origin_not_allowed"


@pytest.mark.parametrize("path", ["/v1/models", PATH])
async def test_while_it_loads_clients_are_asked_to_wait(path: str) -> None:
    asked = threading.Event()

    def slowly(progress: Any) -> FakeEngine:
        asked.wait(SECONDS)
        return FakeEngine()

    async with speaking(load=slowly, wait_ready=False) as server:
        method = "GET" if path == "/v1/models" else "POST"
        answer = await answer_to(server, method, path, json=GOOD if method == "POST" else None)
        asked.set()
        assert answer.status_code == 503 and answer.headers["retry-after"] == "2"
        assert error_of(answer)["code"] == "not_ready"


async def test_a_client_that_vanishes_in_its_body_leaves_nothing(peer: Connecting) -> None:
    async with speaking() as server:
        half = await peer(server.port)
        head = f"POST {PATH} HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n"
        await half.send(head.encode() + b'{"input": "Hel')
        await asyncio.sleep(0.05)
        half.abort()
        await server.settled()
        assert (await post(server, GOOD)).status_code == 200


async def test_a_client_that_does_not_read_is_given_up(peer: Connecting) -> None:
    """The kernel takes some megabytes; then the deadline for readers runs."""
    socket = SocketConfig(write_stall=0.3)
    engine = FakeEngineConfig(frames_per_token=8, step_seconds=0.0)
    limits = LimitsConfig(max_lead_ms=3_600_000, outbox_ms=3_600_000)
    async with speaking(ServerConfig(port=0, socket=socket, limits=limits), engine) as server:
        deaf = await peer(server.port, receive_buffer=4_096)
        body = json.dumps({**GOOD, "input": "x" * 249}).encode()
        head = f"POST {PATH} HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n\r\n"
        await deaf.send(head.encode() + body)
        await until(lambda: server.value("tts_socket_aborts_total", reason="slow_http_reader"), 20)
        await server.settled()


async def test_a_connection_serves_one_speech_after_another() -> None:
    async with speaking() as server, client_of(server) as http:
        answers = [await http.post(PATH, json=GOOD) for _ in range(3)]
        assert [len(answer.content) for answer in answers] == [3 * 3_840] * 3
        assert len({answer.headers["x-request-id"] for answer in answers}) == 3


async def test_many_at_once_do_not_mix() -> None:
    async with speaking() as server, client_of(server) as http:
        asked = ["x" * length for length in range(1, 25)]
        answers = await asyncio.gather(
            *(http.post(PATH, json={**GOOD, "input": text}) for text in asked)
        )
        assert [len(answer.content) // 3_840 for answer in answers] == list(range(1, 25))
        await server.settled()
