"""A folder of voices that servers of several users share: each may do less with others' files."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from realtime_tts.voices.errors import CannotStore
from realtime_tts.voices.file import VoiceRecord, read_record
from realtime_tts.voices.registry import Registry
from tests.voices.test_registry import add


def test_a_file_that_cannot_be_read_does_not_give_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as one that another user's server wrote: it may be a voice."""
    add(Registry(tmp_path), "anna", language="German")
    path = Registry(tmp_path).get("anna").path
    before = path.read_bytes()

    def read(each: Path) -> VoiceRecord:
        if each == path:
            raise PermissionError(errno.EACCES, "Permission denied")
        return read_record(each)

    with monkeypatch.context() as unreadable:
        unreadable.setattr("realtime_tts.voices.registry.read_record", read)
        with pytest.raises(CannotStore, match="Permission denied"):
            add(Registry(tmp_path), "anna")
    assert path.read_bytes() == before


def test_what_only_another_may_sweep_holds_nobody_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a folder with the sticky bit, for example."""
    registry = Registry(tmp_path)
    old = registry.unfinished()
    old.write_bytes(b"")
    os.utime(old, (0, 0))

    def unlink(path: Path, missing_ok: bool = False) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    with monkeypatch.context() as sticky:
        sticky.setattr(Path, "unlink", unlink)
        assert registry.unfinished() != old
