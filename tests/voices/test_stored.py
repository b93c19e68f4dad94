"""Voices in object storage: copies on every machine, one winner for each name, and a store that may
be down. Against fsspec's own store in memory, and where there is one, a real S3 server."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from realtime_tts.errors import ConfigError
from realtime_tts.voices.errors import CannotStore, UnknownVoice, VoiceExists
from realtime_tts.voices.file import MOST_BYTES, write_voice
from realtime_tts.voices.library import VoiceLibrary
from realtime_tts.voices.loaded import LoadedVoices
from realtime_tts.voices.registry import Registry
from realtime_tts.voices.store import VoiceStore
from realtime_tts.voices.stored import StoredRegistry, cache_folder, check_location, open_registry
from tests.voices.conftest import Machine
from tests.waiting import until

EMBEDDING = np.linspace(-1, 1, 64, dtype=np.float32)


def add(registry: Registry, name: str, scale: float = 1.0) -> None:
    path = registry.unfinished()
    write_voice(path, EMBEDDING * np.float32(scale), name=name, model="fake")
    assert registry.add(path).id == name


def ids(registry: Registry) -> list[str]:
    registry.update()
    return [record.id for record in registry.voices()]


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every update asks the store."""
    monkeypatch.setattr("realtime_tts.voices.stored.UPDATE_SECONDS", 0.0)


def test_a_voice_registered_on_one_machine_is_spoken_on_another(machine: Machine) -> None:
    one, other = machine("one"), machine("other")
    assert ids(other) == []
    add(one, "anna")
    assert ids(one) == ids(other) == ["anna"]
    np.testing.assert_array_equal(other.embedding("anna"), EMBEDDING)
    other.delete("anna")
    assert ids(one) == ids(other) == []


def test_of_two_machines_that_register_a_name_the_first_wins(machine: Machine) -> None:
    one, other = machine("one"), machine("other")
    assert ids(one) == ids(other) == []
    add(one, "anna")
    with pytest.raises(VoiceExists, match="delete it first"):
        add(other, "anna", 2)  # which has not heard of it
    for registry in (one, other):
        np.testing.assert_array_equal(registry.embedding("anna"), EMBEDDING)
    assert not [path for path in other.folder.iterdir() if "unfinished" in path.name]


def test_machines_that_register_the_same_names_at_once_succeed_once_for_each(
    machine: Machine,
) -> None:
    won: list[str] = []
    begin = threading.Barrier(4)

    def register(registry: StoredRegistry) -> None:
        for number in range(8):
            begin.wait()
            try:
                add(registry, f"v{number}")
            except VoiceExists:
                continue
            won.append(f"v{number}")

    machines = [machine(str(number)) for number in range(4)]
    threads = [threading.Thread(target=register, args=(one,)) for one in machines]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(won) == [f"v{number}" for number in range(8)]
    assert all(ids(one) == sorted(won) for one in machines)


def test_a_voice_that_was_made_anew_is_loaded_anew(machine: Machine) -> None:
    one, other = machine("one"), machine("other")
    voices = LoadedVoices(Registry(other.folder), lambda path: path.read_bytes())  # an engine's
    add(one, "anna")
    other.update()
    first = voices("anna")
    one.delete("anna")
    add(one, "anna", 2)
    other.update()
    assert first is not None and voices("anna") not in (None, first)
    np.testing.assert_array_equal(other.embedding("anna"), EMBEDDING * 2)


