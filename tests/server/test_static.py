"""What the server delivers: whole, with the right type, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import realtime_tts.server
from tests.server.asking import get
from tests.server.speaking import speaking

PAGE = Path(realtime_tts.server.__file__).parent / "page"
TYPES = {
    ".svg": "image/svg+xml",
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
}


def served() -> list[Path]:
    return [path for path in PAGE.iterdir() if path.suffix in TYPES]


async def test_every_file_of_the_page_is_served() -> None:
    async with speaking() as server:
        for path in served():
            answer = await get(server, f"/page/{path.name}")
            assert answer.status == 200, path.name
            assert answer.body == path.read_bytes()
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["content-type"].startswith(TYPES[path.suffix])
        assert (await get(server, "/")).body == (PAGE / "index.html").read_bytes()


async def test_a_file_that_has_not_changed_is_not_sent_again() -> None:
    async with speaking() as server:
        first = await get(server, "/page/main.js")
        again = await get(server, "/page/main.js", {"If-None-Match": first.headers["etag"]})
        assert (again.status, again.body) == (304, b"")


@pytest.mark.parametrize(
    "path",
    ["/page/", "/page/../app.py", "/page/%2e%2e/app.py", "/page//main.js", "/page/package.json"],
)
async def test_nothing_beside_the_files_is_served(path: str) -> None:
    async with speaking() as server:
        assert (await get(server, path)).status == 404


def test_the_page_needs_nothing_that_its_policy_forbids() -> None:
    """No inline script or style, no other host: the page works offline and under its own policy."""
    for path in served():
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"(src|href|url\(|from)\s*=?\s*[\"'(]?(https?:)?//", text), path.name
    page = (PAGE / "index.html").read_text(encoding="utf-8")
    assert not re.search(r"<style|\sstyle=|\son[a-z]+=", page)
    assert all("src=" in tag for tag in re.findall(r"<script[^>]*>", page))
