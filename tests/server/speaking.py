"""The whole front on a fake engine."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import websockets

from realtime_tts.config import ServerConfig
from realtime_tts.engine.fake import FakeEngine, FakeEngineConfig
from realtime_tts.engine.in_process import InProcessEngine
from realtime_tts.engine.interface import no_voice
from realtime_tts.metrics import Metrics
from realtime_tts.server.connection import Connection
from realtime_tts.server.run import RunningServer, running
from realtime_tts.text.stable_bpe import ALPHABET
from realtime_tts.text.tokenizer import Qwen2Tokenizer
from realtime_tts.voices.library import VoiceLibrary
from tests.engine.faulty import Faults, FaultyEngine
from tests.server.peers import RawPeer
from tests.server.talking import Talker
from tests.waiting import until
from tts_scheduler import SchedulerConfig

if TYPE_CHECKING:  # with it come two packages that most tests do without
    from realtime_tts.access.access import Access


def byte_tokenizer() -> Qwen2Tokenizer:
    """One token a byte, so that a test can count them."""
    return Qwen2Tokenizer({char: index for index, char in enumerate(ALPHABET)}, [])


@dataclass
class Speech:
    """A running server that speaks in tones."""

    running: RunningServer
    engine: FaultyEngine
    link: InProcessEngine

    @property
    def port(self) -> int:
        return self.running.port

    @property
    def access(self) -> Access:
        assert self.running.front.access is not None
        return self.running.front.access

    @property
    def voices(self) -> VoiceLibrary:
        assert self.running.front.voices is not None
        return self.running.front.voices

    @property
    def sessions(self) -> list[Any]:
        """Those of the sockets of the native protocol."""
        sockets = self.running.front._connections
        return [one.session for one in sockets if isinstance(one, Connection)]

    def value(self, name: str, **labels: str) -> float:
        """A metric's value now."""
        return self.running.front.metrics.registry.get_sample_value(name, labels) or 0.0

    def spy_on_commands(self) -> list[Any]:
        """From now on, every command the engine is given."""
        commands: list[Any] = []
        submit = self.link.submit

        def spy(*together: Any) -> None:
            commands.extend(together)
            submit(*together)

        self.link.submit = spy  # type: ignore[method-assign]
        return commands

    def app_routes(self) -> Any:
        app: Any = self.running.server.config.app
        return app.routes

    @contextlib.asynccontextmanager
    async def talk(self, query: str = "", **options: Any) -> AsyncIterator[Talker]:
        """A session, past its `ready`."""
        url = self.running.websocket_url + query
        async with websockets.connect(url, compression=None, **options) as socket:
            talker = Talker(socket)
            assert (await talker.next())["type"] == "ready"
            yield talker

    async def status(self, kind: str, path: str, headers: dict[str, str] | None = None) -> int:
        """The HTTP status that this path answers with."""
        peer = await RawPeer.connect(self.port)
        lines = "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
        if kind == "websocket":
            head = await peer.upgrade(path, lines)
        else:
            await peer.send(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{lines}\r\n".encode())
            head = await peer.head()
        peer.sock.close()
        return int(head.split()[1])

    async def settled_engine(self) -> None:
        """Wait until no utterance is left, in the front and in the engine."""
        front = self.running.front.engine
        await until(lambda: not front.open_utterances and not self.engine.open_utterances)

    async def settled(self) -> None:
        """Wait until no session is left either."""
        await until(lambda: not self.running.front.sessions)
        await self.settled_engine()


@contextlib.asynccontextmanager
async def speaking(
    config: ServerConfig | None = None,
    engine: FakeEngineConfig | None = None,
    faults: Faults | None = None,
    scheduler: SchedulerConfig | None = None,
    *,
    wait_ready: bool = True,
    load: Callable[..., FakeEngine] | None = None,
    load_tokenizer: Callable[[], Qwen2Tokenizer] = byte_tokenizer,
    voices: VoiceLibrary | None = None,
) -> AsyncIterator[Speech]:
    """The whole front on a fake engine."""
    registered = no_voice if voices is None else voices.registry.has
    fake = FaultyEngine(engine or FakeEngineConfig(frames_per_token=1), faults, registered)
    metrics = Metrics()
    link = InProcessEngine(
        load or (lambda progress: fake),
        scheduler or SchedulerConfig(slots=fake.config.slots),
        observer=metrics,
    )
    settings = config or ServerConfig(port=0)
    async with running(
        settings, link, load_tokenizer, metrics, voices=voices, wait_ready=wait_ready
    ) as one:
        yield Speech(one, fake, link)
