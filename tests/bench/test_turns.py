import asyncio

import pytest

from realtime_tts.bench.settings import BenchSettings
from realtime_tts.bench.sockets import SocketTarget, _random_weights, speak
from realtime_tts.client import RealtimeTTS, Turn
from realtime_tts.client.connection import Connection
from realtime_tts.errors import HandshakeRefused
from tests.waiting import SECONDS


class LostClient(RealtimeTTS):
    """Has a turn for you, and no server any more when its text comes."""

    async def turn(self, turn_id: str | None = None, *, traceparent: str | None = None) -> Turn:
        return Turn("a", self._gone)

    async def _gone(self) -> Connection:
        raise HandshakeRefused("no server answers")


async def test_a_server_that_goes_before_the_first_text_is_seen_as_an_error() -> None:
    async with asyncio.timeout(SECONDS):
        seen = await speak(LostClient(), [(0.0, "Hello."), (0.1, " You?")])
    assert seen.error == HandshakeRefused.code
    assert not seen.complete


@pytest.mark.parametrize(
    "answer", [b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\ntts_", b"nonsense\r\n\r\n"], ids=str
)
async def test_metrics_of_a_server_that_goes_in_the_middle_of_them_are_none(answer: bytes) -> None:
    async def go(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        writer.close()

    async with await asyncio.start_server(go, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        target = SocketTarget(BenchSettings(f"http://127.0.0.1:{port}"))
        assert await target.metrics() == ""


@pytest.mark.parametrize(
    ("said", "known"),
    [
        ('{"random_weights": true}', True),
        ('{"random_weights": false}', False),
        ("<html>Sign in</html>", None),
        ("[]", None),
        ("{}", None),
        ("", None),
    ],
)
def test_what_answers_in_the_place_of_the_server_ends_no_run(said: str, known: bool | None) -> None:
    assert _random_weights(said) is known
