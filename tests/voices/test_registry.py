"""The folder of voices: whole files only, found by index, shared, and never fatal."""

from __future__ import annotations

import errno
import json
import logging
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from realtime_tts.voices.errors import BadVoiceRequest, CannotStore, UnknownVoice, VoiceExists
from realtime_tts.voices.file import CorruptVoiceError, write_voice
from realtime_tts.voices.loaded import LoadedVoices
from realtime_tts.voices.registry import Registry, default_folder

EMBEDDING = np.linspace(-1, 1, 64, dtype=np.float32)


def add(registry: Registry, name: str, **options: object) -> None:
    path = registry.unfinished()
    write_voice(path, EMBEDDING, name=name, model="fake", **options)  # type: ignore[arg-type]
    registry.add(path)


def ids(registry: Registry) -> list[str]:
    return [record.id for record in registry.voices()]


def test_a_voice_is_found_with_all_that_is_known_and_survives_a_restart(tmp_path: Path) -> None:
    codes = np.ones((25, 16), np.int16)
    add(Registry(tmp_path), "anna", codes=codes, transcript="Guten Tag.", language="german")
    registry = Registry(tmp_path)
    record = registry.get("anna")
    assert (record.id, record.model, record.dimensions) == ("anna", "fake", 64)
    assert (record.language, record.transcript, record.in_context) == ("german", "Guten Tag.", True)
    assert record.created is not None and record.created.endswith("Z")
    np.testing.assert_array_equal(registry.embedding("anna"), EMBEDDING)


def test_an_embedding_alone_is_not_used_in_context(tmp_path: Path) -> None:
    registry = Registry(tmp_path)
    add(registry, "anna")
    assert not registry.get("anna").in_context


def test_a_name_is_never_part_of_a_path(tmp_path: Path) -> None:
    registry = Registry(tmp_path / "voices")
    (tmp_path / "secret.safetensors").write_bytes(b"")
    add(registry, "con")
    assert not [path for path in registry.folder.iterdir() if "con" in path.name.split(".")[0]]
    for name in ("../secret", "/etc/passwd", "con.safetensors", "CON", "", "\0", "a/b", "x" * 9999):
        assert registry.find(name) is None
        with pytest.raises(UnknownVoice):
            registry.delete(name)
        with pytest.raises(BadVoiceRequest):
            registry.check_free(name)
    assert (tmp_path / "secret.safetensors").exists()


def test_a_name_is_taken_once(tmp_path: Path) -> None:
    registry, other = Registry(tmp_path), Registry(tmp_path)
    assert ids(other) == []
    path = registry.unfinished()
    write_voice(path, EMBEDDING * 2, name="anna", model="fake")
    add(other, "anna")
    with pytest.raises(VoiceExists, match="delete it first"):
        registry.add(path)
    np.testing.assert_array_equal(registry.embedding("anna"), EMBEDDING)
    assert not path.exists()
    registry.delete("anna")
    add(registry, "anna")
    assert ids(other) == ["anna"]


def test_servers_that_share_a_folder_see_each_other_s_voices_at_once(tmp_path: Path) -> None:
    one, other = Registry(tmp_path), Registry(tmp_path)
    for number in range(20):
        name = f"voice-{number:02}"
        add(one, name)
        assert other.has(name)
        if number % 2:
            other.delete(name)
            assert not one.has(name)
    assert ids(one) == ids(other) == [f"voice-{number:02}" for number in range(0, 20, 2)]


def test_an_old_folder_is_not_read_again_until_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = Registry(tmp_path)
    add(registry, "anna")
    monkeypatch.setattr("realtime_tts.shared_folder._SETTLED_SECONDS", -1.0)
    past = time.time() - 60
    os.utime(tmp_path, (past, past))
    assert registry.has("anna")
    monkeypatch.setattr(Registry, "_scan", lambda *_: pytest.fail("read again"))
    assert registry.has("anna") and not registry.has("ben")
    monkeypatch.undo()
    add(Registry(tmp_path), "ben")
    assert registry.has("ben")


