"""`/v1/voices` over real HTTP: every route, every refusal, and speech beside it."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import psutil
import pytest
import pytest_asyncio
import websockets

from realtime_tts.config import ServerConfig
from realtime_tts.engine.fake import FakeEngineConfig
from realtime_tts.voices.encoding import WorkerLimits
from realtime_tts.voices.form import MAX_BODY_BYTES
from realtime_tts.voices.registry import Registry
from tests.server.asking import refusal
from tests.server.asking_voices import EMBEDDING, WAV, Voices, voice_server
from tests.server.peers import Connecting
from tests.server.speaking import speaking
from tests.voices import makers, recordings
from tests.waiting import until

Serve = Callable[..., AbstractAsyncContextManager[Voices]]


@pytest.fixture
def serve(tmp_path: Path) -> Serve:
    return partial(voice_server, tmp_path)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def standing(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Voices]:
    """One server for all tests that leave no voice behind."""
    async with voice_server(tmp_path_factory.mktemp("standing")) as voices:
        yield voices


on_standing = pytest.mark.asyncio(loop_scope="module")


async def test_a_recording_becomes_a_voice_that_speaks(serve: Serve) -> None:
    async with serve() as voices:
        made = await voices.clone("anna", text="Guten Tag.", language="german")
        assert made.status_code == 201 and made.headers["location"] == "/v1/voices/anna"
        shown = (await voices.http.get(made.headers["location"])).json()
        assert shown == made.json() | {"text": "Guten Tag."}
        assert (shown["id"], shown["kind"], shown["model"]) == ("anna", "registered", "fake")
        assert (shown["language"], shown["in_context"], shown["dimensions"]) == ("german", True, 64)
        assert shown["created"].endswith("Z")
        assert await voices.ids() == ["alto", "bass", "soprano", "tenor", "anna"]
        url = voices.speech.running.websocket_url + "?voice=anna"
        async with websockets.connect(url) as socket:
            ready = json.loads(await socket.recv())
            assert ready["settings"]["voice"] == "anna" and "anna" in ready["voices"]
            await socket.send('{"type": "text", "text": "Hi.", "end": true}')
            answers = [await socket.recv() for _ in range(3)]
            assert json.loads(answers[0])["type"] == "turn.started"
            assert isinstance(answers[1], bytes) and max(answers[1]) > 0


async def test_without_a_transcript_only_the_embedding_is_kept(serve: Serve) -> None:
    async with serve() as voices:
        made = await voices.clone("anna", append_silence="false")
        assert made.json()["in_context"] is False
        assert (await voices.http.get("/v1/voices/anna")).json()["text"] is None


@on_standing
@pytest.mark.parametrize("name", recordings.GOOD)
async def test_every_kind_of_recording_is_taken(standing: Voices, name: str) -> None:
    made = await standing.clone("anna", recordings.GOOD[name]())
    assert made.status_code == 201, made.text
    assert (await standing.http.delete("/v1/voices/anna")).status_code == 204


async def test_a_speaker_of_the_checkpoint_is_shown_and_stays(serve: Serve) -> None:
    async with serve() as voices:
        shown = (await voices.http.get("/v1/voices/alto")).json()
        assert (shown["id"], shown["kind"], shown["model"]) == ("alto", "speaker", "fake")
        refusal(await voices.http.delete("/v1/voices/alto"), 409, "built_in_voice")
        refusal(await voices.http.get("/v1/voices/alto/embedding"), 409, "built_in_voice")
        refusal(await voices.clone("alto"), 409, "voice_exists")
        refusal(await voices.give("alto"), 409, "voice_exists")


async def test_an_exported_embedding_can_be_given_back(serve: Serve) -> None:
    async with serve() as voices:
        assert (await voices.give("anna", language="german", model="large")).status_code == 201
        exported = (await voices.http.get("/v1/voices/anna/embedding")).json()
        assert exported == {
            "name": "anna",
            "model": "large",
            "language": "german",
            "embedding": EMBEDDING,
        }
        refusal(await voices.http.post("/v1/voices", json=exported), 409, "voice_exists")
        again = await voices.http.post("/v1/voices", json=exported | {"name": "ben"})
        assert again.status_code == 201 and again.json()["dimensions"] == 64


async def test_a_deleted_voice_is_gone_for_sessions_too(serve: Serve) -> None:
    async with serve() as voices:
        await voices.give("anna")
        url = voices.speech.running.websocket_url
        async with websockets.connect(url + "?voice=anna") as socket:
            assert (await voices.http.delete("/v1/voices/anna")).status_code == 204
            assert json.loads(await socket.recv())["settings"]["voice"] == "anna"
            await socket.send('{"type": "session.start", "voice": "anna"}')
            assert json.loads(await socket.recv())["code"] == "bad_settings"
        for method, path in (("GET", ""), ("GET", "/embedding"), ("DELETE", "")):
            answer = await voices.http.request(method, "/v1/voices/anna" + path)
            assert "GET /v1/voices" in refusal(answer, 404, "unknown_voice")
        assert "anna" not in await voices.ids()
        assert (await voices.give("anna")).status_code == 201


async def test_voices_survive_a_restart_and_are_shared(serve: Serve) -> None:
    async with serve() as first:
        await first.give("anna")
    async with serve() as second, serve() as third:
        assert "anna" in await second.ids()
        await second.give("ben")
        assert {"anna", "ben"} <= set(await third.ids())


@on_standing
@pytest.mark.parametrize("id", ["..%2f..%2fetc%2fpasswd", "%00", "ANNA", "a" * 3000, "%ff", "con"])
async def test_ids_that_nobody_made_are_unknown(standing: Voices, id: str) -> None:
    for method in ("GET", "DELETE"):
        answer = await standing.http.request(method, f"/v1/voices/{id}")
        assert answer.status_code == 404


async def test_the_hostile_corpus_is_refused_with_reasons_and_the_server_still_serves(
    serve: Serve, tmp_path: Path
) -> None:
    async with serve() as voices:
        await voices.clone("good")
        worker = int((tmp_path / "started").read_text().split()[0])
        server, process = psutil.Process(), psutil.Process(worker)
        corpus = [(case, case.make()) for case in recordings.HOSTILE]
        before = server.memory_info().rss, process.memory_info().rss
        for case, data in corpus:
            began = time.monotonic()
            answer = await voices.clone("bad", data)
            code = {415: "unsupported_media", 422: "bad_audio"}[case.status]
            assert case.says in refusal(answer, case.status, code), case.name
            assert time.monotonic() - began < 30, case.name
        grown = server.memory_info().rss - before[0], process.memory_info().rss - before[1]
        assert max(grown) < 100_000_000, "bytes that stay after the corpus, server and worker"
        assert "bad" not in await voices.ids()
        assert (await voices.clone("better")).status_code == 201
        assert process.is_running(), "no file ended the worker"
        async with voices.speech.talk("?voice=better") as talker:
            await talker.send("text", text="Still here.", end=True)
            done = (await talker.until("turn.done"))[-1]
            assert done["reason"] == "complete" and done["samples"] > 0
    assert not process.is_running(), "the worker ends with its server"


async def test_bytes_are_counted_and_the_server_still_serves(
    serve: Serve, peer: Connecting
) -> None:
    async with serve() as voices:
        said = refusal(await voices.clone("anna", bytes(11_000_000)), 413, "too_large")
        assert "10 MB" in said

        async def endless() -> AsyncIterator[bytes]:
            for _ in range(MAX_BODY_BYTES // 65_536 + 2):
                yield bytes(65_536)

        for kind in ("multipart/form-data; boundary=b", "application/json"):
            headers = {"content-type": kind}
            answer = await voices.http.post("/v1/voices", content=endless(), headers=headers)
            refusal(answer, 413, "too_large")
        claiming = await peer(voices.speech.port)
        await claiming.send(
            b"POST /v1/voices HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99999999999\r\n"
            b"Content-Type: application/json\r\n\r\n"
        )
        assert b" 413 " in await claiming.head(), "said before anything is read"
        assert (await voices.clone("anna")).status_code == 201


@on_standing
@pytest.mark.parametrize(
    ("content", "kind", "status", "code"),
    [
        (b"x", None, 415, "unsupported_media"),
        (b"name=anna", "application/x-www-form-urlencoded", 415, "unsupported_media"),
        (WAV, "audio/wav", 415, "unsupported_media"),
        (b"{", "application/json", 400, "bad_request"),
        (b'{"name": "anna"}', "application/json; charset=utf-8", 400, "bad_request"),
        (b'{"name": "a b", "embedding": [1]}', "application/json", 400, "bad_request"),
        (b"", "multipart/form-data", 400, "bad_request"),
        (b"", "multipart/form-data; boundary=b", 400, "bad_request"),
        (b"x" * 100_000, "multipart/form-data; boundary=b", 400, "bad_request"),
        (b"--b\r\nX: " + b"y" * 9_000_000, "multipart/form-data; boundary=b", 400, "bad_request"),
        (b"\r" * 9_000_000, "multipart/form-data; boundary=b", 400, "bad_request"),
    ],
    ids=range(11),
)
async def test_bodies_of_the_wrong_kind_are_refused(
    standing: Voices, content: bytes, kind: str | None, status: int, code: str
) -> None:
    headers = {} if kind is None else {"content-type": kind}
    answer = await standing.http.post("/v1/voices", content=content, headers=headers)
    refusal(answer, status, code)
    assert (await standing.http.get("/readyz")).status_code == 200


@on_standing
@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"name": "Anna"}, "a-z"),
        ({"name": "anna", "text": "x" * 3000}, "at most 2000"),
        ({"name": "anna", "language": "x" * 20_000}, "16384 are allowed"),
        ({"name": "anna", "append_silence": "perhaps"}, "true or false"),
        ({"name": "anna", "color": "red"}, "unknown field 'color'"),
    ],
)
async def test_fields_are_checked(standing: Voices, fields: dict[str, Any], says: str) -> None:
    assert says in refusal(await standing.clone(**fields), 400, "bad_request")


@on_standing
async def test_other_methods_are_not_allowed(standing: Voices) -> None:
    for path, allowed in (("/v1/voices", "GET, HEAD, POST"), ("/v1/voices/a", "DELETE, GET, HEAD")):
        answer = await standing.http.put(path)
        assert f"PUT is not allowed here; use {allowed}" in refusal(
            answer, 405, "method_not_allowed"
        )
        assert answer.headers["allow"] == allowed


async def test_every_route_wants_the_key(serve: Serve) -> None:
    config = ServerConfig(port=0, api_keys=("a-secret-key",))
    async with serve(config=config) as voices:
        for method, path in (
            ("GET", "/v1/voices"),
            ("POST", "/v1/voices"),
            ("GET", "/v1/voices/anna"),
            ("GET", "/v1/voices/anna/embedding"),
            ("DELETE", "/v1/voices/anna"),
        ):
            answer = await voices.http.request(method, path)
            assert answer.status_code == 401 and answer.json()["code"] == "unauthorized"
        voices.http.headers["authorization"] = "Bearer a-secret-key"
        assert (await voices.give("anna")).status_code == 201


async def test_a_server_without_a_folder_or_a_base_checkpoint_says_what_it_needs(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with speaking() as running, httpx2.AsyncClient(trust_env=False, verify=False) as http:
        url = running.running.url + "/v1/voices"
        answer = await http.post(url, json={"name": "anna", "embedding": [1.0]})
        assert "--voices-dir" in refusal(answer, 409, "cannot_clone")
        refusal(await http.get(url + "/anna"), 404, "unknown_voice")
        refusal(await http.delete(url + "/anna"), 404, "unknown_voice")
    monkeypatch.setattr("realtime_tts.engine.interface.CLONING_VARIANTS", ("base",))
    async with serve() as voices:
        for answer in (await voices.give("anna"), await voices.clone("anna")):
            assert "Base" in refusal(answer, 409, "cannot_clone")


async def test_too_many_recordings_at_once_are_told_to_come_later(serve: Serve) -> None:
    async with serve(WorkerLimits(places=2)) as voices:
        slow = [asyncio.create_task(voices.clone(f"v{n}", text="slow")) for n in range(2)]
        await until(lambda: voices.places_taken == 2)
        answer = await voices.clone("v2")
        refusal(answer, 503, "encoder_busy")
        assert answer.json()["retryable"] and int(answer.headers["retry-after"]) > 0
        assert answer.json()["retry_after_ms"] == int(answer.headers["retry-after"]) * 1000
        assert [one.status_code for one in await asyncio.gather(*slow)] == [201, 201]


async def test_who_hangs_up_in_an_upload_gives_the_place_back(
    serve: Serve, peer: Connecting
) -> None:
    async with serve(WorkerLimits(places=1)) as voices:
        raw = await peer(voices.speech.port)
        await raw.send(
            b"POST /v1/voices HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5000\r\n"
            b"Content-Type: multipart/form-data; boundary=b\r\n\r\nsome"
        )
        await until(lambda: voices.places_taken == 1)
        refusal(await voices.clone("anna"), 503, "encoder_busy")
        raw.abort()
        await until(lambda: voices.places_taken == 0)
        assert (await voices.clone("anna")).status_code == 201


async def test_a_worker_that_dies_costs_one_request(serve: Serve) -> None:
    async with serve() as voices:
        answer = await voices.clone("anna", text="die")
        refusal(answer, 503, "encoder_failed")
        assert answer.json()["retryable"]
        assert (await voices.clone("anna")).status_code == 201


async def test_speech_goes_on_while_a_voice_is_encoded(serve: Serve) -> None:
    async with serve(engine=FakeEngineConfig(frames_per_token=2)) as voices:
        encoding = asyncio.create_task(voices.clone("anna", text="hang"))
        async with voices.speech.talk() as talker:
            await talker.send("text", text="A turn beside it.", end=True)
            done = (await talker.until("turn.done"))[-1]
        assert done["reason"] == "complete" and not encoding.done()
        encoding.cancel()


async def test_a_server_that_stops_does_not_wait_for_a_recording(
    serve: Serve, tmp_path: Path
) -> None:
    async with serve() as voices:
        encoding = asyncio.create_task(voices.clone("anna", text="hang"))
        await until(lambda: makers.hangs(tmp_path / "started"))
        began = time.monotonic()
    assert time.monotonic() - began < 30
    with contextlib.suppress(httpx2.HTTPError, RuntimeError):
        assert (await encoding).status_code >= 500


async def test_a_full_disk_is_the_operator_s_business(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: Any) -> None:
        raise OSError(28, os.strerror(28))

    async with serve() as voices:
        monkeypatch.setattr("realtime_tts.voices.file.write", full)
        assert "No space" in refusal(await voices.give("anna"), 507, "cannot_store")
        monkeypatch.undo()
        folder = Registry(voices.speech.voices.registry.folder).folder
        assert list(folder.iterdir()) == []


async def test_a_folder_that_is_read_only_is_the_operator_s_business(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a folder refuses even to remove what is not there."""

    def refused(path: Path, *_: object, **__: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    async with serve() as voices:
        with monkeypatch.context() as read_only:
            read_only.setattr("realtime_tts.voices.file.write", refused)
            read_only.setattr(Path, "unlink", refused)
            says = refusal(await voices.give("anna"), 507, "cannot_store")
        assert "(Read-only file system)" in says and "--voices-dir" in says
        assert str(voices.speech.voices.registry.folder) not in says
