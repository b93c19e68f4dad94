"""The OpenAPI document: all there is, valid, and what the routes really answer."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.routing import Match, Route

from realtime_tts.config import AccessConfig, LimitsConfig, ServerConfig
from realtime_tts.server.openapi_dialects import ELSEWHERE
from realtime_tts.server.openapi_native import DOCS_PATH, OPENAPI_PATH
from realtime_tts.server.openapi_page import openapi
from realtime_tts.voices.library import VoiceLibrary
from tests.access.conftest import Keys
from tests.access.conftest import keys as keys
from tests.server.asking import client_of, get
from tests.server.speaking import speaking
from tests.server.talking import denied
from tests.when_used import WhenUsed

jsonschema, openapi_spec_validator = WhenUsed("jsonschema"), WhenUsed("openapi_spec_validator")

OWN = "the-server-s-own-key"
PATHS: dict[str, Any] = openapi()["paths"]


def described() -> set[tuple[str, str]]:
    """Every path and method."""
    return {(path, method.upper()) for path, item in PATHS.items() for method in item}


def path_of(route: Route) -> str:
    """As OpenAPI spells it: without what a parameter matches."""
    return re.sub(r":\w+\}", "}", route.path)


@pytest.fixture
async def routes(tmp_path: Path) -> list[Route]:
    """All HTTP routes of a server with everything that adds some."""
    Keys(tmp_path / "keys.json").create("one")
    config = ServerConfig(port=0, access=AccessConfig(str(tmp_path / "keys.json")))
    async with speaking(config=config) as server:
        return [route for route in server.app_routes() if isinstance(route, Route)]


def test_the_document_is_valid_openapi() -> None:
    openapi_spec_validator.validate(openapi())


def test_every_route_is_described_or_it_says_where_else(routes: list[Route]) -> None:
    known, missing = described(), []
    for route in routes:
        path = path_of(route)
        methods = {"GET"} if route.methods is None else route.methods - {"HEAD"}
        if route.methods is None and path in PATHS:  # the endpoint answers any: it says 405
            methods = {method.upper() for method in PATHS[path]}
        if not any(path.startswith(one.prefixes) for one in ELSEWHERE):
            missing += [(path, method) for method in methods if (path, method) not in known]
    assert not missing


def test_everything_that_is_described_is_there(routes: list[Route]) -> None:
    for path, method in described():
        scope = {"type": "http", "path": path, "method": method, "headers": []}
        assert any(route.matches(scope)[0] is Match.FULL for route in routes), (method, path)
        assert not any(path.startswith(one.prefixes) for one in ELSEWHERE), (
            f"{path} is here, and elsewhere"
        )


class Checked:
    """An HTTP client whose answers have to be as the document says."""

    def __init__(self, http: httpx2.AsyncClient) -> None:
        self._http = http

    async def __call__(self, method: str, path: str, asked: str = "", **more: Any) -> Any:
        """`asked`: the path as it is asked for, where that is not the document's."""
        answer = await self._http.request(method, asked or path, **more)
        expected = PATHS[path][method.lower()]["responses"]
        assert str(answer.status_code) in expected, f"{answer.status_code}: {answer.text}"
        content = expected[str(answer.status_code)].get("content", {})
        if not content:
            assert answer.content == b""
            return None
        media = answer.headers["content-type"].partition(";")[0]
        assert media in content, f"{method} {path} gives {media}"
        if media != "application/json":
            return answer
        schema = content[media]["schema"] | {"components": openapi()["components"]}
        wrong = jsonschema.Draft202012Validator(schema).iter_errors(answer.json())
        assert [error.message for error in wrong] == []
        return answer.json()