def test_changes_are_seen_where_the_folder_s_clock_is_behind_and_coarse(tmp_path: Path) -> None:
    """A folder on a network has the time of another machine, maybe in whole seconds."""
    registry, past = Registry(tmp_path), time.time() - 60
    for name in ("anna", "ben"):
        add(Registry(tmp_path), name)
        os.utime(tmp_path, (past, past))
        assert registry.has(name)


def test_a_file_that_could_not_be_read_is_read_by_the_next_look_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in a folder that has not changed for long: too many files were open, for example."""
    add(Registry(tmp_path), "anna")
    monkeypatch.setattr("realtime_tts.shared_folder._SETTLED_SECONDS", -1.0)
    registry = Registry(tmp_path)

    def fails(path: Path) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as broken:
        broken.setattr("realtime_tts.voices.registry.read_record", fails)
        assert ids(registry) == []
    assert ids(registry) == ["anna"]


def test_an_embedding_that_is_not_finite_is_not_given(tmp_path: Path) -> None:
    registry = Registry(tmp_path)
    metadata = {"format": "realtime-tts voice", "version": "1", "name": "anna", "model": "m"}
    wrong = {"speaker_embedding": np.full(4, np.nan, np.float32)}
    save_file(wrong, tmp_path / "a.safetensors", metadata)
    assert ids(registry) == ["anna"]
    with pytest.raises(UnknownVoice, match="not finite"):
        registry.embedding("anna")


def test_a_voice_that_goes_while_it_is_looked_up_is_unknown_and_no_path_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = Registry(tmp_path)
    add(registry, "anna")
    record = registry.get("anna")
    record.path.unlink()
    monkeypatch.setattr(registry, "get", lambda id: record)
    with pytest.raises(UnknownVoice, match="cannot be opened") as caught:
        registry.embedding("anna")
    assert str(tmp_path) not in str(caught.value)


def test_corrupt_files_are_skipped_and_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    registry = Registry(tmp_path)
    add(registry, "anna")
    whole = registry.get("anna").path.read_bytes()
    (tmp_path / "cut.safetensors").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "empty.safetensors").write_bytes(b"")
    (tmp_path / "huge.safetensors").write_bytes(bytes(5_000_000))
    (tmp_path / "header.safetensors").write_bytes(b"\xff" * 200)
    (tmp_path / "folder.safetensors").mkdir()
    os.mkfifo(tmp_path / "pipe.safetensors")
    (tmp_path / "lost.safetensors").symlink_to("nowhere")
    save_file({"x": EMBEDDING}, tmp_path / "other.safetensors")
    metadata = {"format": "realtime-tts voice", "version": "1", "model": "m", "name": "../up"}
    save_file({"speaker_embedding": EMBEDDING}, tmp_path / "bad-name.safetensors", metadata)
    metadata["name"] = "ben"
    half = {"speaker_embedding": EMBEDDING.astype(np.float16)}
    save_file(half, tmp_path / "half.safetensors", metadata)
    metadata["extra"] = "[" * 100_000
    save_file({"speaker_embedding": EMBEDDING}, tmp_path / "nested.safetensors", metadata)
    (tmp_path / "notes.txt").write_text("not a voice")
    with caplog.at_level(logging.WARNING):
        assert ids(registry) == ["anna"]
        assert ids(registry) == ["anna"]
    warnings = [record for record in caplog.records if record.levelno == logging.WARNING]
    said = sorted(record.fields["file"] for record in warnings)  # type: ignore[attr-defined]
    assert said == sorted(
        f"{name}.safetensors"
        for name in (
            "cut",
            "empty",
            "huge",
            "header",
            "folder",
            "pipe",
            "other",
            "bad-name",
            "half",
            "nested",
        )
    )


def test_a_file_put_there_by_hand_counts_and_the_first_of_two_wins(tmp_path: Path) -> None:
    write_voice(tmp_path / "b.safetensors", EMBEDDING * 2, name="anna", model="second")
    write_voice(tmp_path / "a.safetensors", EMBEDDING, name="anna", model="first")
    assert [record.model for record in Registry(tmp_path).voices()] == ["first"]


def test_a_corrupt_file_in_a_voice_s_place_gives_way(tmp_path: Path) -> None:
    registry = Registry(tmp_path)
    add(registry, "anna")
    registry.get("anna").path.write_bytes(b"rubbish")
    fresh = Registry(tmp_path)
    assert not fresh.has("anna")
    add(fresh, "anna")
    assert fresh.has("anna")


def test_what_is_no_voice_is_not_added(tmp_path: Path) -> None:
    registry = Registry(tmp_path)
    path = registry.unfinished()
    path.write_bytes(b"rubbish")
    with pytest.raises(CorruptVoiceError):
        registry.add(path)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_the_operator_s_business(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    registry = Registry(tmp_path / "file" / "voices")
    with pytest.raises(CannotStore, match="--voices-dir"):
        registry.unfinished()
    assert registry.voices() == []


def test_what_a_dead_server_left_is_swept(tmp_path: Path) -> None:
    registry = Registry(tmp_path)
    old, new = registry.unfinished(), registry.unfinished()
    old.write_bytes(b"")
    new.write_bytes(b"")
    os.utime(old, (0, 0))
    registry.unfinished()
    assert not old.exists() and new.exists()


def test_a_folder_that_goes_is_told_once_and_found_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder, away = tmp_path / "voices", tmp_path / "away"
    registry = Registry(folder)
    assert ids(registry) == [] and not caplog.records, "it need not exist"
    add(registry, "anna")
    folder.rename(away)
    assert ids(registry) == ids(registry) == []
    assert [record.getMessage() for record in caplog.records].count("voices.unreadable") == 1
    away.rename(folder)
    assert ids(registry) == ["anna"]


def test_nothing_is_created_by_looking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    registry = Registry(default_folder())
    assert registry.voices() == [] and not registry.has("anna")
    assert list(tmp_path.iterdir()) == []
    add(registry, "anna")
    assert (tmp_path / "realtime-tts" / "voices").is_dir()


WRITER = """
import sys, numpy as np
from pathlib import Path
from realtime_tts.voices.errors import VoiceExists
from realtime_tts.voices.file import write_voice
from realtime_tts.voices.registry import Registry
registry, mine = Registry(sys.argv[1]), 0
for number in range(40):
    path = registry.unfinished()
    write_voice(path, np.ones(64, np.float32), name=f"v{number}", model=sys.argv[2])
    try:
        registry.add(path)
        mine += 1
    except VoiceExists:
        pass
