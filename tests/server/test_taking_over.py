"""New settings for a running server: all of its parts take them over, or none does."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from realtime_tts.cli.serve import server_config, tls_files
from realtime_tts.cli.serve_arguments import RELOADED, add_arguments
from realtime_tts.cli.serve_settings import serve_options
from realtime_tts.config import AddressConfig, LimitsConfig, ServerConfig
from realtime_tts.configuration.reload import Reloads
from realtime_tts.errors import ConfigError
from realtime_tts.server.addresses import ClientAddresses
from tests.server.asking import client_of
from tests.server.speaking import speaking

KEY, OTHER = "first-key-of-all", "second-key-of-all"


class Refusing:
    def prepare(self, config: ServerConfig) -> Callable[[], None]:
        raise ConfigError("not this")


async def test_if_one_part_refuses_no_part_changes() -> None:
    async with speaking(ServerConfig(port=0, api_keys=(KEY,))) as server:
        front = server.running.front
        front.reloads.add(Refusing())
        before = front.config
        with pytest.raises(ConfigError, match="not this"):
            await front.reloads.apply(replace(before, api_keys=(OTHER,), log_level="debug"))
        assert front.config is before
        async with client_of(server) as http:
            known = await http.get("/v1/load", headers={"x-api-key": KEY})
            unknown = await http.get("/v1/load", headers={"x-api-key": OTHER})
        assert (known.status_code, unknown.status_code) == (200, 401)


class Slow:
    """Takes its time for the first of two configs."""

    def __init__(self) -> None:
        self.taken: list[str] = []

    def prepare(self, config: ServerConfig) -> Callable[[], None]:
        if config.log_level == "info":
            time.sleep(0.2)
        return lambda: self.taken.append(config.log_level)


async def test_of_two_settings_the_later_ones_hold() -> None:
    reloads, slow = Reloads(), Slow()
    reloads.add(slow)
    levels = ("info", "warning")
    before = logging.getLogger().level
    try:
        await asyncio.gather(*(reloads.apply(ServerConfig(log_level=one)) for one in levels))
        assert slow.taken == [*levels] and logging.getLogger().level == logging.WARNING
    finally:
        logging.getLogger().setLevel(before)


async def test_tokens_of_keys_that_stay_hold_on() -> None:
    config = ServerConfig(port=0, api_keys=(KEY, OTHER))
    async with speaking(config) as server:
        async with client_of(server) as http:
            tokens = [
                (await http.post("/v1/token", headers={"x-api-key": key})).json()["token"]
                for key in (KEY, OTHER)
            ]
            await server.running.front.reloads.apply(replace(config, api_keys=(KEY,)))
            asked = [await http.get("/v1/voices", headers={"x-api-key": token}) for token in tokens]
        assert [one.status_code for one in asked] == [200, 401]


async def test_longer_messages_may_come_over_sockets_that_are_opened_afterwards() -> None:
    config = ServerConfig(port=0)
    message = json.dumps({"type": "text", "text": "a" * 1_200_000})
    async with speaking(config) as server:
        url = server.running.websocket_url

        async def answer() -> str:
            async with connect(url, proxy=None) as socket:
                await socket.recv()
                await socket.send(message)
                try:
                    return str(await socket.recv())
                except ConnectionClosed as closed:
                    return str(closed.rcvd and closed.rcvd.code)

        assert await answer() == "1009"
        limits = LimitsConfig(max_message_bytes=2_000_000)
        await server.running.front.reloads.apply(replace(config, limits=limits))
        assert "16384" in await answer(), "it was read, and is too long for a text"


def test_addresses_that_are_known_may_do_what_the_new_settings_say() -> None:
    addresses = ClientAddresses(AddressConfig(connections_per_second=1))
    known = addresses.of(("10.0.0.1", 1)), addresses.of_key(b"key")
    assert sum(known[0].requests.take(0.0) for _ in range(9)) == 4
    assert sum(known[1].take(0.0) for _ in range(9)) == 4
    addresses.take_over(AddressConfig(connections_per_second=2, handshakes=1))
    assert addresses.of(("10.0.0.1", 2)) is known[0] and addresses.of_key(b"key") is known[1]
    assert sum(known[0].requests.take(60.0) for _ in range(9)) == 8
    assert sum(known[1].take(60.0) for _ in range(9)) == 8
    dropped: list[str] = []
    known[0].begin_handshake("a", lambda: dropped.append("a"))
    known[0].begin_handshake("b", lambda: dropped.append("b"))
    assert dropped == ["a"]


OTHERS: dict[str, object] = {
    "api_key": [OTHER],
    "log_level": "error",
    "turn_reserve": 0.5,
    "tls_cert": "other.pem",
    "max_text_chars": 99,
}
"""Values that are not the default, where one more is none."""


def test_the_document_lists_what_is_reloaded() -> None:
    """Names of options, or whole tables of them, in the first column."""
    text = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text(encoding="utf-8")
    section = text.split("## What is reloaded")[1].split("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| ")]
    named = {name for row in rows for name in re.findall(r"`(.+?)`", row)}
    options = serve_options()
    listed = {one.dest for one in options if named & {one.name, f"[{one.table}]"}}
    assert listed == RELOADED
    assert named <= {one.name for one in options} | {f"[{one.table}]" for one in options}


@pytest.mark.parametrize("dest", sorted(RELOADED))
def test_all_that_is_reloaded_is_in_the_config_that_the_parts_get(dest: str) -> None:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    before = parser.parse_args(["--tls-cert", "one.pem"])
    (option,) = [option for option in serve_options() if option.dest == dest]
    more = option.default + 1 if isinstance(option.default, (int, float)) else 1
    value = OTHERS.get(dest, "key.pem" if option.kind is str else more)
    after = argparse.Namespace(**vars(before) | {dest: value})
    configs = [server_config(one, terminal=False, tls=tls_files(one)) for one in (before, after)]
    assert configs[0] != configs[1]
