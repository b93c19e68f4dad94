"""The programs' servers on real sockets: an app, and speech with the fake engine."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from realtime_tts.config import ServerConfig
from tests.server import apps
from tests.server.speaking import speaking


@contextlib.asynccontextmanager
async def serving(app: Any) -> AsyncIterator[str]:
    """Gives its URL."""
    async with apps.serving(app) as (port, _):
        yield f"http://127.0.0.1:{port}"


@contextlib.asynccontextmanager
async def speech_server(**options: Any) -> AsyncIterator[str]:
    """Gives its URL. `options`: of `ServerConfig`."""
    async with speaking(ServerConfig(port=0, **options)) as server:
        yield server.running.url