print(mine)
"""


def test_two_servers_that_add_the_same_names_both_succeed_once_for_each(tmp_path: Path) -> None:
    both = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path), who], stdout=subprocess.PIPE, text=True
        )
        for who in ("one", "other")
    ]
    won = [int(process.communicate(timeout=60)[0]) for process in both]
    assert sum(won) == 40
    assert len(Registry(tmp_path).voices()) == 40


def test_an_engine_loads_a_voice_once_and_again_when_it_is_another(tmp_path: Path) -> None:
    registry, loads = Registry(tmp_path), list[Path]()

    def load(path: Path) -> int:
        loads.append(path)
        return len(loads)

    voices = LoadedVoices(registry, load)
    assert voices("anna") is None
    add(registry, "anna")
    assert [voices("anna"), voices("Anna"), len(loads)] == [1, 1, 1]
    registry.delete("anna")
    assert voices("anna") is None
    add(Registry(tmp_path), "anna")
    assert voices("anna") == 2


def test_a_voice_that_cannot_be_loaded_is_unknown(tmp_path: Path) -> None:
    registry = Registry(tmp_path)
    add(registry, "anna")

    def fail(path: Path) -> object:
        raise json.JSONDecodeError("broken", "", 0)

    assert LoadedVoices(registry, fail)("anna") is None


def test_a_file_that_cannot_be_written_is_an_oserror(tmp_path: Path) -> None:
    """Which is answered with 507; safetensors' own error would not be."""
    with pytest.raises(OSError):
        write_voice(
            tmp_path / "missing" / "file", np.zeros(4, np.float32), name="anna", model="fake"
        )
