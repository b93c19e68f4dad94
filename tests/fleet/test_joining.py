"""Members that cannot join at once: their name is not known yet, or HAProxy does not answer."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import replace

import pytest

from realtime_tts.cli import ingress as command
from realtime_tts.fleet.haproxy import IngressConfig
from realtime_tts.fleet.ingress import Ingress
from realtime_tts.fleet.members import Member
from realtime_tts.fleet.runtime import RuntimeApi
from tests.fleet.running import (
    free_port,
    ingress_running,
    member,
    server,
    until_ready,
)
from tests.waiting import until


async def test_a_member_whose_name_is_not_known_at_the_start_joins_when_it_is(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    asked = 0

    def addresses(one: Member) -> list[str]:
        nonlocal asked
        asked += 1
        if asked < 4:
            raise OSError("Name or service not known")
        return ["127.0.0.1"]

    monkeypatch.setattr(Member, "addresses", addresses)
    monkeypatch.setattr(command, "_LOOK_SECONDS", 0.05)
    async with server(4) as one:
        named = (replace(member(one), host="tts-1"),)
        config = IngressConfig(bind=f"127.0.0.1:{free_port()}", slots=4)
        async with ingress_running(config, named) as ingress:
            following = asyncio.create_task(command._follow(ingress, named, None))
            with caplog.at_level(logging.ERROR):
                await until_ready(ingress, 1)
            following.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await following
    assert [record.message for record in caplog.records] == ["fleet.unknown_host"]


async def test_a_member_goes_where_its_name_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[str] = []

    def addresses(one: Member) -> list[str]:
        if not found:
            raise OSError("Temporary failure in name resolution")
        return list(found)

    monkeypatch.setattr(Member, "addresses", addresses)
    named = [Member("tts-1", 8000, 8001)]
    config = IngressConfig(bind=f"127.0.0.1:{free_port()}", slots=1)
    async with ingress_running(config) as ingress:
        for has, expected in (
            (["127.0.0.1"], "127.0.0.1"),
            (["127.0.0.2", "127.0.0.1"], "127.0.0.1"),  # in no order: it stays where it is
            (["127.0.0.2"], "127.0.0.2"),
            ([], "127.0.0.2"),
        ):
            found[:] = has
            await ingress.change(named)
            line = (await ingress.api.ask("show servers state servers")).splitlines()[2]
            assert line.split()[4] == expected, f"{has}: {line}"


async def test_a_member_that_is_named_by_its_address_is_looked_up_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    def addresses(one: Member) -> list[str]:
        asked.append(one.host)
        return ["127.0.0.1"]

    monkeypatch.setattr(Member, "addresses", addresses)
    named = [Member("127.0.0.1", 8000, 8001), Member("tts-1", 8000, 8001)]
    ingress = Ingress(IngressConfig(), haproxy="not started")
    for _ in range(3):
        await ingress.change(named)
    await ingress.stop()
    assert asked == ["127.0.0.1", "tts-1", "tts-1", "tts-1"]


async def test_a_member_that_haproxy_was_not_told_of_joins_when_it_is_named_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with server(4) as one:
        config = IngressConfig(bind=f"127.0.0.1:{free_port()}", slots=1)
        async with ingress_running(config) as ingress:
            with monkeypatch.context() as busy:

                async def too_late(api: RuntimeApi, command: str) -> str:
                    raise TimeoutError

                busy.setattr(RuntimeApi, "ask", too_late)
                await ingress.change([member(one)])
            await ingress.change([member(one)])
            await until_ready(ingress, 1)


async def test_a_haproxy_that_has_just_ended_reads_the_change_at_its_next_start() -> None:
    async with server(4) as one:
        config = IngressConfig(bind=f"127.0.0.1:{free_port()}", slots=1)
        async with ingress_running(config) as ingress:
            process = ingress._process
            assert process is not None
            process.kill()
            await process.wait()
            await ingress.change([member(one)])
            await until(lambda: ingress.starts == 2)
            async with ingress._changing:  # which the start holds until HAProxy answers
                pass
            await until_ready(ingress, 1)
