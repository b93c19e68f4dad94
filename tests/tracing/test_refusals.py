"""A request that never comes to a turn has a span of its own, in the trace of whoever asked."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest
import websockets

from realtime_tts.config import LimitsConfig, ServerConfig
from tests.server.asking import answer_to, client_of
from tests.server.speaking import speaking
from tests.server.talking import BROWSER, denied
from tests.tracing.collector import PARENT_ID, TRACE_ID, TRACEPARENT, Collector, Seen
from tests.waiting import until

TRACED = ServerConfig(port=0, tracing=True, api_keys=("the-very-key",))
HEADERS = {"traceparent": TRACEPARENT}
KEY = {"Authorization": "Bearer the-very-key"}


async def only(collector: Collector) -> Seen:
    """The one span that came, which has failed."""
    await until(lambda: collector.spans)
    (span,) = collector.spans
    assert (span.trace_id, span.parent_id, span.name) == (TRACE_ID, PARENT_ID, "refused")
    assert span.failed and span.begins <= span.ends
    return span


async def test_a_request_without_a_key(collector: Collector) -> None:
    async with speaking(TRACED) as server:
        async with client_of(server) as http:
            path = "/v1/text-to-speech/a-private-voice/stream?api=hidden"
            answer = await http.post(path, json={"text": "Private."}, headers=HEADERS)
            assert answer.status_code == 401
            await http.post(path, json={"text": "Nobody traces this."})
        span = await only(collector)
    assert span.attributes == {
        "http.request.method": "POST",
        "url.path": "/v1/text-to-speech",
        "http.response.status_code": 401,
        "error.type": "unauthorized",
    }
    assert not any(word in raw for raw in collector.raw for word in (b"rivate", b"hidden"))


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/voices/a-private-voice", "/voices"),
        ("/pronunciation-dicts/a-private-voice/versions", "/pronunciation-dicts"),
        ("/v1/audio/speech", "/v1/audio/speech"),
        ("/v1/voicesprivate", "/"),
        ("/a-private-voice", "/"),
    ],
)
async def test_a_span_shows_no_part_of_a_path_that_the_client_made_up(
    collector: Collector, path: str, shown: str
) -> None:
    async with speaking(TRACED) as server:
        assert (await answer_to(server, "PATCH", path, headers=HEADERS | KEY)).is_error
        span = await only(collector)
    assert span.attributes["url.path"] == shown
    assert not any(b"rivate" in raw for raw in collector.raw)


async def test_a_request_for_the_server_as_a_whole(
    collector: Collector, caplog: pytest.LogCaptureFixture
) -> None:
    """`OPTIONS *` names no path."""
    async with speaking(TRACED) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        asked = f"Host: a\r\nConnection: close\r\ntraceparent: {TRACEPARENT}\r\n\r\n"
        writer.write(f"OPTIONS * HTTP/1.1\r\n{asked}".encode())
        assert b" 401 " in await reader.read()
        writer.close()
        span = await only(collector)
    assert span.attributes["url.path"] == "/"
    assert "Exception in ASGI" not in caplog.text


async def test_a_request_that_is_wrong(collector: Collector) -> None:
    async with speaking(TRACED) as server:
        body = {"model": "tts-1", "voice": "alto"}
        answer = await answer_to(
            server, "POST", "/v1/audio/speech", json=body, headers=HEADERS | KEY
        )
        assert answer.status_code == 400
        span = await only(collector)
    assert span.attributes["http.response.status_code"] == 400
    assert span.attributes["error.type"] == "400"


async def test_an_upgrade_while_the_server_is_full(collector: Collector) -> None:
    config = replace(TRACED, limits=LimitsConfig(max_sessions=1))
    async with speaking(config) as server:
        async with server.talk(additional_headers=KEY):
            url = f"ws://127.0.0.1:{server.port}/v1/tts"
            response = await denied(
                websockets.connect(url, additional_headers=HEADERS | KEY, proxy=None)
            )
            assert response.status_code == 503
        span = await only(collector)
    assert span.attributes["http.response.status_code"] == 503
    assert span.attributes["error.type"] == "too_many_sessions"
    assert span.attributes["url.path"] == "/v1/tts"


async def test_a_page_that_is_told_behind_the_upgrade(collector: Collector) -> None:
    config = replace(TRACED, limits=LimitsConfig(max_sessions=1))
    async with speaking(config) as server:
        async with server.talk(additional_headers=KEY):
            url = f"ws://127.0.0.1:{server.port}/v1/tts?traceparent={TRACEPARENT}"
            page = {"Origin": f"http://127.0.0.1:{server.port}"}
            async with websockets.connect(
                url, additional_headers=page | KEY, user_agent_header=BROWSER, proxy=None
            ) as one:
                assert json.loads(await one.recv())["code"] == "too_many_sessions"
        span = await only(collector)
    assert span.attributes["error.type"] == "too_many_sessions"
    assert "http.response.status_code" not in span.attributes


async def test_a_socket_of_another_api(collector: Collector) -> None:
    async with speaking(TRACED) as server:
        url = f"ws://127.0.0.1:{server.port}/v1/speak?model=alto&encoding=none"
        with pytest.raises(websockets.InvalidStatus):
            await websockets.connect(url, additional_headers=HEADERS | KEY, proxy=None)
        span = await only(collector)
    assert span.attributes["error.type"] == "bad_request"
