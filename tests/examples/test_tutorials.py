"""The tutorials do what they say: their programs run, and their proxies pass speech on.

The page with a bundler is in client_js/test/browser/bundlers.test.js; commands and links are in
tests/test_docs.py.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from realtime_tts import RealtimeTTS
from realtime_tts.config import AddressConfig
from realtime_tts.voices.library import VoiceLibrary
from tests.examples.serving import speech_server
from tests.server.speaking import speaking
from tests.voices import makers, recordings
from tests.waiting import SECONDS, until

PAGES = Path(__file__).parents[2] / "docs" / "tutorials"
ADDRESS = "127.0.0.1:8000"


def block(page: str, language: str) -> str:
    """The one program of that language on a page."""
    text = (PAGES / f"{page}.md").read_text("utf-8")
    (found,) = re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return str(found)


def run(program: str, url: str, folder: Path, words: list[str]) -> None:
    """The program in this process, against another server; what it prints comes into `words`."""
    program = program.replace(ADDRESS, url.partition("://")[2])
    given = {"__name__": "__main__", "print": words.append, "Path": folder.joinpath}
    program = program.replace("from pathlib import Path\n", "")  # of the test's folder
    exec(compile(program, "tutorial", "exec"), given)


# A chatbot ----------------------------------------------------------------------------------------


@pytest.fixture
def player(tmp_path: Path) -> Path:
    """Stands in for `aplay`: keeps what it is given to play."""
    heard = tmp_path / "heard"
    program = tmp_path / "bin" / "aplay"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\ncat >> {heard}\n")
    program.chmod(0o755)
    return heard


async def test_the_chatbot_speaks_and_remembers_what_was_heard(
    stand_in: Any, player: Path, tmp_path: Path
) -> None:
    pytest.importorskip("openai", reason="the chatbot needs openai: pip install -e '.[chat]'")
    program = block("chatbot", "python")
    assert len([line for line in program.splitlines() if line]) <= 23
    reply = "Of course. There are two trains this evening. " * 4
    stand_in.replies = (reply, "Two.")
    stand_in.stall, stand_in.stall_every = 60.0, 40
    async with speech_server() as url:
        program = program.replace(ADDRESS, url.partition("://")[2])
        program = program.replace("http://127.0.0.1:8002/v1", stand_in.url)
        path = f"{player.parent / 'bin'}:{os.environ['PATH']}"
        chatbot = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            program,
            env={**os.environ, "PATH": path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert chatbot.stdin is not None
        chatbot.stdin.write(b"When?\nAnd then?\n\n")
        # The server is at most three seconds ahead: with more, some of it was heard.
        await until(lambda: player.exists() and player.stat().st_size > 3.5 * 48_000, 30)
        chatbot.send_signal(signal.SIGINT)
        _, errors = await asyncio.wait_for(chatbot.communicate(), 60)
    assert chatbot.returncode == 0, errors.decode()
    first, second = (request["messages"] for request in stand_in.requests)
    assert first == [{"role": "user", "content": "When?"}]
    asked, said, _ = second
    assert asked == first[0] and said["role"] == "assistant"
    assert reply.startswith(said["content"]) and 0 < len(said["content"]) < len(reply)


# A telephone line, and a voice --------------------------------------------------------------------


async def test_the_telephone_program_is_interrupted_where_the_caller_cut_in(tmp_path: Path) -> None:
    told: list[str] = []
    async with speech_server() as url:
        await asyncio.to_thread(run, block("telephone", "python"), url, tmp_path, told)
    heard, rest = (eval(line.partition(": ")[2]) for line in told)
    assert heard.startswith("Hello") and rest.strip().endswith("for you?")


async def test_the_cloning_program_makes_a_voice_speaks_with_it_and_removes_it(
    tmp_path: Path,
) -> None:
    told: list[str] = []
    (tmp_path / "ben.wav").write_bytes(recordings.encoded(recordings.voice()))
    library = VoiceLibrary(tmp_path / "voices", makers.faulty(tmp_path / "started"))
    async with speaking(voices=library) as server:
        url = server.running.websocket_url
        await asyncio.to_thread(run, block("cloning", "python"), url, tmp_path, told)
    assert int(told[0].split()[0]) > 10_000
    assert not list((tmp_path / "voices").glob("*.safetensors"))


# Proxies ------------------------------------------------------------------------------------------


def nginx_around(server: str, folder: Path) -> str:
    """A whole configuration of nginx, with what the tutorial leaves to the system."""
    places = "".join(
        f"{name}_temp_path {folder}/{name};\n"
        for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    head = f"daemon off;\nmaster_process off;\npid {folder}/pid;\nerror_log stderr;\nevents {{}}\n"
    return f"{head}http {{\naccess_log off;\n{places}{server}\n}}\n"


PROXIES: dict[str, tuple[str, Callable[[str, Path], str], tuple[str, ...]]] = {
    "haproxy": ("haproxy", lambda text, folder: text, ("-q", "-f")),
    "nginx": ("nginx", nginx_around, ("-c",)),
}


@contextlib.asynccontextmanager
async def proxy(
    name: str, url: str, folder: Path, faster: tuple[str, str] = ("", "")
) -> AsyncIterator[str]:
    """The tutorial's proxy in front of that server; its address. `faster`: what to replace in its
    configuration, and by what."""
    language, around, options = PROXIES[name]
    program = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        pytest.skip(f"{name} is not installed")
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    text = block("proxy", language).replace(ADDRESS, url.partition("://")[2])
    text, binds = re.subn(r"(bind :|listen )8080", rf"\g<1>{port}", text)
    assert binds == 1 and faster[0] in text
    text = text.replace(*faster) if faster[0] else text
    file = folder / "proxy.conf"
    file.write_text(around(text, folder))
    process = await asyncio.create_subprocess_exec(program, *options, str(file))
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await process.wait()


@pytest.mark.parametrize("name", sorted(PROXIES))
async def test_speech_passes_the_proxy_while_it_is_made(tmp_path: Path, name: str) -> None:
    trusted = AddressConfig(trusted_proxies=("127.0.0.1",))
    async with (
        speech_server(addresses=trusted) as server,
        proxy(name, server, tmp_path) as url,
        httpx2.AsyncClient(base_url=url, timeout=60, trust_env=False, verify=False) as http,
    ):

        async def ready() -> bool:
            with contextlib.suppress(httpx2.TransportError):
                return (await http.get("/readyz")).status_code == 200
            return False

        await until(ready)  # neither says when it listens
        own = {"origin": url}  # a page that the proxy's address has delivered
        assert (await http.get("/v1/voices", headers=own)).status_code == 200
        async with RealtimeTTS(url) as tts:
            turn = await tts.turn()
            await turn.send("And many more words that are not all heard. " * 4)
            await anext(turn)  # before the text has ended
            report = await turn.interrupt(played_ms=40)
            assert report.text_spoken + report.text_remaining == turn.text
            assert report.text_remaining


async def test_half_requests_do_not_stay_at_haproxy(tmp_path: Path) -> None:
    """They would take the places of its `maxconn`, and the server's own limits do not see them."""
    faster = "timeout http-request 10s", "timeout http-request 200ms"
    async with speech_server() as server, proxy("haproxy", server, tmp_path, faster) as url:
        host, port = url.removeprefix("http://").split(":")

        async def given_up() -> bool:
            with contextlib.suppress(OSError):  # it does not say when it listens
                reader, writer = await asyncio.open_connection(host, int(port))
                writer.write(b"GET / HTTP/1.1\r\nHost: a\r\nX-Slow: ")
                async with asyncio.timeout(SECONDS):
                    line = await reader.read()
                writer.close()
                return line.startswith(b"HTTP/1.1 408 ")
            return False

        await until(given_up)


