"""The chat's web server: the page, the speech and the reply, all at one address."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from importlib.util import find_spec
from typing import Any

import httpx2
import pytest
import websockets

from realtime_tts import RealtimeTTS
from tests.examples.serving import serving, speech_server
from tests.waiting import until

pytestmark = pytest.mark.skipif(
    find_spec("openai") is None, reason="the chat example needs openai: pip install -e '.[chat]'"
)

HELLO = {"messages": [{"role": "user", "content": "Hello"}]}
KEY = "correct-horse-battery"


@contextlib.asynccontextmanager
async def chat(
    stand_in: Any, tts: str, key: str | None = None
) -> AsyncIterator[httpx2.AsyncClient]:
    """A browser at the chat's address."""
    from app import create_app, headers_for_the_page
    from llm import Model
    from proxy import SpeechServer

    model = Model(stand_in.url, "my model")
    app = create_app(model, SpeechServer(tts, key, headers_for_the_page(model.name)))
    async with serving(app) as url, httpx2.AsyncClient(base_url=url, timeout=60) as browser:
        yield browser


async def test_the_page_and_the_speech_are_passed_on(stand_in: Any) -> None:
    async with speech_server() as tts, chat(stand_in, tts) as browser:
        page = await browser.get("/")
        assert "/page/main.js" in page.text
        assert "default-src 'none'" in page.headers["content-security-policy"]
        voices = await browser.get("/v1/voices")
        assert "alto" in voices.json()["voices"]
        assert voices.headers["x-chat-model"] == "my%20model"
        assert (await browser.get("/client/index.js")).status_code == 200
        assert (await browser.get("/nothing")).status_code == 404
        tag = page.headers["etag"]
        assert (await browser.get("/", headers={"if-none-match": tag})).status_code == 304
        async with RealtimeTTS(str(browser.base_url), voice="alto") as session:
            samples = b"".join([packet async for packet in session.speak("One two three.")])
            assert len(samples) > 4_096
            turn = await session.turn()
            await turn.send("And many more words that are not all heard. " * 4)
            await anext(turn)
            report = await turn.interrupt(played_ms=40)
            assert report.text_spoken + report.text_remaining == turn.text


async def test_the_reply_is_streamed_while_the_model_writes(stand_in: Any) -> None:
    stand_in.stall, stand_in.stall_every = 0.3, 5
    stand_in.replies = ("One two three four five six seven.",)
    async with speech_server() as tts, chat(stand_in, tts) as browser:
        came: list[tuple[float, str]] = []
        async with browser.stream("POST", "/chat", json=HELLO) as answer:
            async for line in answer.aiter_lines():
                came.append((asyncio.get_running_loop().time(), json.loads(line)["delta"]))
        assert "".join(delta for _, delta in came) == stand_in.replies[0]
        assert came[-1][0] - came[0][0] > 0.25


async def test_a_page_that_hangs_up_stops_the_model_in_its_stall(stand_in: Any) -> None:
    stand_in.stall, stand_in.stall_every = 60.0, 2
    async with speech_server() as tts, chat(stand_in, tts) as browser:
        async with browser.stream("POST", "/chat", json=HELLO) as answer:
            async for _ in answer.aiter_lines():
                break
        await until(lambda: stand_in.hung_up == 1)


async def test_an_error_of_the_model_reaches_the_page_in_words(stand_in: Any) -> None:
    stand_in.status = 429
    async with speech_server() as tts, chat(stand_in, tts) as browser:
        answer = await browser.post("/chat", json=HELLO)
        assert "busy" in json.loads(answer.text)["error"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        b"[" * 100_000,
        b'{"messages": []}',
        b'{"messages": [{"role": "system", "content": "x"}]}',
    ],
    ids=lambda body: body[:30],
)
async def test_a_request_that_is_none_is_refused(stand_in: Any, body: bytes) -> None:
    async with speech_server() as tts, chat(stand_in, tts) as browser:
        answer = await browser.post("/chat", content=body)
        assert answer.status_code == 400
        assert answer.json()["error"]
        assert stand_in.requests == []


async def test_a_conversation_has_an_end(stand_in: Any) -> None:
    async with speech_server() as tts, chat(stand_in, tts) as browser:
        long = {"messages": [{"role": "user", "content": "a" * 300_000}]}
        assert (await browser.post("/chat", json=long)).status_code == 400


async def test_no_other_site_gets_in(stand_in: Any) -> None:
    async with speech_server() as tts, chat(stand_in, tts) as browser:
        origin = {"origin": "https://elsewhere.example"}
        assert (await browser.post("/chat", json=HELLO, headers=origin)).status_code == 403
        socket = str(browser.base_url).replace("http", "ws") + "/v1/tts"
        with pytest.raises(websockets.InvalidStatus):
            await websockets.connect(socket, origin=websockets.Origin(origin["origin"]))
        own = str(browser.base_url).rstrip("/")
        assert (await browser.post("/chat", json=HELLO, headers={"origin": own})).status_code == 200


async def test_the_speech_server_s_key_stays_with_the_chat(stand_in: Any) -> None:
    async with speech_server(api_keys=(KEY,)) as tts:
        async with chat(stand_in, tts, KEY) as browser:
            assert (await browser.get("/v1/voices")).status_code == 200
            async with RealtimeTTS(str(browser.base_url)) as session:
                assert [packet async for packet in session.speak("One two.")]
        async with chat(stand_in, tts) as browser:
            assert (await browser.get("/v1/voices")).status_code == 401
            async with RealtimeTTS(str(browser.base_url), api_key=KEY) as session:
                assert session.connected


async def test_a_speech_server_that_is_gone_is_missed(stand_in: Any) -> None:
    async with chat(stand_in, "http://127.0.0.1:9") as browser:
        answer = await browser.get("/")
        assert answer.status_code == 503
        assert "does not answer" in answer.json()["error"]
        socket = str(browser.base_url).replace("http", "ws") + "/v1/tts"
        async with websockets.connect(socket) as session:
            error = json.loads(await session.recv())
            assert (error["code"], error["retryable"]) == ("not_ready", True)
            with pytest.raises(websockets.ConnectionClosed):
                await session.recv()
            assert session.close_code == 1013
