"""Usage: what is recorded, what `/v1/usage` says, and what a kill loses."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any, NamedTuple

import httpx2
import pytest
import sqlalchemy
from starlette.requests import Request
from starlette.routing import Route

from realtime_tts.access.account import ACCOUNT
from realtime_tts.access.key import Key
from realtime_tts.access.usage import Usage
from realtime_tts.errors import ConfigError
from realtime_tts.server.usage import usage_routes
from tests.access.conftest import Keys
from tests.access.test_sockets import OWN, get, say
from tests.fronts.running import Server, serving, sessions
from tests.server.speaking import speaking
from tests.waiting import SECONDS, until, wait_until

Bearer = Callable[[str], dict[str, str]]
DAY = 86_400.0


def key(name: str) -> Key:
    return Key(id=f"id-{name}", name=name, digest="0" * 64, created=0.0)


def at(path: Path) -> str:
    return f"sqlite:///{path}"


async def test_a_key_sees_its_own_usage_and_an_admin_that_of_all(
    keys: Keys, bearer: Bearer
) -> None:
    one, two = keys.create("one"), keys.create("two", limits={"turns_per_minute": 1})
    admin = keys.create("boss", admin=True)
    async with speaking(keys.server(api_keys=(OWN,))) as server:
        samples = 0
        async with server.talk(additional_headers=bearer(one)) as talker:
            await talker.send("text", text="Good morning.", end=True)
            samples += (await talker.until("turn.done"))[-1]["samples"]
        answer = await say(server, "Good evening.", bearer(one))
        samples += len(answer.content) // 2
        statuses = [(await say(server, "Hello.", bearer(two))).status_code for _ in range(3)]
        assert statuses == [200, 429, 429]

        own = (await get(server, "/v1/usage", bearer(one))).json()
        assert (own["key"], own["name"]) == (keys.id("one"), "one")
        assert (own["turns"], own["characters"], own["refusals"]) == (2, 26, 0)
        assert own["audio_seconds"] == pytest.approx(samples / 24_000, abs=0.001)
        assert [sum(day["turns"] for day in own["days"]), len(own["days"])] == [2, 1]
        for shown in (admin, OWN):
            found = (await get(server, "/v1/usage", bearer(shown))).json()["keys"]
            assert {each["name"]: each["turns"] for each in found} == {"one": 2, "two": 1}
            assert {each["name"]: each["refusals"] for each in found} == {"one": 0, "two": 2}
        unknown = (await get(server, "/v1/usage?days=1", bearer(f"{one}x"))).status_code
        assert unknown == 401
        for days in ("0", "x", "367", "-1", "9" * 30):
            answer = await get(server, f"/v1/usage?days={days}", bearer(one))
            assert answer.status_code == 400, days


async def test_a_key_that_ends_meanwhile_does_not_see_the_usage_of_others(
    keys: Keys, bearer: Bearer
) -> None:
    secrets = {keys.id(name): (name, secret) for name in "ab" if (secret := keys.create(name))}
    async with speaking(keys.server()) as server:
        for _, secret in secrets.values():
            await say(server, "Hello.", bearer(secret))
        front = server.running.front
        last = max(secrets)  # the other one comes first in a list of all
        assert front.access is not None
        account = front.access.account(last)
        assert account is not None
        keys.revoke(secrets[last][0])
        await until(lambda: account.ended)
        (route,) = usage_routes(front)
        assert isinstance(route, Route)
        scope = {"type": "http", "query_string": b"", ACCOUNT: account}
        own = json.loads((await route.endpoint(Request(scope))).body)
        assert (own["key"], own["turns"]) == (last, 1)


async def test_a_server_without_keys_has_no_usage() -> None:
    async with speaking() as server:
        assert await server.status("http", "/v1/usage") == 404


def test_days_are_those_of_utc_and_old_ones_stay(tmp_path: Path) -> None:
    now = [20_000 * DAY + 100.0]
    usage = Usage(at(tmp_path / "u.db"), lambda: now[0])
    usage.spoke(key("a"), 1, 24_000, 10)
    now[0] -= 200.0
    usage.spoke(key("a"), 1, 48_000, 20)
    now[0] += 200.0
    usage.write()
    found = usage.days("id-a", 2)
    assert [(row["turns"], row["characters"], row["audio_seconds"]) for row in found] == [
        (1, 20, 2.0),
        (1, 10, 1.0),
    ]
    assert len(usage.days("id-a", 1)) == 1
    assert usage.days("id-b", 2) == []
    usage.stop()


def check_many_writers(url: str) -> None:
    writers = [Usage(url) for _ in range(4)]

    def write(usage: Usage) -> None:
        for _ in range(10):
            usage.spoke(key("a"), 1, 24_000, 3)
            usage.refused(key("b"))
            usage.write()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, writers))
    (a,) = writers[0].days("id-a", 1)
    (b,) = writers[1].days("id-b", 1)
    assert (a["turns"], a["characters"], a["audio_seconds"], a["refusals"]) == (40, 120, 40.0, 0)
    assert (b["turns"], b["refusals"]) == (0, 40)
    for usage in writers:
        usage.stop()


def test_many_processes_add_up_in_sqlite(tmp_path: Path) -> None:
    check_many_writers(at(tmp_path / "u.db"))


def test_who_reads_sees_what_is_being_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = Usage(at(tmp_path / "usage.db"))
    usage.spoke(key("acme"), 1, 24_000, 10)
    begun, go_on, insert = Event(), Event(), usage._insert

    def slowly(counted: Any) -> None:
        begun.set()
        assert go_on.wait(SECONDS)
        insert(counted)

    monkeypatch.setattr(usage, "_insert", slowly)
    with ThreadPoolExecutor(2) as threads:
        writing = threads.submit(usage.write)
        assert begun.wait(SECONDS)
        reading = threads.submit(usage.days, None, 1)
        with pytest.raises(TimeoutError):
            reading.result(0.1)
        go_on.set()
        writing.result(20)
        assert [row["turns"] for row in reading.result(20)] == [1]
    usage.stop()


def test_a_database_that_is_away_loses_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "later"
    usage = Usage(at(folder / "u.db"))
    usage.spoke(key("a"), 1, 24_000, 5)
    with pytest.raises(sqlalchemy.exc.OperationalError):
        usage.write()
    usage.spoke(key("a"), 1, 24_000, 5)
    with pytest.raises(OSError, match="database for usage"):
        usage.days(None, 1)
    folder.mkdir()
    (row,) = usage.days("id-a", 1)
    assert (row["turns"], row["characters"]) == (2, 10)
    usage.stop()


def test_a_database_that_was_replaced_by_an_empty_one_is_used(tmp_path: Path) -> None:
    """A file that was moved away, for example: SQLite writes no more to the one that is open."""
    file = tmp_path / "u.db"
    usage, reader = Usage(at(file)), Usage(at(file))
    for turns in (2, 1):
        for _ in range(turns):
            usage.spoke(key("a"), 1, 24_000, 5)
        for one in (usage, reader):
            with contextlib.suppress(OSError):  # the new file has no table yet
                one.days(None, 1)
            (row,) = one.days(None, 1)
            assert row["turns"] == turns
        file.rename(tmp_path / f"{turns}.db")
    usage.stop()
    reader.stop()


def test_what_a_database_that_is_away_does_not_take_is_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "nowhere" / "u.db"
    usage = Usage(at(file))
    usage.start()
    usage.spoke(key("a"), 1, 24_000, 5)
    wait_until(lambda: "usage.not_written" in caplog.text)
    with pytest.raises(OSError, match="u.db: unable to open database file"):
        usage.days(None, 1)
    usage.stop()
    told = {record.getMessage(): vars(record)["fields"] for record in caplog.records}
    assert told["usage.not_written"]["why"] == f"{file}: unable to open database file"
    lost = told["usage.lost"]
    assert (lost["key"], lost["turns"], lost["characters"]) == ("id-a", 1, 5)


def test_a_database_that_cannot_be_used_is_told_before_anyone_speaks(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    usage = Usage(at(tmp_path / "nowhere" / "u.db"))
    usage.start()
    wait_until(lambda: "usage.not_written" in caplog.text)
    usage.stop()
    assert "usage.lost" not in caplog.text


def test_a_part_of_a_password_is_not_taken_for_a_host() -> None:
    with pytest.raises(ConfigError, match="in a password as %40") as refused:
        Usage("postgresql+psycopg://tts:half@secret@db.example/tts")
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("url", ["", "u.db", "mysql://h/d", "oracle://h/d", "sqlite+nothing:///x"])
def test_an_address_that_is_none_is_told_without_its_password(url: str) -> None:
    with pytest.raises(ConfigError, match="database"):
        Usage(url)


@contextlib.contextmanager
def postgresql(folder: Path) -> Iterator[str]:
    """A server of its own, on a Unix socket."""
    tools = Path(os.path.realpath(shutil.which("postgres") or "")).parent
    owner = "postgres" if os.geteuid() == 0 else None
    data = folder / "data"

    def run(*words: str) -> None:
        subprocess.run(words, check=True, user=owner, capture_output=True, cwd=folder)

    if owner:
        shutil.chown(folder, owner)
    run(str(tools / "initdb"), "-D", str(data), "-U", "tts", "-A", "trust")
    options = f"-k {folder} -c listen_addresses="
    run(str(tools / "pg_ctl"), "-D", str(data), "-w", "-l", f"{folder}/log", "-o", options, "start")
    try:
        yield f"postgresql+psycopg://tts@/postgres?host={folder}"
    finally:
        run(str(tools / "pg_ctl"), "-D", str(data), "-m", "immediate", "stop")


def test_many_processes_add_up_in_postgresql() -> None:
    pytest.importorskip("psycopg", reason="needs psycopg (extra `keys`)")
    if shutil.which("postgres") is None:
        pytest.skip("needs PostgreSQL's server (Debian: apt-get install postgresql)")
    with tempfile.TemporaryDirectory() as folder, postgresql(Path(folder)) as url:
        check_many_writers(url)


async def test_a_database_that_hangs_holds_up_nobody_else(
    keys: Keys, bearer: Bearer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The threads of the event loop read lexicons and voices, too, and there are 32 at most."""
    go_on = Event()
    monkeypatch.setattr(Usage, "days", lambda *_: go_on.wait(SECONDS) and [])
    monkeypatch.setattr("realtime_tts.server.usage._PATIENCE_SECONDS", 0.2)
    async with speaking(keys.server(api_keys=(OWN,))) as server:
        asking = [asyncio.create_task(get(server, "/v1/usage", bearer(OWN))) for _ in range(40)]
        try:
            async with asyncio.timeout(5.0):
                answers = await asyncio.gather(*asking)
                await asyncio.to_thread(lambda: None)
        finally:
            go_on.set()
        assert {answer.status_code for answer in answers} == {503}
        assert (await get(server, "/v1/usage", bearer(OWN))).json() == {"keys": []}


