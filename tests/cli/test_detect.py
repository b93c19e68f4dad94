"""`realtime-tts detect` says whether a recording is marked, also by its exit status."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import soundfile

from realtime_tts.audio.marking import Marking
from realtime_tts.cli import main
from tests.audio.sounds import RATE, samples_of, through, voice


def recording(path: Path, pcm: bytes) -> str:
    """Two channels, as recordings of calls have."""
    sound = samples_of(pcm)
    soundfile.write(path, np.stack([sound, 0.5 * sound], axis=1), RATE)
    return str(path)


@pytest.mark.parametrize("suffix", [".wav", ".flac", ".ogg", ".mp3"])
def test_a_marked_recording_is_found(
    tmp_path: Path, suffix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = recording(tmp_path / f"call{suffix}", through(Marking(), voice(12, -20)))
    assert main(["detect", path]) == 0
    assert capsys.readouterr().out.startswith("marked as synthetic: score ")


def test_another_is_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = recording(tmp_path / "call.wav", voice(12, -20))
    assert main(["detect", path]) == 1
    assert "no mark found" in capsys.readouterr().out
    assert main(["detect", "--json", path]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["found"] is False and 0 < told["score"] < told["threshold"]


def test_what_is_no_recording_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "notes.txt").write_text("no sound")
    for name in ("notes.txt", "missing.wav"):
        assert main(["detect", str(tmp_path / name)]) not in (0, 1)
        assert name in (error := capsys.readouterr().err)
    assert "missing.wav: No such file or directory" in error
    soundfile.write(tmp_path / "slow.wav", np.zeros(4_000), 4_000)
    assert main(["detect", str(tmp_path / "slow.wav")]) not in (0, 1)
    assert "found 4000 Hz" in capsys.readouterr().err
