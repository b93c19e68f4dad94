"""Real sockets for the server's tests: peers that behave badly, and apps to aim them at."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import pytest
import uvicorn
import websockets

from realtime_tts.config import ServerConfig, SocketConfig
from realtime_tts.engine.fake import FakeEngine, FakeEngineConfig
from realtime_tts.engine.in_process import InProcessEngine
from realtime_tts.engine.interface import no_voice
from realtime_tts.metrics import Metrics
from realtime_tts.server.addresses import ClientAddresses
from realtime_tts.server.connection import Connection
from realtime_tts.server.guarded import guarded
from realtime_tts.server.http import GuardedHttp
from realtime_tts.server.run import RunningServer, running
from realtime_tts.server.text_input import TextInput
from realtime_tts.server.time_slices import TimeSlices
from realtime_tts.server.utterances import Utterances
from realtime_tts.server.websocket import GuardedWebSocket
from realtime_tts.text.stable_bpe import ALPHABET
from realtime_tts.text.tokenizer import Qwen2Tokenizer
from realtime_tts.voices.library import VoiceLibrary
from tests.engine.faulty import Faults, FaultyEngine
from tests.server.talking import Talker
from tests.waiting import SECONDS, until
from tts_scheduler import SchedulerConfig

if TYPE_CHECKING:  # with it come two packages that most tests do without
    from realtime_tts.access.access import Access

TEXT, BINARY, CLOSE, PING, PONG, CONT = 0x1, 0x2, 0x8, 0x9, 0xA, 0x0


class RawPeer:
    """A client that can do everything wrong: a bare TCP socket with WebSocket frames by hand."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._loop = asyncio.get_running_loop()
        self._buffer = b""

    @classmethod
    async def connect(
        cls, port: int, *, receive_buffer: int | None = None, source: str | None = None
    ) -> Self:
        sock = socket.socket()
        if source is not None:
            sock.bind((source, 0))
        if receive_buffer is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", port))
        return cls(sock)

    async def send(self, data: bytes) -> None:
        await self._loop.sock_sendall(self.sock, data)

    async def upgrade(self, path: str = "/", headers: str = "") -> bytes:
        """Send a WebSocket handshake; gives the head of the answer."""
        await self.send(
            (
                f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\n"
                "Connection: Upgrade\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
                f"Sec-WebSocket-Version: 13\r\n{headers}\r\n"
            ).encode()
        )
        return await self.head()

    async def head(self) -> bytes:
        """The head of an HTTP answer, or what came before the end."""
        while b"\r\n\r\n" not in self._buffer:
            data = await self._receive()
            if not data:
                break
            self._buffer += data
        head, _, self._buffer = self._buffer.partition(b"\r\n\r\n")
        return head

    async def frame(self, opcode: int, payload: bytes = b"", *, fin: bool = True) -> None:
        """Send one frame, masked with zeros."""
        await self.send(frame_bytes(opcode, payload, fin=fin))

    async def next_frame(self) -> tuple[int, bytes]:
        """The next frame of the server: opcode and payload. Raises EOFError at the end."""
        head = await self._exactly(2)
        size = head[1] & 0x7F
        if size == 126:
            size = struct.unpack("!H", await self._exactly(2))[0]
        elif size == 127:
            size = struct.unpack("!Q", await self._exactly(8))[0]
        return head[0] & 0x0F, await self._exactly(size)

    async def close_code(self) -> int:
        """Read on until the server's close frame; its code."""
        while True:
            opcode, payload = await self.next_frame()
            if opcode == CLOSE:
                return int.from_bytes(payload[:2], "big")

    async def ended(self, seconds: float = SECONDS) -> bool:
        """Whether the server ends the connection within `seconds`; reads what comes meanwhile."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while await self._receive():
                    pass
                return True
        return False

    async def rest(self) -> bytes:
        """What still comes until the server ends the connection."""
        while data := await self._receive():
            self._buffer += data
        return bytes(self._buffer)

    def abort(self) -> None:
        """Vanish with a reset."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    async def _receive(self) -> bytes:
        try:
            return await self._loop.sock_recv(self.sock, 65_536)
        except ConnectionError:
            return b""

    async def _exactly(self, count: int) -> bytes:
        while len(self._buffer) < count:
            data = await self._receive()
            if not data:
                raise EOFError("the server ended the connection")
            self._buffer += data
        data, self._buffer = self._buffer[:count], self._buffer[count:]
        return data