async def test_a_killed_server_loses_the_last_second_at_most(keys: Keys, bearer: Bearer) -> None:
    secret = keys.create("acme")
    access = (str(keys.path), None, None)
    async with serving(access=access, fronts=2) as server:
        headers = bearer(secret)
        async with sessions(server, 4, additional_headers=headers) as opened:
            for one in opened:
                await one.say("Twelve chars")
            for one in opened:
                assert (await one.until("turn.done"))["reason"] == "complete"
            await asyncio.sleep(1.0)
            for process in (*server.fronts, server.main):
                process.send_signal(signal.SIGKILL)
    usage = Usage(at(Path(f"{keys.path}.usage.db")))
    (row,) = await asyncio.to_thread(usage.days, keys.id("acme"), 2)
    assert (row["turns"], row["characters"]) == (4, 48)
    usage.stop()


def limits_table(server: Server) -> Path:
    """Where its fronts tell each other what their keys have open."""
    opened = (one for front in server.fronts for one in front.open_files())
    (table,) = {Path(one.path) for one in opened if one.path.endswith("limits.db")}
    return table


class Told(NamedTuple):
    sessions: int
    at: float


def told(table: Path) -> list[Told]:
    """What each front has told last, and when."""
    with contextlib.closing(sqlite3.connect(table)) as database:
        rows = "SELECT sum(sessions), max(at) FROM held GROUP BY front ORDER BY front"
        return [Told(*row) for row in database.execute(rows)]


