"""An HTTP client of a running server, and what a refusal of the house's own APIs looks like."""

from __future__ import annotations

import asyncio
import http.client
from collections.abc import Mapping
from typing import Any, NamedTuple

import httpx2

from tests.server.speaking import Speech


def client_of(speech: Speech, headers: dict[str, str] | None = None) -> httpx2.AsyncClient:
    """A client of the server that `speaking` has started."""
    return httpx2.AsyncClient(
        base_url=speech.running.url, timeout=60, trust_env=False, verify=False, headers=headers
    )


async def answer_to(speech: Speech, method: str, path: str, **options: Any) -> httpx2.Response:
    """The answer to one request of a client of its own."""
    async with client_of(speech) as http:
        return await http.request(method, path, **options)


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


async def get(
    server: Any,
    path: str = "/v1/voices",
    headers: Mapping[str, str] | None = None,
    source: str = "127.0.0.1",
) -> Answer:
    """The answer as it came, over a connection of its own from this address."""

    def ask() -> Answer:
        connection = http.client.HTTPConnection(
            "127.0.0.1", server.port, timeout=60, source_address=(source, 0)
        )
        connection.request("GET", path, headers=headers or {})
        found = connection.getresponse()
        named = {name.lower(): value for name, value in found.getheaders()}
        answer = Answer(found.status, named, found.read())
        connection.close()
        return answer

    return await asyncio.to_thread(ask)


def refusal(answer: httpx2.Response, status: int, code: str) -> str:
    """The message of an error in the house's format."""
    assert answer.status_code == status, answer.text
    error = answer.json()
    assert (error["type"], error["code"], error["fatal"]) == ("error", code, False)
    return str(error["message"])
