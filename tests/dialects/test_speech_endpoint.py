"""What all APIs share that speak over HTTP: admission, encoders, ends. In the smallest of them."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import httpx2
import pytest
from starlette.requests import Request
from starlette.routing import Route

from realtime_tts.audio.encoders import Encoder
from realtime_tts.audio.formats import AudioFormat
from realtime_tts.audio.stages import Chain
from realtime_tts.config import LimitsConfig, ServerConfig
from realtime_tts.dialects.catalogue import our_format
from realtime_tts.dialects.speech_endpoint import Order, SpeechEndpoint, read_object
from realtime_tts.errors import RequestError
from tests.dialects.asking import SLOW, fail_midway
from tests.dialects.cartesian import RAW
from tests.dialects.plain import Plain
from tests.server.asking import answer_to, client_of
from tests.server.speaking import speaking
from tests.waiting import until

PATH = "/plain-speech"
TEXT = "Hello."


class PlainSpeech(SpeechEndpoint):
    api = Plain()
    opened: Callable[[], Any] = staticmethod(lambda: None)

    async def order(self, request: Request, request_id: str) -> Order:
        asked = await read_object(request, self.front.limits)
        if asked.get("break"):
            raise ZeroDivisionError
        return Order(
            asked["text"],
            self.front.settings(longest_lead=True, voice=asked.get("voice"), audio=self.audio()),
        )

    def audio(self) -> AudioFormat:
        self.opened()
        return our_format("mp3")


def endpoint_of(server: Any) -> PlainSpeech:
    """An endpoint of the plain dialect, which is added to the server's routes."""
    endpoint = PlainSpeech(server.running.front)
    server.app_routes().insert(0, Route(PATH, endpoint))
    return endpoint


async def post(server: Any, **fields: Any) -> httpx2.Response:
    return await answer_to(server, "POST", PATH, json={"text": TEXT, **fields})


class Encoders:
    """Those that were opened, and those that were closed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.opened: list[Encoder] = []
        self.closed: set[Encoder] = set()
        make, close = Encoder.__init__, Encoder.close

        def opening(encoder: Encoder, audio_format: AudioFormat, chain: Chain) -> None:
            self.opened.append(encoder)
            make(encoder, audio_format, chain)

        def closing(encoder: Encoder) -> None:
            self.closed.add(encoder)
            close(encoder)

        monkeypatch.setattr(Encoder, "__init__", opening)
        monkeypatch.setattr(Encoder, "close", closing)


@pytest.fixture
def encoders(monkeypatch: pytest.MonkeyPatch) -> Encoders:
    return Encoders(monkeypatch)


async def test_the_answer_is_the_sound_in_the_encoder_s_format(encoders: Encoders) -> None:
    async with speaking() as server:
        endpoint_of(server)
        answer = await post(server)
        assert answer.status_code == 200 and answer.headers["content-type"] == "audio/mpeg"
        assert answer.headers["x-request-id"].startswith("req_") and len(answer.content) > 500
        await server.settled()
    assert len(encoders.opened) == 1 and encoders.closed == {*encoders.opened}


async def test_a_place_that_is_lost_while_the_request_is_read_leaves_no_encoder(
    encoders: Encoders,
) -> None:
    async with speaking() as server:
        endpoint_of(server).opened = server.running.front.drain
        answer = await post(server)
        assert (answer.status_code, answer.json()["code"]) == (503, "going_away")
        assert encoders.closed == {*encoders.opened} and server.running.front.sessions == 0


async def test_a_voice_that_there_is_not_leaves_no_encoder(encoders: Encoders) -> None:
    async with speaking() as server:
        endpoint_of(server)
        answer = await post(server, voice="nobody")
        assert answer.status_code == 400 and "nobody" in answer.text
        assert encoders.closed == {*encoders.opened} and server.running.front.sessions == 0


async def test_a_format_that_cannot_be_made_begins_no_speech() -> None:
    def refuse() -> None:
        raise RequestError("no such format")

    async with speaking() as server:
        endpoint_of(server).opened = refuse
        answer = await post(server)
        assert (answer.status_code, answer.json()["message"]) == (400, "no such format")
        assert server.value("tts_text_chars_total") == 0


@pytest.mark.parametrize("path", ["/v1/audio/speech", "/v1/text-to-speech/alto", "/tts/bytes"])
async def test_half_an_emoji_as_a_name_or_in_an_error_is_no_fault_of_ours(path: str) -> None:
    text = b'"input": "Hi.", "text": "Hi.", "transcript": "Hi."'
    async with speaking() as server, client_of(server) as client:
        for body in (b'"\\ud83d"', b'{"\\ud83d": 1, "\\ud83d": 2}'):
            refused = await client.post(path, content=body)
            assert refused.status_code == 400 and "\ufffd" in refused.text
        answer = await client.post(path, content=b'{%b, "\\ud83d": 1}' % text)
        assert answer.status_code == 200  # a name that nobody knows is ignored


async def test_refusals_and_faults_are_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with speaking() as server:
        endpoint_of(server)
        assert (await answer_to(server, "PUT", PATH)).status_code == 405
        assert (await post(server, **{"break": True})).json()["code"] == "internal"
        refused = [one.fields["status"] for one in caplog.records if one.msg == "plain.error"]  # type: ignore[attr-defined]
        assert refused == [405, 503]
        assert [one.msg for one in caplog.records if one.exc_info] == ["plain.bug"]


@dataclass(frozen=True)
class Way:
    """A way in: the `field` of the body that has the text, and whether an answer refuses too much
    in the API's own words."""

    path: str
    field: str
    rest: dict[str, Any]
    query: dict[str, str]
    refuses: Callable[[Any], bool]

    def asked(self, text: str) -> dict[str, Any]:
        """The arguments of a POST."""
        return {"url": self.path, "json": {self.field: text} | self.rest, "params": self.query}


