"""Keys over real sockets: who is let in, what is refused, and what ends when a key does."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
import websockets

from realtime_tts.config import AccessConfig, ServerConfig
from tests.access.conftest import Keys
from tests.server.asking import answer_to
from tests.server.speaking import speaking
from tests.server.talking import denied, of_type
from tests.waiting import until

Bearer = Callable[[str], dict[str, str]]
OWN = "the-servers-own-key"


async def get(server: Any, path: str, headers: dict[str, str]) -> httpx2.Response:
    return await answer_to(server, "GET", path, headers=headers)


async def say(server: Any, text: str, headers: dict[str, str], **fields: Any) -> httpx2.Response:
    body = {"input": text, "model": "tts-1", "voice": "alto", "response_format": "pcm"} | fields
    return await answer_to(server, "POST", "/v1/audio/speech", json=body, headers=headers)


async def test_only_a_valid_key_comes_in(keys: Keys, bearer: Bearer) -> None:
    secret = keys.create("acme")
    over = keys.create("over", expires=time.time() - 1)
    wrong = secret[:-1] + ("a" if secret[-1] != "a" else "b")
    async with speaking(keys.server(api_keys=(OWN,))) as server:
        for shown, status in [(secret, 101), (OWN, 101), (wrong, 401), (over, 401), ("x", 401)]:
            assert await server.status("websocket", "/v1/tts", bearer(shown)) == status
        assert await server.status("websocket", "/v1/tts") == 401


async def test_a_server_with_an_empty_file_of_keys_is_open_to_nobody(
    keys: Keys, bearer: Bearer
) -> None:
    async with speaking(keys.server()) as server:
        assert await server.status("http", "/v1/voices") == 401
        secret = keys.create("first")
        await until(lambda: server.access.account_of(secret.encode()))
        assert await server.status("http", "/v1/voices", bearer(secret)) == 200


async def test_sockets_of_a_key_that_is_revoked_are_closed_with_4401(
    keys: Keys, bearer: Bearer
) -> None:
    secret, other = keys.create("acme"), keys.create("other")
    async with speaking(keys.server()) as server:
        async with (
            server.talk(additional_headers=bearer(secret)) as ended,
            server.talk(additional_headers=bearer(other)) as kept,
        ):
            await ended.send("text", turn_id="a", text="It is spoken for a long time. " * 50)
            await ended.until("turn.started")
            began = time.monotonic()
            keys.revoke("acme")
            seen = await ended.rest()
            assert time.monotonic() - began < 20
            assert ended.socket.close_code == 4401
            told = [one for one in seen if isinstance(one, dict)]
            error = next(one for one in told if one["type"] == "error")
            assert (error["code"], error["fatal"], error["retryable"]) == (
                "unauthorized",
                True,
                False,
            )
            assert told[-1]["type"] == "turn.done"
            await kept.send("text", turn_id="b", text="Nobody else notices.", end=True)
            assert (await kept.until("turn.done"))[-1]["reason"] == "complete"
        assert await server.status("websocket", "/v1/tts", bearer(secret)) == 401
        await server.settled()


async def test_rotation_ends_the_old_secret_and_takes_the_new_one(
    keys: Keys, bearer: Bearer
) -> None:
    from realtime_tts.cli import main

    old = keys.create("acme")
    async with speaking(keys.server()) as server:
        async with server.talk(additional_headers=bearer(old)) as talker:
            before = keys.file.read()
            assert (
                await asyncio.to_thread(main, ["keys", "rotate", "acme", "--keys", str(keys.path)])
                == 0
            )
            await talker.rest()
            assert talker.socket.close_code == 4401
        assert before.keys() == keys.file.read().keys(), "its usage and limits go on"
        assert await server.status("http", "/v1/voices", bearer(old)) == 401


async def test_a_key_that_expires_ends_its_sockets(keys: Keys, bearer: Bearer) -> None:
    secret = keys.create("acme", expires=time.time() + 1.5)
    async with speaking(keys.server()) as server:
        async with server.talk(additional_headers=bearer(secret)) as talker:
            await talker.rest()
            assert talker.socket.close_code == 4401


async def test_keys_end_also_after_a_fault_of_who_looks_at_them(
    keys: Keys,
    bearer: Bearer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    secret = keys.create("acme")
    async with speaking(keys.server()) as server:
        access = server.running.front.access
        with monkeypatch.context() as broken:
            broken.setattr(access, "_changed", lambda: 1 / 0)
            await until(lambda: "keys.failed" in caplog.text)
        async with server.talk(additional_headers=bearer(secret)) as talker:
            keys.revoke("acme")
            await talker.rest()
            assert talker.socket.close_code == 4401


async def test_that_a_key_has_ended_is_in_the_log_once(
    keys: Keys,
    bearer: Bearer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """However long its sockets take to close."""
    caplog.set_level(logging.INFO)
    monkeypatch.setattr("realtime_tts.access.access._LOOK_SECONDS", 0.05)
    secret = keys.create("acme", expires=time.time() + 1.0)
    async with speaking(keys.server()) as server:
        access, looks = server.access, 0
        monkeypatch.setattr(access, "on_revoked", lambda account: None)
        end_expired = access._end_expired

        def look() -> None:
            nonlocal looks
            looks += 1
            end_expired()

        async with server.talk(additional_headers=bearer(secret)):
            await until(lambda: "keys.ended" in caplog.text)
            monkeypatch.setattr(access, "_end_expired", look)
            await until(lambda: looks == 3)
    assert [record.getMessage() for record in caplog.records].count("keys.ended") == 1


async def test_a_key_that_had_expired_by_a_wrong_clock_is_good_again(
    keys: Keys, bearer: Bearer, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = keys.create("acme", expires=time.time() + 600)
    async with speaking(keys.server()) as server:
        account = server.access.account_of(secret.encode())
        assert account is not None
        monkeypatch.setattr(server.access, "_clock", lambda: time.time() + 3_600)
        await until(lambda: account.ended)
        monkeypatch.setattr(server.access, "_clock", time.time)
        await until(lambda: not account.ended)
        answer = await say(server, "It speaks.", bearer(secret))
        assert answer.status_code == 200, answer.text


async def test_a_socket_of_another_api_is_closed_so_too(keys: Keys, bearer: Bearer) -> None:
    secret = keys.create("acme")
    async with speaking(keys.server()) as server:
        url = f"ws://127.0.0.1:{server.port}/v1/speak"
        headers = {"Authorization": f"Token {secret}"}
        async with websockets.connect(url, additional_headers=headers) as socket:
            await socket.send(json.dumps({"type": "Speak", "text": "Good morning."}))
            keys.revoke("acme")
            with pytest.raises(websockets.ConnectionClosed):
                while True:
                    await socket.recv()
            assert socket.close_code == 4401


async def test_over_elevenlabs_api_the_error_has_the_code_of_the_close(keys: Keys) -> None:
    secret = keys.create("acme")
    async with speaking(keys.server()) as server:
        url = f"ws://127.0.0.1:{server.port}/v1/text-to-speech/alto/stream-input"
        async with websockets.connect(url, additional_headers={"xi-api-key": secret}) as socket:
            await socket.send(json.dumps({"text": " "}))
            keys.revoke("acme")
            error = json.loads(await socket.recv())
            await socket.wait_closed()
            assert error["error"] == "invalid_api_key"
            assert error["code"] == socket.close_code == 1008


async def test_a_request_whose_key_ends_while_its_body_comes_is_refused(
    keys: Keys, bearer: Bearer
) -> None:
    secret = keys.create("acme")
    async with speaking(keys.server()) as server:

        async def body() -> AsyncIterator[bytes]:
            yield b'{"model": "tts-1", "voice": "alto", '
            keys.revoke("acme")
            await until(lambda: server.access.account_of(secret.encode()) is None)
            yield b'"input": "Good morning."}'

        headers = bearer(secret) | {"Content-Type": "application/json"}
        answer = await answer_to(
            server, "POST", "/v1/audio/speech", content=body(), headers=headers
        )
    assert answer.status_code == 401 and "no longer valid" in answer.text


async def test_garbage_in_the_file_leaves_the_keys_as_they_were(
    keys: Keys, bearer: Bearer, caplog: pytest.LogCaptureFixture
) -> None:
    secret = keys.create("acme")
    async with speaking(keys.server()) as server:
        async with server.talk(additional_headers=bearer(secret)) as talker:
            with caplog.at_level(logging.ERROR):
                keys.path.write_text("{half a file")
                await until(lambda: "keys.not_loaded" in caplog.text)
            assert await server.status("http", "/v1/voices", bearer(secret)) == 200
            await talker.send("text", text="Still here.", end=True)
            assert (await talker.until("turn.done"))[-1]["reason"] == "complete"


async def test_what_fails_beside_the_turns_is_in_the_metrics_until_it_works_again(
    keys: Keys, tmp_path: Path
) -> None:
    pytest.importorskip("redis")
    keys.create("acme")
    folder = tmp_path / "later"
    nowhere = f"sqlite:///{folder}/u.db", "redis://127.0.0.1:1"
    config = ServerConfig(port=0, access=AccessConfig(str(keys.path), *nowhere))
    async with speaking(config) as server:

        def failing(task: str) -> float:
            return server.value("tts_background_failing", task=task)

        assert failing("keys") == 0
        written = keys.path.read_bytes()
        keys.path.write_text("{half a file")
        await until(lambda: failing("keys") and failing("usage") and failing("limits"))
        keys.path.write_bytes(written)
        folder.mkdir()
        await until(lambda: not failing("keys") and not failing("usage"))
        assert failing("limits")


async def test_a_key_has_so_many_sessions_and_no_more(keys: Keys, bearer: Bearer) -> None:
    secret, other = keys.create("acme", limits={"sessions": 2}), keys.create("other")
    async with speaking(keys.server()) as server:
        async with server.talk(additional_headers=bearer(secret)) as one:
            async with server.talk(additional_headers=bearer(secret)):
                response = await denied(server.talk(additional_headers=bearer(secret)))
                assert response.status_code == 429
                assert int(response.headers["retry-after"]) >= 1
                error = json.loads(response.body)
                assert error["code"] == "key_limit_reached"
                assert "sessions" in error["message"]
                assert error["retry_after_ms"] > 0
                assert (await say(server, "Hello.", bearer(secret))).status_code == 429
                async with server.talk(additional_headers=bearer(other)):
                    pass
            keys.replace("acme", limits={"sessions": 3})
            await one.send("session.close")
        await server.settled()


async def test_turns_beyond_the_limit_are_errors_of_their_turn(keys: Keys, bearer: Bearer) -> None:
    secret = keys.create("acme", limits={"turns_per_minute": 2})
    async with speaking(keys.server()) as server:
        async with server.talk(additional_headers=bearer(secret)) as talker:
            for turn in ("a", "b"):
                await talker.send("text", turn_id=turn, text="Hello.", end=True)
                assert (await talker.until("turn.done"))[-1]["reason"] == "complete"
            await talker.send("text", turn_id="c", text="Hello.", end=True)
            error, done = await talker.until("turn.done")
            assert (error["code"], error["turn_id"]) == ("key_limit_reached", "c")
            assert error["retryable"] and 0 < error["retry_after_ms"] <= 60_000
            assert "turns_per_minute" in error["message"]
            assert (done["reason"], done["samples"]) == ("error", 0)
        answer = await say(server, "Hello.", bearer(secret))
        assert answer.status_code == 429
        assert 1 <= int(answer.headers["retry-after"]) <= 60
        assert secret not in answer.text


async def test_characters_beyond_the_limit_end_the_turn(keys: Keys, bearer: Bearer) -> None:
    secret = keys.create("acme", limits={"chars_per_day": 20})
    async with speaking(keys.server()) as server:
        async with server.talk(additional_headers=bearer(secret)) as talker:
            await talker.send("text", turn_id="a", text="Twelve chars")
            await talker.send("text", turn_id="a", text=" and more.")
            seen = await talker.until("turn.done")
            error = of_type(seen, "error")[0]
            assert error["code"] == "key_limit_reached"
            assert "chars_per_day" in error["message"]
            assert seen[-1]["reason"] == "error"
            await talker.send("turn.end", turn_id="a")
            await talker.send("text", turn_id="b", text="12345678", end=True)
            assert (await talker.until("turn.done"))[-1]["reason"] == "complete", "20 of 20"
        answer = await say(server, "x" * 21, bearer(secret))
        assert answer.status_code == 429
        assert "retry-after" not in answer.headers, "no window could hold it, whenever it began"


async def test_so_many_turns_speak_at_once(keys: Keys, bearer: Bearer) -> None:
    secret = keys.create("acme", limits={"turns": 1})
    async with speaking(keys.server()) as server:
        async with (
            server.talk(additional_headers=bearer(secret)) as one,
            server.talk(additional_headers=bearer(secret)) as two,
        ):
            await one.send("text", turn_id="a", text="A long text. " * 40)
            await one.until("turn.started")
            await two.send("text", turn_id="b", text="No.", end=True)
            assert (await two.until("turn.done"))[-1]["reason"] == "error"
            await one.send("interrupt", turn_id="a")
            await one.until("turn.done")
            await two.send("text", turn_id="c", text="Yes.", end=True)
            assert (await two.until("turn.done"))[-1]["reason"] == "complete"


async def test_a_key_speaks_with_its_voices_only(keys: Keys, bearer: Bearer) -> None:
    secret = keys.create("acme", voices=("al*",))
    async with speaking(keys.server()) as server:
        async with server.talk("?voice=alto", additional_headers=bearer(secret)) as talker:
            await talker.send("session.start", voice="bass")
            assert (await talker.next())["type"] == "error"
            await talker.send("text", text="Spoken by one.", end=True)
            assert (await talker.until("turn.done"))[-1]["reason"] == "complete"
        refused = await say(server, "Hello.", bearer(secret), voice="bass")
        unknown = await say(server, "Hello.", bearer(secret), voice="nope")
        assert refused.status_code == unknown.status_code == 400
        assert refused.text.replace("bass", "nope") == unknown.text, "who guesses learns nothing"
        assert (await say(server, "Hello.", bearer(secret), voice="alto")).status_code == 200
        async with websockets.connect(
            server.running.websocket_url + "?voice=alto", additional_headers=bearer(secret)
        ) as socket:
            assert json.loads(await socket.recv())["voices"] == ["alto"]
        for path in ("/v1/audio/voices", "/v1/voices"):
            assert "bass" not in (await get(server, path, bearer(secret))).text, path
            assert "bass" not in (await get(server, path, {"xi-api-key": secret})).text, path
        listed = (await get(server, "/v1/voices", bearer(secret))).json()
        assert listed["voices"] == ["alto"]
        assert (await get(server, "/v1/voices/bass", bearer(secret))).status_code == 404


async def test_a_key_is_for_pages_of_its_origins(keys: Keys, bearer: Bearer) -> None:
    secret = keys.create("acme", origins=("https://acme.example",))
    allowed = ("https://acme.example", "https://other.example")
    async with speaking(keys.server(allowed_origins=allowed)) as server:
        for origin, status in zip(allowed, (200, 403), strict=True):
            headers = bearer(secret) | {"Origin": origin}
            assert await server.status("http", "/v1/voices", headers) == status
        assert await server.status("http", "/v1/voices", bearer(secret)) == 200


async def test_what_is_of_all_customers_is_for_admins(keys: Keys, bearer: Bearer) -> None:
    secret, admin = keys.create("acme"), keys.create("boss", admin=True)
    async with speaking(keys.server(api_keys=(OWN,))) as server:
        for path in ("/metrics", "/v1/load"):
            for shown, status in ((secret, 403), (admin, 200), (OWN, 200)):
                assert await server.status("http", path, bearer(shown)) == status, path


async def test_a_token_is_as_good_as_its_key_and_ends_with_it(keys: Keys, bearer: Bearer) -> None:
    secret = keys.create("acme", limits={"sessions": 1})
    async with speaking(keys.server()) as server:
        answer = await answer_to(server, "POST", "/v1/token", headers=bearer(secret))
        token = answer.json()["token"]
        assert secret not in token
        async with server.talk(
            subprotocols=["realtime-tts.v1", f"realtime-tts.key.{token}"]
        ) as one:
            assert await server.status("websocket", "/v1/tts", bearer(secret)) == 429
            keys.revoke("acme")
            await one.rest()
            assert one.socket.close_code == 4401
        assert await server.status("websocket", "/v1/tts", bearer(token)) == 401


async def test_nothing_that_is_said_has_a_secret_in_it(
    keys: Keys, bearer: Bearer, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    secret = keys.create("acme", limits={"turns_per_minute": 1})
    with caplog.at_level(logging.DEBUG):
        async with speaking(keys.server(api_keys=(OWN,))) as server:
            for _ in range(2):
                await say(server, "Hello.", bearer(secret))
            await say(server, "Hello.", bearer(secret + "x"))
            usage = (await get(server, "/v1/usage", bearer(secret))).text
            metrics = (await get(server, "/metrics", bearer(OWN))).text
    said = caplog.text + repr([vars(record) for record in caplog.records]) + usage + metrics
    assert keys.id("acme") in usage
    assert secret.split("_", 2)[2] not in said
    for path in await asyncio.to_thread(lambda: list(tmp_path.iterdir())):
        assert secret.encode() not in await asyncio.to_thread(path.read_bytes)


async def test_sessions_at_once_are_those_of_the_whole_fleet(
    keys: Keys, bearer: Bearer, redis: str
) -> None:
    shown = bearer(keys.create("acme", limits={"sessions": 1}))
    access = AccessConfig(str(keys.path), limits_store=redis)
    shared = ServerConfig(port=0, access=access)
    async with speaking(config=shared) as one, speaking(config=shared) as other:
        key_id = keys.id("acme")

        def known() -> int:
            account: Any = other.access.account(key_id)
            return int(account._elsewhere(key_id)[0])

        async with one.talk(additional_headers=shown):
            await until(lambda: known() == 1)
            assert await other.status("websocket", "/v1/tts", shown) == 429
        await until(lambda: known() == 0)
        assert await other.status("websocket", "/v1/tts", shown) == 101
