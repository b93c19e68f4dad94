"""Who is let in, and what the health routes say meanwhile."""

from __future__ import annotations

import json
import logging
import threading
from typing import Any

import pytest
import websockets
from starlette.websockets import WebSocket

from realtime_tts.config import LimitsConfig, ServerConfig
from realtime_tts.engine.fake import FakeEngine, FakeEngineConfig
from realtime_tts.server.connection import Connection
from tests.engine.faulty import Faults
from tests.server.asking import answer_to, get
from tests.server.speaking import speaking
from tests.server.talking import BROWSER, denied, of_type
from tests.waiting import SECONDS, until


async def says(server: Any, path: str, status: int) -> bool:
    return (await get(server, path))[0] == status


async def test_probes_that_find_nothing_wrong_are_logged_at_debug_only(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def logged() -> list[str]:
        lines = [line.args for line in caplog.records if line.name == "uvicorn.access"]
        caplog.clear()
        return [f"{line[2]} {line[4]}" for line in lines if isinstance(line, tuple)]

    caplog.set_level(logging.INFO)
    async with speaking() as server:
        for path in ("/livez", "/readyz?from=haproxy", "/v1/voices", "/health"):
            assert await says(server, path, 200)
        assert logged() == ["/v1/voices 200"]
        caplog.set_level(logging.DEBUG)
        assert await says(server, "/livez", 200)
        assert logged() == ["/livez 200"]
        caplog.set_level(logging.INFO)
        server.running.front.drain()
        assert await says(server, "/readyz", 503)
        assert logged() == ["/readyz 503"]


async def test_the_routes_answer() -> None:
    async with speaking() as server:
        status, headers, body = await get(server, "/")
        assert status == 200
        assert b"/page/main.js" in body
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "server" not in headers
        status, _, body = await get(server, "/v1/voices")
        voices = json.loads(body)
        assert (voices["default_voice"], voices["sample_rate"]) == ("tenor", 24_000)
        assert "alto" in voices["voices"]
        status, headers, body = await get(server, "/metrics")
        assert headers["content-type"].startswith("text/plain")
        assert b"tts_sessions 0.0" in body
        assert (await get(server, "/livez"))[0] == 200
        assert (await get(server, "/readyz"))[0] == 200
        assert (await get(server, "/health"))[0] == 200
        assert (await get(server, "/v1/tts"))[0] == 426
        assert (await get(server, "/nothing"))[0] == 404


@pytest.mark.parametrize("path", ["/tts/websocket", "/v1/text-to-speech/alto/stream-input"])
async def test_a_socket_whose_upgrade_got_lost_is_told_so(path: str) -> None:
    async with speaking() as server:
        status, headers, body = await get(server, path)
        assert (status, headers["upgrade"]) == (426, "websocket")
        assert b"a proxy in between" in body


async def test_it_is_alive_while_it_loads_but_not_ready() -> None:
    loaded = threading.Event()
    fake = FakeEngine(FakeEngineConfig(frames_per_token=1))

    def load(progress: Any) -> FakeEngine:
        loaded.wait(SECONDS)
        return fake

    async with speaking(wait_ready=False, load=load) as server:
        assert (await get(server, "/livez"))[0] == 200
        status, _, body = await get(server, "/readyz")
        assert (status, body) == (503, b"the engine is loading\n")
        server.running.front.engine.loading = lambda: ": warm-up, 3 of 8"
        assert (await get(server, "/readyz"))[2] == b"the engine is loading: warm-up, 3 of 8\n"
        assert (await get(server, "/health"))[0] == 503
        assert (await get(server, "/v1/voices"))[0] == 503
        answer = await denied(server.talk())
        assert answer.status_code == 503
        assert int(answer.headers["retry-after"]) > 0
        assert json.loads(answer.body)["code"] == "not_ready"
        loaded.set()
        await until(lambda: says(server, "/readyz", 200))
        async with server.talk():
            pass


async def test_an_engine_that_cannot_load_ends_the_server_with_1(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def load(progress: Any) -> FakeEngine:
        raise OSError("no such checkpoint")

    async with speaking(wait_ready=False, load=load) as server:
        drainer = server.running.server
        await until(lambda: drainer.should_exit)
        assert drainer.exit_code == 1
        assert "no such checkpoint" in str(server.running.front.engine.load_failure)


async def test_an_engine_that_dies_is_neither_alive_nor_ready(
    caplog: pytest.LogCaptureFixture,
) -> None:
    faults = Faults()
    async with speaking(faults=faults) as server, server.talk() as talker:

        def broken(plan: Any) -> None:
            raise RuntimeError("device lost, injected")

        faults.before_step = broken
        for _ in range(3):
            await talker.send("text", text="Hello.", end=True)
            assert (await talker.until("turn.done"))[-1]["reason"] == "error"
        await until(lambda: says(server, "/livez", 503))
        status, _, body = await get(server, "/readyz")
        assert status == 503
        assert b"failed" in body
        await talker.send("text", text="Anybody?", end=True)
        messages = await talker.until("turn.done")
        assert messages[-1]["reason"] == "error"
        with pytest.raises(websockets.InvalidStatus):
            await websockets.connect(server.running.websocket_url)


async def test_an_engine_that_hangs_is_not_alive() -> None:
    faults, release = Faults(), threading.Event()

    def hang(plan: Any) -> None:
        release.wait(SECONDS)

    config = ServerConfig(port=0, engine_stall_seconds=0.2)
    async with speaking(config, faults=faults) as server, server.talk() as talker:
        await until(lambda: says(server, "/livez", 200))
        faults.before_step = hang
        await talker.send("text", text="Hello.", end=True)
        await until(lambda: says(server, "/livez", 503))
        release.set()
        faults.before_step = None
        await talker.until("turn.done")
        await until(lambda: says(server, "/livez", 200))


async def test_sessions_follow_from_the_slots_of_the_engine_unless_they_were_asked_for() -> None:
    many = FakeEngineConfig(slots=400)
    loaded = threading.Event()

    def load(progress: Any) -> FakeEngine:
        loaded.wait(SECONDS)
        return FakeEngine(many)

    async with speaking(wait_ready=False, load=load) as server:
        assert server.running.front.max_sessions == 512, "as long as nobody knows"
        loaded.set()
    async with speaking(engine=many) as server:
        assert server.running.front.max_sessions == 800
    given = ServerConfig(port=0, limits=LimitsConfig(max_sessions=3))
    async with speaking(given, many) as server:
        assert server.running.front.max_sessions == 3


async def test_one_session_too_many_is_told_to_come_back() -> None:
    config = ServerConfig(port=0, limits=LimitsConfig(max_sessions=2))
    async with speaking(config) as server:
        async with server.talk(), server.talk():
            answer = await denied(server.talk())
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
            error = json.loads(answer.body)
            assert (error["code"], error["retryable"]) == ("too_many_sessions", True)
            # A browser cannot read a refused handshake: it is told after the upgrade.
            url = server.running.websocket_url
            origin = websockets.Origin(own(server))
            answer = await denied(websockets.connect(url, origin=origin))  # no browser: it can
            assert answer.status_code == 503
            async with websockets.connect(url, origin=origin, user_agent_header=BROWSER) as page:
                error = json.loads(await page.recv())
                assert (error["code"], error["fatal"]) == ("too_many_sessions", True)
                assert error["retry_after_ms"] == 5_000
                with pytest.raises(websockets.ConnectionClosed):
                    await page.recv()
                assert page.close_code == 1013
        await server.settled()
        async with server.talk():
            pass
        assert server.value("tts_refused_total", reason="too_many_sessions") == 3


def own(server: Any) -> str:
    return f"http://127.0.0.1:{server.port}"


async def test_a_client_gone_before_the_answer_leaves_nothing() -> None:
    async def gone(message: Any) -> None:
        raise OSError("the peer has closed")

    async def connect() -> Any:
        return {"type": "websocket.connect"}

    async with speaking() as server:
        scope = {"type": "websocket", "path": "/v1/tts", "headers": [], "query_string": b""}
        websocket = WebSocket(scope, connect, gone)
        await Connection.serve(server.running.front, websocket)
        assert server.running.front.sessions == 0
        assert server.value("tts_closed_total", code="1006") == 0


async def test_only_our_subprotocol_is_ever_selected() -> None:
    async with speaking() as server:
        ours = websockets.Subprotocol("realtime-tts.v1")
        key = websockets.Subprotocol("realtime-tts.key.some-key-in-there")
        async with server.talk(subprotocols=[key, ours]) as talker:
            assert talker.socket.subprotocol == ours
        async with server.talk(subprotocols=[key]) as talker:
            assert talker.socket.subprotocol is None
        async with server.talk() as talker:
            assert talker.socket.subprotocol is None


async def test_ready_tells_the_settings_and_the_limits_in_force() -> None:
    limits = LimitsConfig(max_queued_turns=3, turn_idle_ms=7_500)
    config = ServerConfig(port=0, limits=limits, lead_seconds=2.5)
    async with speaking(config) as server:
        url = server.running.websocket_url + "?voice=alto&temperature=0.5"
        async with websockets.connect(url) as socket:
            ready = json.loads(await socket.recv())
    assert ready["settings"]["voice"] == "alto"
    assert ready["settings"]["sampling"]["temperature"] == 0.5
    assert ready["settings"]["lead_ms"] == 2_500
    assert ready["limits"]["max_queued_turns"] == 3
    assert ready["limits"]["turn_idle_ms"] == 7_500
    assert ready["limits"]["write_stall_ms"] == 5_000
    assert ready["limits"]["max_turn_audio_ms"] == 160_000


async def test_a_drain_lets_turns_finish_and_begins_none() -> None:
    engine = FakeEngineConfig(step_seconds=0.005, frames_per_token=1)
    async with speaking(engine=engine) as server:
        async with server.talk() as busy, server.talk() as idle:
            await busy.send("text", turn_id="a", text="This turn is on the air, ")
            await busy.send("text", turn_id="b", text="This one waits.", end=True)
            await busy.until("turn.started")
            server.running.front.drain()
            assert (await get(server, "/readyz"))[2] == b"the server is shutting down\n"
            assert (await get(server, "/livez"))[0] == 200
            await idle.rest()
            assert idle.socket.close_code == 1001
            response = await denied(server.talk())
            assert json.loads(response.body)["code"] == "going_away"
            await busy.send("text", turn_id="c", text="A new one?", end=True)
            await busy.send("text", turn_id="a", text="and is finished.", end=True)
            messages = await busy.rest()
            dones = of_type(messages, "turn.done")
            ends = {done["turn_id"]: done["reason"] for done in dones}
            assert ends == {"a": "complete", "b": "complete", "c": "error"}
            assert busy.socket.close_code == 1001


async def test_the_end_of_a_drain_closes_what_still_runs() -> None:
    async with speaking(engine=FakeEngineConfig(frames_per_token=1)) as server:
        async with server.talk() as talker:
            await talker.send("text", text="This turn never ends. " * 20)
            await talker.until("turn.started")
            server.running.front.drain()
            server.running.front.end_sessions()
            messages = await talker.rest()
            done = of_type(messages, "turn.done")
            assert [d["reason"] for d in done] == ["closed"]
            assert not isinstance(messages[-1], bytes)
            assert talker.socket.close_code == 1001
        await server.settled()


async def test_a_websocket_at_another_path_is_told_so_and_is_no_fault_of_ours(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with speaking() as server:
        url = server.running.websocket_url.replace("/v1/tts", "/v1/other")
        answer = await denied(websockets.connect(url))
    assert (answer.status_code, json.loads(answer.body)["code"]) == (404, "not_found")
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("/v1/voices/", "/v1/voices"),
        ("/voices/?q=a%20b", "/voices?q=a%20b"),
        ("/v1/text-to-speech/al%20to/", "/v1/text-to-speech/al%20to"),
        ("/v1/lexicons%2F", "/v1/lexicons"),
    ],
)
async def test_a_slash_too_many_is_redirected_within_the_connection_of_the_client(
    asked: str, told: str
) -> None:
    """Behind a proxy that speaks TLS, a URL with http:// would carry the key in the open."""
    async with speaking() as server:
        answer = await answer_to(server, "POST", asked)
        assert (answer.status_code, answer.headers["location"]) == (307, told)


@pytest.mark.parametrize("path", ["/nothing/", "//evil.example/", "//v1/voices"])
async def test_no_other_path_is_redirected(path: str) -> None:
    async with speaking() as server:
        answer = await answer_to(server, "GET", server.running.url + path)
        assert answer.status_code == 404
