"""`random-checkpoint`: a Base model to try cloning with, from the command to voices that sound."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from realtime_tts.cli import main
from realtime_tts.cli.failures import ExitStatus
from realtime_tts.cli.own_server import with_own_server
from realtime_tts.client import RealtimeTTS
from realtime_tts.client.voices import VoiceClient
from realtime_tts.model.config_files import read_config
from tests.voices import recordings


def test_its_voices_are_cloned_blended_and_spoken_as_noise(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, recording, store = (str(tmp_path / name) for name in ("base", "ref.wav", "voices"))
    assert main(["random-checkpoint", folder]) == ExitStatus.OK
    said = capsys.readouterr().out
    assert "speaks noise" in said and f"serve --model {folder} --voices-dir" in said
    assert read_config(Path(folder)).generation.max_new_tokens < 125  # noise seldom ends by itself
    Path(recording).write_bytes(recordings.encoded(recordings.voice(1.5)))
    clone = ["clone", recording, "--model", folder, "--voices-dir", store]
    assert main([*clone, "--name", "sound"]) == ExitStatus.OK
    assert main([*clone, "--name", "manner", "--text", "So be it."]) == ExitStatus.OK

    async def use(url: str, key: str) -> int:
        voices = VoiceClient(url, api_key=key)
        listed = await asyncio.to_thread(voices.voices)
        assert (listed["random_weights"], listed["variant"]) == (True, "base")
        given = await asyncio.to_thread(voices.embedding, "sound")
        assert given["model"] == "qwen3-tts-12hz-random"
        blended = [-number for number in given["embedding"]]
        await asyncio.to_thread(voices.register, "blend", blended, model=given["model"])
        sounds = []
        async with RealtimeTTS(url, api_key=key, seed=1, lead_ms=30_000) as tts:
            for voice in ("sound", "manner", "blend"):
                await tts.configure(voice=voice)
                sounds.append(b"".join([packet async for packet in tts.speak("So.")]))
        levels = [np.abs(np.frombuffer(one, "<i2")).mean() / 32_768 for one in sounds]
        assert all(0.001 < level < 0.5 for level in levels), levels
        assert len(set(sounds)) == 3
        return 0

    flags = ["--model", folder, "--voices-dir", store, "--max-frames", "12"]
    flags += ["--threads", "1", "--slots", "1"]
    assert with_own_server(flags, Console(quiet=True), use) == 0


def test_it_overwrites_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    for place, why in ((tmp_path, "is not empty"), (file, "is a file")):
        assert main(["random-checkpoint", str(place)]) == ExitStatus.USAGE
        assert why in capsys.readouterr().err
    assert file.read_text() == "mine" and list(tmp_path.iterdir()) == [file]