def frame_bytes(
    opcode: int, payload: bytes = b"", *, fin: bool = True, rsv: int = 0, mask: bytes = bytes(4)
) -> bytes:
    """As a client sends it, masked."""
    head = bytes([(0x80 if fin else 0) | rsv << 4 | opcode])
    if len(payload) < 126:
        head += bytes([0x80 | len(payload)])
    elif len(payload) < 65_536:
        head += bytes([0xFE]) + struct.pack("!H", len(payload))
    else:
        head += bytes([0xFF]) + struct.pack("!Q", len(payload))
    key = int.from_bytes((mask * (len(payload) // 4 + 1))[: len(payload)], "big")
    masked = (int.from_bytes(payload, "big") ^ key).to_bytes(len(payload), "big")
    return head + mask + masked


@dataclass
class Aimed:
    """A running ASGI app."""

    port: int
    metrics: Metrics
    server: uvicorn.Server
    peers: list[RawPeer] = field(default_factory=list)

    def aborts(self, reason: str) -> float:
        value = self.metrics.registry.get_sample_value(
            "tts_socket_aborts_total", {"reason": reason}
        )
        return value or 0.0

    async def peer(self, **options: Any) -> RawPeer:
        """One that is connected; it is closed before the app ends."""
        self.peers.append(await RawPeer.connect(self.port, **options))
        return self.peers[-1]


Connecting = Callable[..., Awaitable[RawPeer]]


@pytest.fixture
async def peer() -> AsyncIterator[Connecting]:
    """Makes RawPeers and closes them afterwards."""
    made: list[RawPeer] = []

    async def connect(port: int, **options: Any) -> RawPeer:
        made.append(await RawPeer.connect(port, **options))
        return made[-1]

    yield connect
    for one in made:
        one.sock.close()


class _Server(uvicorn.Server):
    """Leaves signals alone. uvicorn brings back the handler that it found, which in a fixture is
    that of its setup, and was over long ago."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@contextlib.asynccontextmanager
async def serving(app: Any, **options: Any) -> AsyncIterator[tuple[int, uvicorn.Server]]:
    """An ASGI app behind uvicorn; gives its port. `options`: of `uvicorn.Config`."""
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, log_config=None, timeout_graceful_shutdown=1, **options)
    server = _Server(config)
    task = asyncio.create_task(server.serve([listener]))
    try:
        await until(lambda: server.started)
        yield listener.getsockname()[1], server
    finally:
        server.should_exit = True
        await task


@contextlib.asynccontextmanager
async def aimed(app: Any, settings: SocketConfig, **uvicorn_options: Any) -> AsyncIterator[Aimed]:
    """An ASGI app behind the guarded protocol classes."""
    metrics = Metrics()
    shared = settings, metrics, ClientAddresses(), TimeSlices()
    async with serving(
        app,
        http=guarded(GuardedHttp, *shared),
        ws=guarded(GuardedWebSocket, *shared),
        ws_per_message_deflate=False,
        ws_ping_interval=settings.ping_interval,
        ws_ping_timeout=settings.ping_timeout,
        lifespan="off",
        **uvicorn_options,
    ) as (port, server):
        running = Aimed(port, metrics, server)
        try:
            yield running
        finally:
            for one in running.peers:
                one.sock.close()


def byte_tokenizer() -> Qwen2Tokenizer:
    """One token a byte, so that a test can count them."""
    return Qwen2Tokenizer({char: index for index, char in enumerate(ALPHABET)}, [])


class Slices:
    """The text that turns take in, and in which round of the event loop: a few characters each."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen: list[tuple[int, str]] = []
        self._round = 0
        take = Utterances.feed

        def feed(utterances: Utterances, text: str, now: float, **options: Any) -> None:
            self.seen.append((self._round, text))
            take(utterances, text, now, **options)

        monkeypatch.setattr(Utterances, "feed", feed)
        monkeypatch.setattr("realtime_tts.server.text_input.SLICE", 5)
        monkeypatch.setattr("realtime_tts.server.time_slices.SLICE_SECONDS", 0.0)
        self._count_rounds(monkeypatch)
        self._held = False
        step = TextInput._step

        def step_unless_held(text_input: TextInput) -> bool:
            return True if self._held else step(text_input)

        monkeypatch.setattr(TextInput, "_step", step_unless_held)

    def _count_rounds(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """In each, the event loop looks once at its sockets: counting there keeps no core busy."""
        selector = vars(asyncio.get_running_loop())["_selector"]
        select = selector.select

        def select_counted(timeout: float | None) -> Any:
            self._round += 1
            return select(timeout)

        monkeypatch.setattr(selector, "select", select_counted)

    async def first(self, count: int) -> None:
        """Until so many were taken in: by the rounds of the loop, whatever time they take."""
        async with asyncio.timeout(SECONDS):
            while len(self.seen) < count:  # noqa: ASYNC110
                await asyncio.sleep(0)

    def hold(self) -> None:
        """Take in no more until `go_on`: what comes meanwhile overtakes it, however slow."""
        self._held = True

    def go_on(self) -> None:
        self._held = False

    def joined(self) -> str:
        return "".join(text for _, text in self.seen)

    def largest(self) -> int:
        return max(len(text) for _, text in self.seen)

    def each_in_its_round(self) -> bool:
        """Whether everything else had its turn between any two of them."""
        rounds = [number for number, _ in self.seen]
        return len(set(rounds)) == len(rounds)


@pytest.fixture
async def slices(monkeypatch: pytest.MonkeyPatch) -> Slices:
    """Long texts are those of more than five characters; each round has time for one slice."""
    return Slices(monkeypatch)


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
