"""`pytest -m gpu` needs only what a machine with a GPU has: no server, no plugins of pytest."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ABSENT = (
    "aiohttp",
    "av",
    "cartesia",
    "coverage",
    "dashscope",
    "deepgram",
    "elevenlabs",
    "grimp",
    "httptools",
    "importlinter",
    "librosa",
    "livekit",
    "loguru",
    "matplotlib",
    "openai",
    "PIL",
    "pipecat",
    "pocketsphinx",
    "prometheus_client",
    "psutil",
    "pytest_asyncio",
    "pytest_benchmark",
    "pytest_cov",
    "pytest_timeout",
    "qwen_tts",
    "rich",
    "scipy",
    "soundfile",
    "soxr",
    "starlette",
    "transformers",
    "uvicorn",
    "websockets",
    "wordfreq",
    "xdist",
)

COLLECT = f"""
import importlib.util, sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {ABSENT!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: (
    None if name.partition(".")[0] in {ABSENT!r} else found(name, package)
)
import pytest
sys.exit(pytest.main(["-m", "gpu", "--collect-only", "-q", "-p", "_hypothesis_pytestplugin"]))
"""


@pytest.mark.slow
def test_the_tests_for_a_gpu_are_found_without_what_others_need(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    done = subprocess.run(
        [sys.executable, "-c", COLLECT],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    found = [line for line in done.stdout.splitlines() if "::" in line]
    parts = {line.split("/")[1] for line in found}
    assert parts == {"engine", "kernels", "model"} and len(found) > 300
