"""A speech of a running server, without a socket."""

from __future__ import annotations

from typing import Any

from realtime_tts.access.account import FREE
from realtime_tts.protocol.settings import SessionSettings
from realtime_tts.server.track import Delivery

FRAMES = Delivery()


def open_speech(
    server: Any, name: str = "s1", how: Delivery = FRAMES, options: Any = None, **chosen: Any
) -> Any:
    front = server.running.front
    reporter, settings = front.reporter(name, "test"), SessionSettings(**chosen)
    return front.open_speech(name, settings, reporter, how, FREE, **(options or {}))
