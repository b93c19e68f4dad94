"""Answers of what stands between a client and its server, over HTTP and in place of a WebSocket."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from realtime_tts import RealtimeTTS
from realtime_tts.client.lexicons import LexiconClient
from realtime_tts.client.voices import VoiceClient
from realtime_tts.errors import ConfigError, HandshakeRefused, Unreachable
from tests.client.test_handshake import unused_port

KEY = "s3cret-key"


class Answering:
    """Gives each connection the same answer, with what it asked for kept; `hold`: and waits."""

    def __init__(self, answer: str, *, hold: bool = False) -> None:
        self._answer, self._hold = answer.encode(), hold
        self.asked: list[str] = []
        self.address = ""

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.asked.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(self._answer)
        if self._hold:
            await reader.read()
        writer.close()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[str]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        async with server:
            yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"


def moved(status: int, location: str) -> str:
    return f"HTTP/1.1 {status} Moved\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize(
    "where", ["ws://{}/v1/tts", "http://{}/v1/voices", "wss://{}/", "http://[::1"]
)
async def test_a_redirect_is_told_and_gets_no_key(status: int, where: str) -> None:
    elsewhere = Answering("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
    async with elsewhere.running() as target:
        location = where.format(target)
        async with Answering(moved(status, location)).running() as address:
            with pytest.raises(HandshakeRefused) as socket:
                await RealtimeTTS(address, api_key=KEY).connect()
            with pytest.raises(HandshakeRefused) as request:
                await asyncio.to_thread(VoiceClient(address, api_key=KEY).voices)
    for refused in (socket.value, request.value):
        assert f"leads to {location}, so give that URL" in str(refused)
        assert refused.status == status
    assert elsewhere.asked == []


async def test_a_refusal_whose_body_never_ends_is_given_up() -> None:
    unended = Answering("HTTP/1.1 503 Service Unavailable\r\n\r\n<html>", hold=True)
    async with unended.running() as address:
        with pytest.raises(Unreachable, match=r"no answer from .* within 0.2 s"):
            await RealtimeTTS(address, connect_timeout=0.2).connect()
        with pytest.raises(Unreachable, match=r"no answer from .* within 0.2 s"):
            await asyncio.to_thread(VoiceClient(address, timeout=0.2).voices)


@pytest.mark.parametrize(
    "body",
    ["Content-Length: 99\r\n\r\n<lexicon>", "Transfer-Encoding: chunked\r\n\r\n9\r\n<lexicon>"],
)
async def test_half_a_file_is_none(body: str) -> None:
    async with Answering(f"HTTP/1.1 200 OK\r\n{body}").running() as address:
        with pytest.raises(Unreachable, match="its answer broke off"):
            await asyncio.to_thread(LexiconClient(address).pls, "names")


@pytest.mark.parametrize(
    ("scheme", "why"), [("ftp", "ftp isn't supported"), ("socks5", "python-socks")]
)
async def test_a_proxy_that_is_none_is_named_without_its_password(
    monkeypatch: pytest.MonkeyPatch, scheme: str, why: str
) -> None:
    monkeypatch.setitem(sys.modules, "python_socks", None)  # as where it is not installed
    monkeypatch.setenv("http_proxy", f"{scheme}://me:s3cret@127.0.0.1")
    with pytest.raises(ConfigError, match=f"{why}.*; expected a URL") as refused:
        await RealtimeTTS(f"server.example:{unused_port()}").connect()
    assert "s3cret" not in str(refused.value)