async def test_real_answers_are_as_described(keys: Keys, tmp_path: Path) -> None:
    keys.create("one")
    config = ServerConfig(port=0, api_keys=(OWN,), access=AccessConfig(str(keys.path)))
    own = {"Authorization": f"Bearer {OWN}"}
    async with (
        speaking(config=config, voices=VoiceLibrary(tmp_path)) as server,
        client_of(server, own) as http,
        client_of(server) as stranger,
    ):
        ask = Checked(http)
        made = {"name": "anna", "embedding": [0.25, -0.5] * 32, "language": "german"}
        assert (await ask("POST", "/v1/voices", json=made))["kind"] == "registered"
        assert (await ask("POST", "/v1/voices", json=made))["code"] == "voice_exists"
        assert "anna" in (await ask("GET", "/v1/voices"))["voices"]
        for voice in ("anna", "alto", "nobody"):
            await ask("GET", "/v1/voices/{id}", f"/v1/voices/{voice}")
            await ask("GET", "/v1/voices/{id}/embedding", f"/v1/voices/{voice}/embedding")
        await ask("DELETE", "/v1/voices/{id}", "/v1/voices/anna")

        lexicon, brands = "/v1/lexicons/{ref}", "/v1/lexicons/brands"
        await ask("PUT", lexicon, brands, json={"entries": {"SQL": "sequel"}})
        assert (await ask("PUT", lexicon, brands, json={}))["code"] == "bad_request"
        assert (await ask("GET", "/v1/lexicons"))["lexicons"]
        assert (await ask("GET", lexicon, brands))["entries"]
        await ask("GET", lexicon, brands, params={"format": "pls"})
        await ask("DELETE", lexicon, brands)

        await ask("POST", "/v1/token", params={"seconds": 10})
        assert (await ask("POST", "/v1/token", params={"seconds": 0}))["code"] == "bad_request"
        speak = {"input": "Good morning.", "response_format": "pcm"}
        assert len((await ask("POST", "/v1/audio/speech", json=speak)).content) > 1_000
        await ask("POST", "/v1/audio/speech", json=speak | {"stream_format": "sse"})
        assert (await ask("POST", "/v1/audio/speech", json={}))["error"]["param"] == "input"
        assert (await ask("GET", "/v1/usage"))["keys"] is not None
        (model,) = (await ask("GET", "/v1/models"))["data"]
        await ask("GET", "/v1/models/{model}", f"/v1/models/{model['id']}")
        await ask("GET", "/v1/models/{model}", "/v1/models/other")
        for path in ("/v1/audio/voices", "/v1/audio/models", "/v1/load", "/metrics", "/v1/tts"):
            await ask("GET", path)
            await Checked(stranger)("GET", path)
        for path in ("/livez", "/readyz", "/health", OPENAPI_PATH, DOCS_PATH, "/"):
            await Checked(stranger)("GET", path)


async def test_a_server_without_customers_keys_answers_as_described() -> None:
    async with speaking() as server, client_of(server) as http:
        assert (await Checked(http)("GET", "/v1/usage"))["code"] == "not_found"


async def test_what_refuses_a_websocket_is_described() -> None:
    described = PATHS["/v1/tts"]["get"]["responses"]
    config = ServerConfig(port=0, limits=LimitsConfig(max_sessions=1))
    async with speaking(config=config) as server, server.talk():
        response = await denied(server.talk())
    code = json.loads(response.body)["code"]
    assert f"`{code}`" in described[str(response.status_code)]["description"]


async def test_the_page_shows_everything_and_needs_no_other_host() -> None:
    async with speaking(config=ServerConfig(port=0, api_keys=(OWN,))) as server:
        page = (await get(server, DOCS_PATH)).body.decode()
        styles = re.findall(r'<link rel="stylesheet" href="(/[^"]+)"', page)
        assert len(styles) == 1 and (await get(server, styles[0])).status == 200
    for item in PATHS.values():
        for operation in item.values():
            assert f'<h3 id="{operation["operationId"]}">' in page
    targets = set(re.findall(r'href="#([^"]+)"', page))
    assert targets and all(f'id="{target}"' in page for target in targets)
    assert "<script" not in page and not re.search(r'(src|<link[^>]*href)="https?:', page)
