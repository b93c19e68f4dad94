"""Keys of customers, and servers that know them."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from realtime_tts.access.key import Key, KeyLimits, digest_of, new_id, new_secret
from realtime_tts.access.key_file import KeyFile
from realtime_tts.config import AccessConfig, ServerConfig
from tests.server.conftest import peer as peer
from tests.waiting import wait_until


class Keys:
    """A file of keys, and the secrets of those in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file = KeyFile(path)

    def server(self, **fields: Any) -> ServerConfig:
        """The settings of a server with these keys."""
        return ServerConfig(port=0, access=AccessConfig(str(self.path)), **fields)

    def create(self, name: str, *, limits: dict[str, int] | None = None, **fields: Any) -> str:
        """Add a key; gives its secret."""
        key_id = new_id()
        secret = new_secret(key_id)
        key = Key(
            id=key_id,
            name=name,
            digest=digest_of(secret.encode()),
            created=0.0,
            limits=KeyLimits(**(limits or {})),
            **fields,
        )
        self.file.change(lambda keys: keys.__setitem__(key_id, key))
        return secret

    def replace(self, name: str, **fields: Any) -> None:
        """Change what is stored of a key."""

        def change(keys: dict[str, Key]) -> None:
            key = next(one for one in keys.values() if one.name == name)
            keys[key.id] = msgspec.structs.replace(key, **fields)

        self.file.change(change)

    def revoke(self, name: str) -> None:
        def change(keys: dict[str, Key]) -> None:
            key = next(one for one in keys.values() if one.name == name)
            del keys[key.id]

        self.file.change(change)

    def id(self, name: str) -> str:
        return next(one.id for one in self.file.read().values() if one.name == name)


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    return Keys(tmp_path / "keys.json")


@pytest.fixture
def bearer() -> Callable[[str], dict[str, str]]:
    return lambda secret: {"Authorization": f"Bearer {secret}"}


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def redis() -> Iterator[str]:
    program = shutil.which("redis-server") or shutil.which("valkey-server")
    if program is None:
        pytest.skip("needs redis-server or valkey-server (Debian: apt-get install redis-server)")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [program, "--port", str(port), "--save", "", "--bind", "127.0.0.1"],
        stdout=subprocess.DEVNULL,
    )
    try:
        wait_until(partial(_answers, port))
        yield f"redis://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()
