"""Where the JavaScript client is, which the server gives away for its own page and for others."""

from __future__ import annotations

from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path


def client_files() -> Traversable:
    """The folder of the client's modules.

    A wheel has them as `realtime_tts/server/client` (pyproject.toml puts them there); a checkout,
    installed or not, uses its own.
    """
    packed = resources.files("realtime_tts.server").joinpath("client")
    return packed if packed.is_dir() else Path(__file__).parents[2] / "client_js" / "src"
