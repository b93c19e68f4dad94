"""Where an engine and its fronts meet."""

from __future__ import annotations

import os
from pathlib import Path

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
