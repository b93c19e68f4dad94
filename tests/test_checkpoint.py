"""Finding a checkpoint: folders as they are, Hub ids by downloading, anything else refused."""

from __future__ import annotations

from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import httpx2
import pytest

from realtime_tts import checkpoint, demo_voice
from realtime_tts.checkpoint import find_checkpoint
from realtime_tts.engine.settings import EngineConfig
from realtime_tts.errors import CheckpointError

DOWNLOAD = "realtime_tts.hub.snapshot_download"


def test_a_folder_is_taken_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DOWNLOAD, None)
    assert find_checkpoint(str(tmp_path)) == tmp_path


@pytest.mark.parametrize(
    "source",
    ["", "demo", "/no/such/folder", "a/b/c", "./here", "a/b c", "~no such user/model"],
)
def test_what_is_neither_folder_nor_hub_id_is_refused(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(DOWNLOAD, None)
    with pytest.raises(CheckpointError, match="neither a folder nor a Hub id"):
        find_checkpoint(source)


def test_what_cannot_be_a_file_is_refused() -> None:
    with pytest.raises(CheckpointError, match="cannot be opened: File name too long"):
        find_checkpoint("x" * 5_000)


def test_a_hub_id_is_downloaded_with_progress(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client makes bars for files and bytes; bytes are told, and never go back."""
    told: list[tuple[str, int, int]] = []

    def download(name: str, *, allow_patterns: list[str], tqdm_class: Any) -> str:
        assert name == "Qwen/Qwen3-TTS-12Hz-1.7B-CustomVoice"
        written = tqdm_class(total=100, unit="B", disable=False, name="hub.bytes")
        received = tqdm_class(total=100, unit="B")
        with tqdm_class(total=3, desc="Fetching 3 files") as files:
            received.update(60)
            written.update(40)
            files.update(1)
            written.update(60)
        received.set_description("done")
        return str(tmp_path)

    monkeypatch.setattr(DOWNLOAD, download)
    found = find_checkpoint("Qwen/Qwen3-TTS-12Hz-1.7B-CustomVoice", lambda *step: told.append(step))
    assert found == tmp_path
    assert [done for _, done, _ in told] == [60, 60, 100]
    assert {(what, total) for what, _, total in told} == {
        ("download Qwen/Qwen3-TTS-12Hz-1.7B-CustomVoice", 100)
    }


def test_files_are_told_where_the_client_counts_no_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[int, int]] = []

    def download(name: str, *, allow_patterns: list[str], tqdm_class: Any) -> str:
        bar = tqdm_class(total=2, desc="Fetching 2 files")
        bar.update(1)
        bar.update(1)
        return str(tmp_path)

    monkeypatch.setattr(DOWNLOAD, download)
    find_checkpoint("owner/name", lambda what, done, total: told.append((done, total)))
    assert told == [(1, 2), (2, 2)]


def test_only_what_a_checkpoint_needs_is_downloaded() -> None:
    def wanted(path: str) -> bool:
        return any(fnmatch(path, pattern) for pattern in checkpoint.FILES)

    for path in (
        "config.json",
        "model-00001-of-00002.safetensors",
        "merges.txt",
        "speech_tokenizer/model.safetensors",
        "speech_tokenizer/config.json",
    ):
        assert wanted(path), path
    for path in ("pytorch_model.bin", "model.pt", "modeling.py", "README.md", "demo.wav"):
        assert not wanted(path), path


@pytest.mark.parametrize("why", ["offline", "disk full", "the proxy wants a password"])
def test_a_download_that_fails_says_why(why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub.errors import LocalEntryNotFoundError  # collecting does without

    kinds = {"offline": LocalEntryNotFoundError, "disk full": OSError}

    def download(*args: Any, **kwargs: Any) -> str:
        raise kinds.get(why, httpx2.ProxyError)(why)

    monkeypatch.setattr(DOWNLOAD, download)
    with pytest.raises(CheckpointError, match=f"could not be downloaded from the Hub: {why}"):
        find_checkpoint("owner/name")


def test_a_voice_that_is_not_installed_is_said_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(demo_voice, "FOLDER", tmp_path / "checkpoint")
    with pytest.raises(
        CheckpointError,
        match=r"\./realtime_tts/demo_voice.*pip install realtime-tts-demo-voice.*--model",
    ):
        _ = EngineConfig().checkpoint
    assert EngineConfig(model=str(tmp_path)).checkpoint == str(tmp_path)