CARTESIA = {"model_id": "sonic-3", "voice": {"mode": "id", "id": "alto"}, "output_format": RAW}
OPENAI = {"model": "tts-1", "voice": "alto", "response_format": "pcm"}
PCM_16 = {"encoding": "linear16", "sample_rate": "24000", "container": "none"}
IN_PCM = {"output_format": "pcm_24000"}
SPEECH = "/v1/text-to-speech/alto"


def eleven(rest: str) -> Way:
    def refuses(body: Any) -> bool:
        return bool(body["detail"]["status"] == "too_many_concurrent_requests")

    return Way(SPEECH + rest, "text", {}, IN_PCM, refuses)


CUT = [
    Way("/v1/audio/speech", "input", OPENAI, {}, lambda body: "error" in body),
    Way("/tts/bytes", "transcript", CARTESIA, {}, lambda body: "message" in body),
    Way("/v1/speak", "text", {}, PCM_16, lambda body: body["err_code"] == "TOO_MANY_REQUESTS"),
    eleven("/stream"),
    eleven("/stream/with-timestamps"),
]
"""Ways whose answer begins with the first sound: nothing but its end can say what comes later."""
OTHERS = [
    Way("/tts/sse", "transcript", CARTESIA, {}, lambda body: "message" in body),
    eleven(""),
    eleven("/with-timestamps"),
]
path_of = attrgetter("path")


@pytest.mark.parametrize("way", [*CUT, *OTHERS], ids=path_of)
async def test_every_api_refuses_what_is_too_much_says_when_and_counts_it(way: Way) -> None:
    config = ServerConfig(port=0, limits=LimitsConfig(max_sessions=1))
    async with speaking(config, engine=SLOW) as server:
        async with client_of(server) as client:
            first = asyncio.create_task(client.post(**way.asked(TEXT)))
            await until(lambda: server.running.front.sessions)
            answer = await client.post(**way.asked(TEXT))
            assert answer.status_code == 503 and int(answer.headers["retry-after"]) >= 1
            assert way.refuses(answer.json())
            server.running.front.drain()
            answer = await client.post(**way.asked(TEXT))
            assert answer.status_code == 503 and answer.headers["retry-after"] == "1"
            assert "going_away" in json.dumps(answer.json())
            assert (await first).status_code == 200
        await server.settled()
        for reason in ("too_many_sessions", "going_away"):
            assert server.value("tts_refused_total", reason=reason) == 1


@pytest.mark.parametrize("way", CUT, ids=path_of)
async def test_a_failure_in_the_middle_cuts_the_answer(way: Way) -> None:
    async with speaking(engine=SLOW) as server:
        async with client_of(server) as client:
            asked = asyncio.create_task(client.post(**way.asked(TEXT * 20)))
            await fail_midway(server)
            with pytest.raises(httpx2.TransportError):
                await asked
        await server.settled()
        assert server.value("tts_turns_total", reason="error") == 1
        assert server.value("tts_turns_total", reason="closed") == 0


@pytest.mark.parametrize("way", CUT, ids=path_of)
async def test_who_hangs_up_stops_the_speech_and_frees_the_place(
    way: Way, encoders: Encoders
) -> None:
    async with speaking(engine=SLOW) as server:
        async with client_of(server) as client:
            async with client.stream("POST", **way.asked(TEXT * 80)) as response:
                assert await anext(response.aiter_bytes())
                assert server.running.front.sessions == 1
        await server.settled()
        await until(lambda: encoders.opened and encoders.closed == {*encoders.opened})
        assert server.value("tts_turns_total", reason="closed") == 1
        assert server.value("tts_text_chars_total") == len(TEXT * 80)
