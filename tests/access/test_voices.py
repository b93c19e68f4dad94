"""A key that may use some voices: its clients read nothing of the others, over no API."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx2
import pytest
import websockets

from tests.access.conftest import Keys
from tests.server.asking import answer_to
from tests.server.speaking import speaking
from tests.server.talking import denied

OTHERS = ("bass", "soprano", "tenor")
Bearer = Callable[[str], dict[str, str]]


@pytest.fixture
def shown(keys: Keys, bearer: Bearer) -> dict[str, str]:
    return bearer(keys.create("acme", voices=("al*",)))


@pytest.fixture
async def server(keys: Keys, shown: dict[str, str]) -> AsyncIterator[Any]:
    async with speaking(keys.server()) as one:
        yield one


HTTP = [
    ("/v1/audio/speech", {"input": "Hi.", "voice": "xyz", "response_format": "pcm"}),
    ("/v1/text-to-speech/xyz?output_format=pcm_24000", {"text": "Hi."}),
    ("/tts/bytes", {"transcript": "Hi.", "voice": {"mode": "id", "id": "xyz"}}),
    ("/v1/speak?model=xyz&encoding=linear16", {"text": "Hi."}),
]


async def answer_of(
    server: Any, shown: dict[str, str], path: str, body: dict[str, Any] | None = None
) -> httpx2.Response:
    """The answer to a GET, or with a body to a POST. It names no voice of others."""
    method = "GET" if body is None else "POST"
    answer = await answer_to(server, method, path, json=body, headers=shown)
    assert not [name for name in OTHERS if name in answer.text], answer.text
    return answer


@pytest.mark.parametrize(("path", "body"), HTTP)
async def test_an_error_over_http_names_no_voice_of_others(
    server: Any, shown: dict[str, str], path: str, body: dict[str, Any]
) -> None:
    answer = await answer_of(server, shown, path, body)
    assert 400 <= answer.status_code < 500 and "alto" in answer.text


SOCKETS: list[tuple[str, dict[str, Any]]] = [
    ("/tts/websocket", {"transcript": "Hi.", "context_id": "a", "voice": "xyz"}),
    ("/v1/text-to-speech/xyz/stream-input?output_format=pcm_24000", {"text": "Hi. "}),
    ("/v1/text-to-speech/xyz/multi-stream-input?output_format=pcm_24000", {"text": "Hi. "}),
    ("/api-ws/v1/realtime", {"type": "session.update", "session": {"voice": "xyz"}}),
    ("/v1/audio/speech/stream", {"type": "session.config", "voice": "xyz"}),
]


@pytest.mark.parametrize(("path", "message"), SOCKETS)
async def test_an_error_over_a_socket_names_no_voice_of_others(
    server: Any, shown: dict[str, str], path: str, message: dict[str, Any]
) -> None:
    url = f"ws://127.0.0.1:{server.port}{path}"
    async with websockets.connect(url, additional_headers=shown) as socket:
        await socket.send(json.dumps(message))
        said = ""
        while "xyz" not in said:
            said = str(await socket.recv())
    assert "alto" in said
    assert not [name for name in OTHERS if name in said], said


UNNAMED = [
    ("/v1/audio/speech", {"input": "Hi.", "response_format": "pcm"}),
    ("/tts/bytes", {"transcript": "Hi."}),
    ("/v1/speak?encoding=linear16", {"text": "Hi."}),
]


@pytest.mark.parametrize(("path", "body"), UNNAMED)
async def test_who_names_no_voice_does_not_learn_the_default_one_of_others(
    server: Any, shown: dict[str, str], path: str, body: dict[str, Any]
) -> None:
    answer = await answer_of(server, shown, path, body)
    assert answer.status_code == 403 and "default voice" in answer.text


async def test_a_session_that_names_no_voice_does_not_learn_the_default_one_of_others(
    server: Any, shown: dict[str, str]
) -> None:
    async with websockets.connect(server.running.websocket_url, additional_headers=shown) as socket:
        said = str(await socket.recv())
        await socket.wait_closed()
    assert "bad_settings" in said and "default voice" in said
    reason = socket.close_reason or ""
    assert not [name for name in OTHERS if name in said + reason], said


@pytest.mark.parametrize("path", ["/v1/speak?model=xyz", "/v2/speak?model=xyz"])
async def test_a_refused_handshake_names_no_voice_of_others(
    server: Any, shown: dict[str, str], path: str
) -> None:
    response = await denied(
        websockets.connect(f"ws://127.0.0.1:{server.port}{path}", additional_headers=shown)
    )
    body = response.body.decode()
    assert "alto" in body
    assert not [name for name in OTHERS if name in body], body


async def test_a_session_names_no_voice_of_others(server: Any, shown: dict[str, str]) -> None:
    async with server.talk("?voice=alto", additional_headers=shown) as talker:
        await talker.send("session.start", voice="xyz")
        error = await talker.next()
    assert error["type"] == "error" and "xyz" in error["message"]
    assert not [name for name in OTHERS if name in error["message"]], error


@pytest.mark.parametrize(
    "path", ["/v1/voices", "/v2/voices", "/voices", "/v1/audio/voices", "/v1/models"]
)
async def test_a_list_names_no_voice_of_others(
    server: Any, shown: dict[str, str], path: str
) -> None:
    answer = await answer_of(server, shown, path)
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("path", ["/api-ws/v1/realtime", "/v1/speak", "/v2/speak"])
async def test_a_greeting_names_no_voice_of_others(
    server: Any, shown: dict[str, str], path: str
) -> None:
    url = f"ws://127.0.0.1:{server.port}{path}"
    async with websockets.connect(url, additional_headers=shown) as socket:
        said = str(await socket.recv())
    assert not [name for name in OTHERS if name in said], said


@pytest.mark.parametrize("voice", ["alloy", "ash", "ballad", "coral", "echo", "shimmer"])
async def test_a_foreign_voice_is_spoken_by_one_of_the_key_s(
    server: Any, shown: dict[str, str], voice: str
) -> None:
    body = {"input": "Hi.", "voice": voice, "response_format": "pcm"}
    answer = await answer_to(server, "POST", "/v1/audio/speech", json=body, headers=shown)
    assert answer.status_code == 200, answer.text
