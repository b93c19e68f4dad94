"""Keys that may register voices, and those that may not: nothing is done for the latter."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from realtime_tts.server.endpoints import read_upload
from realtime_tts.voices.encoding import WorkerLimits
from tests.access.conftest import Keys
from tests.server.asking import refusal
from tests.server.asking_voices import EMBEDDING, WAV, voice_server
from tests.server.peers import Connecting
from tests.waiting import until

NOT_ALLOWED = 403, "voice_not_allowed"


async def test_a_key_that_registers_nothing_is_refused_before_its_upload_is_read(
    keys: Keys, peer: Connecting, tmp_path: Path
) -> None:
    secret, other = keys.create("acme"), keys.create("other", register=("other-*",))
    headers = {"Authorization": f"Bearer {other}"}
    one_place = WorkerLimits(places=1)
    async with voice_server(tmp_path, one_place, headers, config=keys.server()) as voices:
        raw = await peer(voices.speech.port)
        await raw.send(
            b"POST /v1/voices HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5000\r\n"
            b"Authorization: Bearer " + secret.encode() + b"\r\n"
            b"Content-Type: multipart/form-data; boundary=b\r\n\r\nsome"
        )
        assert b" 403 " in await raw.head()
        assert (await voices.clone("other-anna")).status_code == 201, "the place is free"
        for asked in ({"json": {"name": "a", "embedding": [1.0]}}, {"files": {"audio": WAV}}):
            shown = {"Authorization": f"Bearer {secret}"}
            answer = await voices.http.post("/v1/voices", headers=shown, **asked)
            refusal(answer, *NOT_ALLOWED)


@pytest.mark.parametrize("name", ["anna", "other-anna"])
async def test_a_name_that_is_not_for_the_key_is_refused_before_it_is_encoded(
    keys: Keys, tmp_path: Path, name: str
) -> None:
    secret = keys.create("acme", register=("acme-*",))
    headers = {"Authorization": f"Bearer {secret}"}
    async with voice_server(tmp_path, headers=headers, config=keys.server()) as voices:
        message = refusal(await voices.clone(name), *NOT_ALLOWED)
        assert repr(name) in message
        assert not (tmp_path / "started").exists(), "no encoder was loaded"
        refusal(await voices.give(name), *NOT_ALLOWED)
        assert (await voices.clone("acme-anna")).status_code == 201
        refusal(await voices.http.delete(f"/v1/voices/{name}"), *NOT_ALLOWED)


@pytest.mark.parametrize("how", ["is revoked", "expires"])
@pytest.mark.parametrize("kind", ["recording", "embedding"])
async def test_a_voice_whose_key_ends_while_its_body_comes_is_not_registered(
    keys: Keys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, how: str
) -> None:
    later = time.time() + 3_600
    secret = keys.create("acme", register=("*",), expires=later)
    other = keys.create("other")
    async with voice_server(tmp_path, config=keys.server()) as voices:
        if kind == "recording":
            asked = voices.http.build_request(
                "POST", "/v1/voices", data={"name": "anna"}, files={"audio": ("reference", WAV)}
            )
            content_type, whole = asked.headers["content-type"], asked.read()
        else:
            content_type = "application/json"
            whole = json.dumps({"name": "anna", "embedding": EMBEDDING}).encode()

        async def read(*arguments: Any) -> list[bytes]:
            reading.set()
            return await read_upload(*arguments)

        reading = asyncio.Event()
        monkeypatch.setattr("realtime_tts.server.voices.read_upload", read)

        async def body() -> AsyncIterator[bytes]:
            access = voices.speech.access
            account = access.account_of(secret.encode())
            assert account is not None
            yield whole[:100]
            await reading.wait()
            if how == "expires":
                monkeypatch.setattr(access, "_clock", lambda: later)
            else:
                keys.revoke("acme")
            await until(lambda: account.ended)
            yield whole[100:]

        shown = {"Authorization": f"Bearer {secret}", "Content-Type": content_type}
        answer = await voices.http.post("/v1/voices", content=body(), headers=shown)
        assert "no longer valid" in refusal(answer, 401, "unauthorized")
        voices.http.headers["Authorization"] = f"Bearer {other}"
        assert "anna" not in await voices.ids()
