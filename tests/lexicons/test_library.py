"""The stored lexicons that a server keeps in memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from realtime_tts.lexicons import library as module
from realtime_tts.lexicons.library import LexiconLibrary
from realtime_tts.text.lexicon import Entry
from tests.waiting import until


async def test_however_short_they_are_only_some_lexicons_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MOST_ENTRIES", 600)
    library = LexiconLibrary(tmp_path)
    for name in ("one", "two", "three", "four", "five"):
        library.folder.put(name, [Entry("Siobhan", "shuh vawn")])
        library.pinned([name])
        await until(lambda: not library._reading)
    assert list(library._kept) == ["three@1", "four@1", "five@1"]
    assert set(library._live) == set(library._kept)