async def exchanged(table: Path) -> None:
    """Wait until both fronts know what each has counted: all have told it, and then listened."""
    for _ in range(2):
        now = time.time()
        await until(lambda: sum(one.at > now for one in told(table)) == 2)  # noqa: B023


async def test_limits_hold_over_all_fronts_and_so_does_revocation(
    keys: Keys, bearer: Bearer
) -> None:
    secret = keys.create("acme", limits={"sessions": 4, "turns_per_minute": 6})
    headers = bearer(secret)
    async with serving(access=(str(keys.path), None, None), fronts=2) as server:
        table = limits_table(server)
        async with sessions(server, 4, additional_headers=headers) as opened:
            assert [server.sockets_of(front) for front in server.fronts] == [2, 2]
            await until(lambda: [one.sessions for one in told(table)] == [2, 2])
            await exchanged(table)
            for _ in range(2):
                path, started = "/v1/audio/speech", time.monotonic()
                body = {"model": "tts-1", "voice": "alto", "input": "Hello."}
                answer = await server.get(path, method="POST", json=body, headers=headers)
                assert answer.status_code == 429, time.monotonic() - started
            for number in range(12):
                one = opened[number % 4]
                done = len(one.of("turn.done"))
                await one.say("Hello.")
                await until(lambda: len(one.of("turn.done")) > done)  # noqa: B023
                await exchanged(table)
            reasons = [done["reason"] for one in opened for done in one.of("turn.done")]
            spoken = reasons.count("complete")
            assert 6 <= spoken <= 7, "a front may not know of the other's last one"
            keys.revoke("acme")
            async with asyncio.timeout(SECONDS):
                await asyncio.gather(*(one.task for one in opened))
            assert {one.socket.close_code for one in opened} == {4401}
        with pytest.raises(httpx2.HTTPStatusError):
            (await server.get("/v1/voices", headers=headers)).raise_for_status()


async def test_a_token_for_one_use_leaves_what_the_fronts_share(keys: Keys, bearer: Bearer) -> None:
    """Old tokens are swept when one is used; the table of limits is old where nobody spoke."""
    secret = keys.create("acme")
    async with serving(access=(str(keys.path), None, None), fronts=2) as server:
        table = limits_table(server)
        os.utime(table, (0, 0))
        once = "/v1/single-use-token/tts_websocket"
        answer = await server.get(once, method="POST", headers=bearer(secret))
        shown = bearer(answer.json()["token"])
        assert (await server.get("/v1/voices", headers=shown)).status_code == 200
        assert table.exists()
        assert (await server.get("/v1/voices", headers=shown)).status_code == 401
