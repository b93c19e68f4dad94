"""`realtime-tts serve --config FILE` in a process of its own: its file, its log and its clients."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import ssl
import threading
import urllib.request
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

from websockets.asyncio.client import ClientConnection, connect

from tests.serving import Serving, serving
from tests.waiting import wait_until

_SECONDS = 30.0
T = TypeVar("T")


class Clients:
    """An event loop in a thread of its own. (Clients that read in one thread and write in another
    lose what they write now and then: OpenSSL's connections are not for two threads.)"""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """What comes of it."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(_SECONDS)

    def begin(self, coroutine: Coroutine[Any, Any, T]) -> Callable[[], T]:
        """The same, to be waited for by what is returned."""
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        return lambda: future.result(_SECONDS)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Served:
    """A server that runs, and speaks TLS."""

    def __init__(self, server: Serving, file: Path, clients: Clients) -> None:
        self.process = server.process
        self.port = server.port
        self.file = file
        self.clients = clients
        self._server = server

    @property
    def log(self) -> list[dict[str, Any]]:
        return self._server.records()

    def events(self, name: str) -> list[dict[str, Any]]:
        return [line for line in self.log if line["event"] == name]

    def write(self, text: str) -> None:
        """The file says this from now on, all of it at once."""
        unfinished = self.file.with_suffix(".new")
        unfinished.write_text(text)
        unfinished.chmod(0o600)
        unfinished.replace(self.file)

    def reload(self, text: str | None = None) -> dict[str, Any]:
        """Have the server take its file over; gives what it logs of that."""
        if text is not None:
            self.write(text)
        return self.told(lambda: self.process.send_signal(signal.SIGHUP))

    def told(self, what: Callable[[], object]) -> dict[str, Any]:
        """What the server logs of the reload that `what` causes."""
        names = ("config.reloaded", "config.not_reloaded")
        before = len([line for line in self.log if line["event"] in names])
        what()
        found = wait_until(lambda: [line for line in self.log if line["event"] in names][before:])
        return dict(found[0])

    @contextlib.contextmanager
    def connect(
        self, key: str, certificate: Path | None = None, query: str = ""
    ) -> Iterator[Session]:
        """A session with this key. `certificate`: the only one that is trusted."""

        async def begin() -> ClientConnection:
            url, headers = f"wss://127.0.0.1:{self.port}/v1/tts{query}", {"x-api-key": key}
            return await connect(
                url, additional_headers=headers, ssl=trust(certificate), proxy=None
            )

        socket = self.clients.run(begin())
        try:
            yield Session(self.clients, socket)
        finally:
            self.clients.run(socket.close())

    def visit(self, key: str, certificate: Path | None = None) -> None:
        """The same, and leave at once."""
        with self.connect(key, certificate):
            pass

    def metric(self, name: str, key: str) -> float:
        request = urllib.request.Request(
            f"https://127.0.0.1:{self.port}/metrics", headers={"authorization": f"Bearer {key}"}
        )
        handler = urllib.request.HTTPSHandler(context=trust(None))
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), handler)
        with opener.open(request, timeout=_SECONDS) as answer:
            lines = answer.read().decode().splitlines()
        (line,) = [line for line in lines if line.startswith(f"{name} ")]
        return float(line.split()[1])


def trust(certificate: Path | None) -> ssl.SSLContext:
    """For clients that trust this one, or all, and then read no list of authorities."""
    if certificate is not None:
        return ssl.create_default_context(cafile=certificate)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


class Session:
    """A socket that is open."""

    def __init__(self, clients: Clients, socket: ClientConnection) -> None:
        self._clients = clients
        self._socket = socket

    def ready(self) -> dict[str, Any]:
        """The server's first message."""
        return dict(json.loads(self._clients.run(self._socket.recv())))

    def ping(self) -> None:
        """Wait for the answer."""

        async def ping() -> None:
            await (await self._socket.ping())

        self._clients.run(ping())

    def say(self, text: str) -> Turn:
        """Begin a turn with this text."""
        return Turn(self._clients, self._socket, text)


class Turn:
    """What came of one."""

    def __init__(self, clients: Clients, socket: ClientConnection, text: str) -> None:
        self.pcm = b""
        self.done: dict[str, Any] = {}
        self._wait = clients.begin(self._listen(socket, text))

    async def _listen(self, socket: ClientConnection, text: str) -> None:
        await socket.send(json.dumps({"type": "text", "text": text, "end": True}))
        async for raw in socket:
            if isinstance(raw, bytes):
                self.pcm += raw
            elif (message := json.loads(raw))["type"] == "turn.done":
                self.done = message
                return

    @property
    def speaks(self) -> bool:
        return bool(self.pcm) and not self.done

    def wait(self) -> None:
        self._wait()
        assert self.done, "the socket was closed"


@contextlib.contextmanager
def served(file: Path, *words: str) -> Iterator[Served]:
    """A server with tones and with what the file says."""
    with (
        serving("--engine", "fake", "--config", str(file), *words) as server,
        contextlib.closing(Clients()) as clients,
    ):
        yield Served(server, file, clients)
