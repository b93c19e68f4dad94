"""Where an engine and its fronts meet."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from realtime_tts.engine.addresses import Addresses


def test_the_sockets_are_for_this_user_alone_whatever_the_umask() -> None:
    before = os.umask(0)
    try:
        made = Addresses.make()
    finally:
        os.umask(before)
    assert made.folder.stat().st_mode & 0o777 == 0o700
    with made.listen():
        assert Path(made.path).parent == made.folder
    made.remove()
    assert not made.folder.exists()


def test_a_temporary_folder_of_any_length_will_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / ("folder" * 20)
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    made = Addresses.make()
    with made.listen(), made.connect():
        assert not list(deep.iterdir())
    made.remove()
    assert not made.folder.exists()
