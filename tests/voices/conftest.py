"""Object storage to keep voices in: fsspec's own in memory, and a real S3 server (moto)."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from realtime_tts.voices.stored import StoredRegistry

Machine = Callable[[str], StoredRegistry]

NO_S3 = find_spec("moto") is None or find_spec("s3fs") is None


@pytest.fixture(scope="session")
def s3() -> Iterator[None]:
    """An S3 server, and what tells clients where it is."""
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    # One request after the other: between its look and its write, moto lets others write.
    application = DomainDispatcherApplication(create_backend_app)
    server = make_server("127.0.0.1", 0, application, threaded=False)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    patch = pytest.MonkeyPatch()
    patch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        patch.setenv(name, "test")
    patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    yield
    patch.undo()
    server.shutdown()
    thread.join()


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """fsspec's store in memory, with one write after the other: between its look and its write, it
    lets other threads write."""
    from fsspec.implementations.memory import MemoryFileSystem

    one_write, write = threading.Lock(), MemoryFileSystem.pipe_file

    def pipe_file(self: MemoryFileSystem, *args: Any, **options: Any) -> None:
        with one_write:
            write(self, *args, **options)

    monkeypatch.setattr(MemoryFileSystem, "pipe_file", pipe_file)


@pytest.fixture(
    params=[
        "memory",
        pytest.param(
            "s3",
            marks=pytest.mark.skipif(NO_S3, reason="moto or s3fs is missing: make test-fleet"),
        ),
    ]
)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Of an empty store that there is."""
    import fsspec

    request.getfixturevalue(request.param)
    found = f"{request.param}://bucket-{os.getpid()}-{abs(hash(tmp_path))}/voices"
    files, path = fsspec.core.url_to_fs(found)
    files.makedirs(path.rpartition("/")[0] if request.param == "s3" else path)
    return found


@pytest.fixture
def machine(url: str, tmp_path: Path) -> Machine:
    """Makes the registry of a machine, by its name."""
    return lambda name: StoredRegistry(url, tmp_path / name)