@pytest.mark.parametrize("name", sorted(PROXIES))
async def test_a_proxy_keeps_little_for_a_client_that_does_not_read(
    tmp_path: Path, name: str
) -> None:
    """What it keeps, the server takes for heard: it would drop such a client that much later."""
    sent = 0

    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        request = await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
        with contextlib.suppress(OSError):
            while request.startswith(b"GET /speech"):
                writer.write(bytes(4_096))
                await writer.drain()
                sent += 4_096
        writer.close()

    listening = socket.create_server(("127.0.0.1", 0))
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16_384)  # as the server has it
    server = await asyncio.start_server(endless, sock=listening, limit=4_096)
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    async with server, proxy(name, url, tmp_path) as at:
        host, port = at.removeprefix("http://").split(":")

        async def asked() -> bool:
            if sent:
                return True
            with contextlib.suppress(OSError):  # it does not say when it listens
                reader, writer = await asyncio.open_connection(host, int(port), limit=1)
                clients.append(writer)
                writer.transport.pause_reading()  # type: ignore[attr-defined]
                writer.write(b"GET /speech HTTP/1.1\r\nHost: a\r\n\r\n")
                await asyncio.sleep(0.2)
            return False

        clients: list[asyncio.StreamWriter] = []
        await until(asked)
        before = -1
        while sent > before:
            before = sent
            await asyncio.sleep(0.5)
        for one in clients:
            one.transport.abort()
    assert 0 < sent < 1_000_000  # 20 s of speech; 4.3 MB with the buffers that nginx usually has
