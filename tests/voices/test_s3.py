"""Voices in S3 alone: what only a real server says, and two servers of ours that share a bucket."""

from __future__ import annotations

import asyncio
import contextlib
import socketserver
import threading
import time
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import fsspec
import numpy as np
import pytest

from realtime_tts.bench.local_server import local_server
from realtime_tts.client.voices import VoiceClient
from realtime_tts.errors import RealtimeTTSError
from realtime_tts.voices import store
from realtime_tts.voices.errors import CannotStore
from realtime_tts.voices.store import VoiceStore
from realtime_tts.voices.stored import StoredRegistry
from tests.fleet.running import open_session
from tests.voices.conftest import NO_S3
from tests.voices.test_stored import add, ids
from tests.waiting import until

EMBEDDING = np.linspace(-1, 1, 64, dtype=np.float32)

pytestmark = pytest.mark.skipif(NO_S3, reason="moto or s3fs is missing: make test-fleet")


async def has(client: VoiceClient, name: str, *, there: bool = True) -> bool:
    """Whether the client's server has the voice, or has none of that name."""
    return (name in (await asyncio.to_thread(client.voices))["voices"]) is there


def test_a_bucket_that_is_not_there_is_a_failure_and_an_empty_prefix_is_not(
    s3: None, tmp_path: Path
) -> None:
    with pytest.raises(OSError, match="list s3://nowhere"):
        VoiceStore("s3://nowhere-at-all/voices").versions()
    with pytest.raises(OSError, match="list s3://nowhere"):
        VoiceStore("s3://nowhere-at-all").versions()
    fsspec.filesystem("s3").makedirs("somewhere")
    assert VoiceStore("s3://somewhere/new/").versions() == {}
    assert VoiceStore("s3://somewhere").versions() == {}


def test_a_server_that_is_not_there_is_told_within_seconds(
    s3: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    registry = StoredRegistry("s3://bucket-behind-a-closed-port/voices", tmp_path)
    with pytest.raises(CannotStore, match="(?s)try again.*127.0.0.1:9"):
        add(registry, "anna")
    assert ids(registry) == []


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bytes]]:
    """Stands for a store that takes requests and never answers: what has come, by connection."""
    requests: list[bytes] = []

    class Silent(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            requests.append(self.request.recv(65_536))
            while self.request.recv(65_536):
                pass

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Silent) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_address[1]}")
        yield requests
        server.shutdown()
        thread.join()


def test_a_store_that_falls_silent_is_asked_three_times(
    s3: None, silent: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(store._PATIENCE, "read_timeout", 0.2)
    with pytest.raises(OSError, match="list s3://silent/voices: Read timeout"):
        VoiceStore("s3://silent/voices").versions()
    assert len(silent) == 3


def test_a_write_to_a_store_that_falls_silent_ends(
    s3: None, silent: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "_CALL_SECONDS", 1.0)
    voices = VoiceStore("s3://silent/voices")
    for write in (voices.create, voices.replace):
        with pytest.raises(OSError, match="write s3://silent/voices: it does not answer"):
            write("anna.safetensors", b"anna")
    assert silent


class Answering(BaseHTTPRequestHandler):
    """Answers every request with 200 and a page. To GET, one byte after the other, if `drips`."""

    protocol_version = "HTTP/1.1"
    page = b"<html><head><title>Log in</title></head><body>Welcome.</body></html>"
    drips = False

    def answer(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", str(len(self.page)))
        self.end_headers()
        size = 1 if self.drips else len(self.page)
        with contextlib.suppress(ConnectionError):  # the other side has given up
            for start in range(0, 0 if self.command == "HEAD" else len(self.page), size):
                self.wfile.write(self.page[start : start + size])
                self.wfile.flush()
                time.sleep(0.1 if self.drips else 0)
        self.close_connection = True

    do_GET = do_HEAD = do_PUT = do_DELETE = answer

    def log_message(self, format: str, *_: object) -> None:
        """Nothing on stderr."""


@contextlib.contextmanager
def answering(monkeypatch: pytest.MonkeyPatch, drips: bool = False) -> Iterator[None]:
    """The endpoint of S3 is one that answers each request with a page."""
    handler = type("Handler", (Answering,), {"drips": drips})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server, monkeypatch.context() as patch:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        patch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_address[1]}")
        yield
        server.shutdown()
        thread.join()


def test_a_proxy_that_welcomes_everything_is_not_an_empty_store(
    s3: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fsspec.filesystem("s3").makedirs("behind-a-proxy")
    url = "s3://behind-a-proxy/voices"
    add(StoredRegistry(url, tmp_path), "anna")
    registry = StoredRegistry(url, tmp_path)
    with answering(monkeypatch):
        assert ids(registry) == ["anna"]
        with pytest.raises(CannotStore, match="(?s)200, text/html.*is a proxy in between"):
            add(registry, "ben")
        with pytest.raises(CannotStore, match="delete from.*not one of S3"):
            registry.delete("anna")
        with pytest.raises(OSError, match="read s3://behind-a-proxy/voices.*not one of S3"):
            dict(registry.store.read(["anna.safetensors"]))
    assert ids(StoredRegistry(url, tmp_path)) == ["anna"]


def test_an_answer_that_comes_in_drips_ends(s3: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "_CALL_SECONDS", 1.0)
    with answering(monkeypatch, drips=True):
        with pytest.raises(OSError, match="list s3://drips/voices: it does not answer"):
            VoiceStore("s3://drips/voices").versions()


async def test_two_servers_share_the_voices_of_a_bucket(
    s3: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fsspec.filesystem("s3").makedirs("shared-by-servers")
    flags = "--engine", "fake", "--voices-dir", "s3://shared-by-servers/voices"
    async with contextlib.AsyncExitStack() as stack:
        urls = []
        for name in ("one", "other"):  # each with the copies of its own machine
            monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / name))
            urls.append(await stack.enter_async_context(local_server(flags)))
        one, other = map(VoiceClient, urls)
        await asyncio.to_thread(one.register, "anna", EMBEDDING.tolist())
        await until(partial(has, other, "anna"))
        with pytest.raises(RealtimeTTSError, match="'anna' already"):
            await asyncio.to_thread(other.register, "anna", EMBEDDING.tolist())
        session = await open_session(int(urls[1].rpartition(":")[2]), "?voice=anna")
        await session.say("One, two.")
        assert (await session.until("turn.done"))["reason"] == "complete" and session.samples
        await session.close()
        await asyncio.to_thread(other.delete, "anna")
        assert "anna" not in (await asyncio.to_thread(other.voices))["voices"]
        await until(partial(has, one, "anna", there=False))