def test_looking_up_asks_nobody(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    registry = machine("one")
    add(registry, "anna")
    monkeypatch.setattr(StoredRegistry, "store", property(lambda self: pytest.fail("asked")))
    again = machine("one")
    assert again.has("anna") and not again.has("ben")
    np.testing.assert_array_equal(again.embedding("anna"), EMBEDDING)


def test_a_store_that_is_down_is_told_once_and_copies_go_on(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    registry = machine("one")
    add(registry, "anna")

    def down(*_: object, **__: object) -> Any:
        raise RuntimeError("no route to host")  # what such libraries raise is no OSError

    with monkeypatch.context() as broken, caplog.at_level(logging.INFO):
        for name in ("ls", "pipe_file", "rm_file", "cat"):
            broken.setattr(registry.store._files, name, down)
        assert ids(registry) == ids(registry) == ["anna"]
        with pytest.raises(CannotStore, match="(?s)--voices-dir.*no route to host"):
            add(registry, "ben")
        with pytest.raises(CannotStore):
            registry.delete("anna")
        assert [one.message for one in caplog.records].count("voices.store_failed") == 1
        np.testing.assert_array_equal(registry.embedding("anna"), EMBEDDING)
    add(registry, "ben")
    assert ids(registry) == ["anna", "ben"]


def test_what_is_stored_or_deleted_is_so_although_the_store_lists_nothing_after_it(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = machine("one"), machine("other")
    add(one, "anna")

    def down(*_: object, **__: object) -> Any:
        raise RuntimeError("slow down")

    with monkeypatch.context() as broken:
        broken.setattr(one.store._files, "ls", down)
        add(one, "ben")
        one.delete("anna")
        assert ids(one) == []
    assert ids(one) == ids(other) == ["ben"]


def test_a_corrupt_object_in_a_voice_s_place_gives_way(machine: Machine, url: str) -> None:
    one, store = machine("one"), VoiceStore(url)
    add(one, "anna")
    (name,) = store.versions()
    store.replace(name, b"rubbish")
    other = machine("other")
    assert ids(one) == ids(other) == []
    add(other, "anna")
    assert ids(one) == ["anna"]


def test_what_cannot_be_a_voice_is_not_fetched(machine: Machine, url: str, tmp_path: Path) -> None:
    store = VoiceStore(url)
    for name in ("notes.txt", ".hidden.safetensors", "a b.safetensors", f"{'x' * 200}.safetensors"):
        store.create(name, b"")
    store.create("huge.safetensors", bytes(MOST_BYTES + 1))
    write_voice(tmp_path / "by-hand", EMBEDDING, name="ben", model="fake")
    store.create("by-hand.safetensors", (tmp_path / "by-hand").read_bytes())
    registry = machine("one")
    assert ids(registry) == ["ben"]
    assert len(list(registry.folder.glob("*.safetensors"))) == 1
    registry.delete("ben")
    assert store.versions() == {}


def test_a_fetch_that_was_cut_off_is_made_again(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = machine("one"), machine("other")
    add(one, "anna")
    with monkeypatch.context() as cut:
        cut.setattr(Path, "rename", lambda *_: sys.exit())
        with pytest.raises(SystemExit):
            other.update()
    assert other.voices() == []
    assert ids(other) == ["anna"]


def test_a_copy_that_has_its_name_is_on_the_disk(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = machine("one"), machine("other")
    add(one, "anna")
    written: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda file: written.append(os.fstat(file).st_ino))
    assert ids(other) == ["anna"]
    assert written == [other.get("anna").path.stat().st_ino]


def test_a_clock_that_was_ahead_holds_up_no_update(machine: Machine) -> None:
    one, other = machine("one"), machine("other")
    assert ids(other) == []
    later = time.time() + 3600
    os.utime(other.folder / ".updated", (later, later))
    add(other, "anna")
    os.utime(other.folder / ".updated", (later, later))
    add(one, "ben")
    assert ids(other) == ["anna", "ben"]


def test_processes_of_a_machine_ask_for_all(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, same = machine("one"), machine("one")
    one.update()
    monkeypatch.setattr("realtime_tts.voices.stored.UPDATE_SECONDS", 60.0)
    monkeypatch.setattr(StoredRegistry, "store", property(lambda self: pytest.fail("asked")))
    same.update()


def test_an_object_that_goes_while_it_is_fetched_is_left_out(url: str) -> None:
    store = VoiceStore(url)
    store.create("a.safetensors", b"a")
    assert dict(store.read(["a.safetensors", "gone.safetensors"])) == {"a.safetensors": b"a"}
    with pytest.raises(FileExistsError):
        store.create("a.safetensors", b"b")
    assert dict(store.read(["a.safetensors"])) == {"a.safetensors": b"a"}
    store.delete("a.safetensors")
    store.delete("a.safetensors")


async def test_a_server_follows_what_others_register(
    url: str, machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "realtime_tts.voices.library.open_registry", lambda _: StoredRegistry(url, tmp_path / "own")
    )
    monkeypatch.setattr("realtime_tts.voices.library.UPDATE_SECONDS", 0.05)
    add(machine("other"), "anna")
    library = VoiceLibrary(url)
    await library.start()
    assert library.registry.has("anna")
    add(machine("other"), "ben")
    await until(lambda: library.registry.has("ben"))
    machine("other").delete("ben")
    await until(lambda: not library.registry.has("ben"))
    with pytest.raises(UnknownVoice):
        library.registry.get("ben")
    await library.stop()


def test_where_voices_are_kept_is_a_folder_or_s3(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert type(open_registry(tmp_path)) is type(open_registry("voices")) is Registry
    stored = open_registry("s3://bucket/voices/")
    assert isinstance(stored, StoredRegistry) and stored.voices() == []
    assert stored.folder == cache_folder("s3://bucket/voices") and tmp_path in stored.folder.parents
    assert list(tmp_path.iterdir()) == []
    for wrong in ("", "gs://bucket/voices", "s3://", "https://example.com/voices"):
        with pytest.raises(ConfigError, match="s3://BUCKET/PREFIX"):
            check_location(wrong)


def test_without_the_package_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "s3fs", None)
    known = import_module("fsspec.registry")._registry  # what was imported before
    monkeypatch.delitem(known, "s3", raising=False)
    with pytest.raises(ConfigError, match=r"pip install -e '\.\[s3\]'"):
        check_location("s3://bucket/voices")
