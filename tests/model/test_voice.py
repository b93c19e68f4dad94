"""Voices: what they must have, and how they are stored."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from realtime_tts.errors import VoiceError
from realtime_tts.model.voice import Voice
from realtime_tts.model.voice_file import load_voice
from realtime_tts.voices.file import FORMAT, MOST_BYTES
from tests.model.voices import save_voice


def anna(**changes: Any) -> Voice:
    voice = Voice(
        name="anna",
        embedding=torch.linspace(-3, 3, 128),
        codes=torch.arange(80).view(5, 16) * 25,
        transcript="Wie geht's? \U0001f600",
        model="qwen3-tts-12hz-1b7",
        language="german",
    )
    return replace(voice, **changes)


def test_a_voice_comes_back_as_it_was_saved(tmp_path: Path) -> None:
    voice = anna()
    save_voice(voice, tmp_path / "anna.safetensors")
    found = load_voice(tmp_path / "anna.safetensors")
    assert voice.codes is not None and found.codes is not None
    assert torch.equal(found.embedding, voice.embedding) and torch.equal(found.codes, voice.codes)
    assert found.codes.dtype == torch.int64
    for what in ("name", "transcript", "model", "language"):
        assert getattr(found, what) == getattr(voice, what), what
    assert [path.name for path in tmp_path.iterdir()] == ["anna.safetensors"]


def test_a_voice_of_an_embedding_alone_comes_back(tmp_path: Path) -> None:
    save_voice(anna(codes=None, transcript=None, language=None), tmp_path / "v")
    found = load_voice(tmp_path / "v")
    assert (found.codes, found.transcript, found.language) == (None, None, None)


def test_what_no_file_can_hold_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "anna"
    save_voice(anna(), path)
    with pytest.raises(VoiceError, match="0 to 32767"):
        save_voice(anna(codes=torch.full((2, 16), 40_000)), path)
    with pytest.raises(VoiceError, match="at most"):
        save_voice(anna(transcript="x" * MOST_BYTES), path)
    assert load_voice(path).name == "anna"
    assert [found.name for found in tmp_path.iterdir()] == ["anna"]
    with pytest.raises(OSError, match="No such file"):
        save_voice(anna(), tmp_path / "nowhere" / "anna")


def test_a_file_cut_anywhere_is_refused(tmp_path: Path) -> None:
    save_voice(anna(), tmp_path / "whole")
    whole = (tmp_path / "whole").read_bytes()
    for length in range(0, len(whole), 7):
        (tmp_path / "cut").write_bytes(whole[:length])
        with pytest.raises(VoiceError, match="cut"):
            load_voice(tmp_path / "cut")


def write(path: Path, texts: dict[str, str] | None, **tensors: torch.Tensor) -> None:
    save_file(tensors or {"speaker_embedding": torch.ones(4)}, path, metadata=texts)


GOOD = {"format": FORMAT, "version": "1", "name": "anna", "model": "m"}


@pytest.mark.parametrize(
    ("texts", "tensors", "message"),
    [
        (None, {}, "does not say that it is one"),
        ({"format": "pt"}, {}, "does not say that it is one"),
        ({**GOOD, "version": "2"}, {}, "version '2'"),
        ({**GOOD, "name": ""}, {}, "name"),
        ({key: GOOD[key] for key in ("format", "version", "name")}, {}, "model"),
        (GOOD, {"codes": torch.ones(2, 16, dtype=torch.int16)}, "no speaker_embedding"),
        (GOOD, {"speaker_embedding": torch.ones(2, 4)}, "one row"),
        (GOOD, {"speaker_embedding": torch.ones(4).half()}, "float16"),
        (GOOD, {"speaker_embedding": torch.full((4,), torch.nan)}, "NaN"),
        (
            GOOD,
            {"speaker_embedding": torch.ones(4), "codes": torch.ones(2, 16, dtype=torch.int16)},
            "transcript",
        ),
    ],
)
def test_a_foreign_file_is_refused_by_name(
    texts: dict[str, str] | None,
    tensors: dict[str, torch.Tensor],
    message: str,
    tmp_path: Path,
) -> None:
    write(tmp_path / "voice", texts, **tensors)
    with pytest.raises(VoiceError, match=message) as refused:
        load_voice(tmp_path / "voice")
    assert str(tmp_path / "voice") in str(refused.value)


def test_a_large_file_is_refused_unread(tmp_path: Path) -> None:
    with (tmp_path / "voice").open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    with pytest.raises(VoiceError, match="bytes, a voice has at most"):
        load_voice(tmp_path / "voice")


def test_what_is_not_a_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(VoiceError, match="no file"):
        load_voice(tmp_path / "pipe")
    with pytest.raises(VoiceError, match="no voice file"):
        load_voice(tmp_path / "voice")
    with pytest.raises(VoiceError):
        load_voice(tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"embedding": torch.ones(0)}, "one row"),
        ({"embedding": torch.ones(4, dtype=torch.int64)}, "floating-point"),
        ({"embedding": torch.tensor([1.0, torch.inf])}, "infinite"),
        ({"codes": torch.ones(16, dtype=torch.int64)}, "frames, codebooks"),
        ({"codes": torch.ones(0, 16, dtype=torch.int64)}, "frames, codebooks"),
        ({"codes": torch.ones(2, 16)}, "integers"),
        ({"transcript": None}, "transcript"),
        ({"transcript": " "}, "transcript"),
    ],
)
def test_what_is_no_voice_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(VoiceError, match=message):
        anna(**changes)
