import asyncio

from realtime_tts.bench.sockets import speak
from realtime_tts.client import RealtimeTTS, Turn
from realtime_tts.client.connection import Connection
from realtime_tts.errors import HandshakeRefused


class LostClient(RealtimeTTS):
    """Has a turn for you, and no server any more when its text comes."""

    async def turn(self, turn_id: str | None = None, *, traceparent: str | None = None) -> Turn:
        return Turn("a", self._gone)

    async def _gone(self) -> Connection:
        raise HandshakeRefused("no server answers")


async def test_a_server_that_goes_before_the_first_text_is_seen_as_an_error() -> None:
    async with asyncio.timeout(5):
        seen = await speak(LostClient(), [(0.0, "Hello."), (0.1, " You?")])
    assert seen.error == HandshakeRefused.code
    assert not seen.complete
