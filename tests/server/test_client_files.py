"""The JavaScript client at /client/: the files of the checkout, ready for a browser."""

from __future__ import annotations

import gzip
import tomllib
from pathlib import Path

from realtime_tts.server.static import client_files
from tests.server.asking import get
from tests.server.speaking import speaking

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "client_js" / "src"


async def test_every_module_is_served_as_javascript() -> None:
    names = {path.name for path in SOURCES.iterdir()}
    assert {"index.js", "player.js", "player-worklet.js"} <= names
    async with speaking() as server:
        for name in names:
            status, headers, body = await get(server, f"/client/{name}")
            assert status == 200, name
            assert headers["content-type"].startswith("text/javascript")
            assert headers["cache-control"] == "no-cache"
            assert body == (SOURCES / name).read_bytes()
        assert (await get(server, "/client/package.json"))[0] == 404


async def test_a_browser_gets_it_compressed_and_asks_again_only_whether_it_changed() -> None:
    async with speaking() as server:
        _, headers, body = await get(server, "/client/index.js", {"Accept-Encoding": "gzip, br"})
        assert headers["content-encoding"] == "gzip"
        assert "accept-encoding" in headers["vary"]
        assert gzip.decompress(body) == (SOURCES / "index.js").read_bytes()
        asks = {"Accept-Encoding": "gzip", "If-None-Match": headers["etag"]}
        assert (await get(server, "/client/index.js", asks))[0] == 304


def test_a_wheel_has_the_client_where_it_is_looked_for() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    included = settings["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert included == {"client_js/src": "realtime_tts/server/client"}
    assert client_files() == SOURCES, "a checkout has no copy"
