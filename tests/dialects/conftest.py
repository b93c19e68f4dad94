"""The whole front on a fake engine, as the server's own tests have it."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

_SERVER = Path(__file__).parents[1] / "server"
sys.path[:0] = [str(Path(__file__).parent), str(_SERVER)]  # for `asking`, and its `talking`

_path = _SERVER / "conftest.py"
_spec = importlib.util.spec_from_file_location("server_conftest", _path)
assert _spec is not None and _spec.loader is not None
_server = importlib.util.module_from_spec(_spec)
sys.modules[_spec.name] = _server  # dataclasses look their module up
_spec.loader.exec_module(_server)

speech, peer, eventually = _server.speech, _server.peer, _server.eventually
slices = _server.slices
