"""What an ingress tells Prometheus: the servers that there are now, wherever they listen."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import socket
import subprocess
import sys
import urllib.request
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from realtime_tts.errors import ConfigError
from realtime_tts.fleet.members import Member
from realtime_tts.fleet.ray_members import write
from realtime_tts.fleet.targets import listing
from tests.fleet.running import free_port, member, server
from tests.waiting import until, wait_until

FIRST, SECOND = Member("10.0.0.5", 21_733, 21_004), Member("fd00::6", 21_000, 21_001)


def fetched(url: str) -> Any:
    """Without a proxy, whatever the environment names."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=10) as answer:
        assert answer.headers["content-type"] == "application/json"
        return json.loads(answer.read())


@contextlib.contextmanager
def ingress(file: Path, bind: str) -> Iterator[subprocess.Popen[bytes]]:
    flags = ["--members-file", str(file), "--targets-bind", bind, "--drain-seconds", "0"]
    process = subprocess.Popen(
        [sys.executable, "-m", "realtime_tts", "ingress", "--slots=2", "--bind"]
        + [f"127.0.0.1:{free_port()}", *flags],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        yield process
    finally:
        process.terminate()
        process.communicate()


def test_the_list_follows_the_members(tmp_path: Path) -> None:
    file, port = tmp_path / "members", free_port()
    write(file, [FIRST])
    with ingress(file, f"127.0.0.1:{port}") as process:
        assert process.stdout is not None and b"takes clients" in process.stdout.readline()
        url = f"http://127.0.0.1:{port}/"
        assert fetched(url) == [{"targets": ["10.0.0.5:21733"]}]
        write(file, [SECOND])
        wait_until(lambda: fetched(url) == [{"targets": ["[fd00::6]:21000"]}])


def test_an_address_that_is_taken_ends_the_ingress_before_it_takes_clients(tmp_path: Path) -> None:
    (file := tmp_path / "members").touch()
    with socket.create_server(("127.0.0.1", 0)) as other:
        bind = f"127.0.0.1:{other.getsockname()[1]}"
        with ingress(file, bind) as process:
            out, errors = process.communicate(timeout=60)
    assert out == b"" and process.returncode != 0
    assert f"--targets-bind: cannot listen on {bind}" in errors.decode()


@pytest.mark.parametrize(
    "bind", ["8002", "*:", "[]:8002", "host:port", "127.0.0.1:99999", "a..b:8002"]
)
async def test_what_is_no_address_is_told(bind: str) -> None:
    with pytest.raises(ConfigError, match="--targets-bind"):
        async with listing(bind, list):
            pass


async def test_a_client_that_says_nothing_or_too_much_disturbs_nobody() -> None:
    port = free_port()
    async with listing(f"127.0.0.1:{port}", lambda: [FIRST]):
        _, silent = await asyncio.open_connection("127.0.0.1", port)
        reader, loud = await asyncio.open_connection("127.0.0.1", port)
        loud.write(b"x" * 1_000_000)
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
        found = await asyncio.to_thread(fetched, f"http://127.0.0.1:{port}/")
        assert found == [{"targets": ["10.0.0.5:21733"]}]
        for writer in (silent, loud):
            writer.close()
        await until(lambda: len(asyncio.all_tasks()) == 1)  # the ends of both have been seen
        await asyncio.sleep(0)


@contextlib.asynccontextmanager
async def prometheus(folder: Path, discovery: str) -> AsyncIterator[str]:
    """One that scrapes what is listed there; yields where it answers."""
    where = f"127.0.0.1:{free_port()}"
    (folder / "prometheus.yml").write_text(
        "global: {scrape_interval: 500ms}\n"
        "scrape_configs:\n"
        "  - job_name: realtime-tts\n"
        f"    http_sd_configs: [{{url: '{discovery}', refresh_interval: 500ms}}]\n"
    )
    process = await asyncio.create_subprocess_exec(
        *("prometheus", f"--config.file={folder / 'prometheus.yml'}"),
        *(f"--storage.tsdb.path={folder / 'data'}", f"--web.listen-address={where}"),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        yield f"http://{where}/api/v1/query?query="
    finally:
        process.kill()
        await process.communicate()


@pytest.mark.skipif(not shutil.which("prometheus"), reason="apt-get install prometheus")
async def test_a_real_prometheus_scrapes_the_servers_that_there_are(tmp_path: Path) -> None:
    port, members = free_port(), list[Member]()

    async def scraped(query: str) -> set[str]:
        with contextlib.suppress(OSError):
            answer = await asyncio.to_thread(fetched, query + "tts_sessions%20and%20up%20==%201")
            return {one["metric"]["instance"] for one in answer["data"]["result"]}
        return set()

    async with server(2) as one, server(2) as two:
        async with (
            listing(f"127.0.0.1:{port}", lambda: members),
            prometheus(tmp_path, f"http://127.0.0.1:{port}/") as query,
        ):
            for there in ([member(one)], [member(one), member(two)], [member(two)]):
                members[:] = there
                wanted = {here.authority for here in there}

                async def right(wanted: set[str] = wanted) -> bool:
                    return await scraped(query) == wanted

                await until(right)
