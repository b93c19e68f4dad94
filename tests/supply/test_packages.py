"""What an index would deliver, installed where nothing else is: source archive, wheel, client."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from realtime_tts.version import __version__

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.timeout(300)


def run(*words: str | Path, folder: Path) -> str:
    outside = ("PYTHONPATH", "VIRTUAL_ENV", "PYTHONHOME")
    environment = {name: it for name, it in os.environ.items() if name not in outside}
    command = [str(word) for word in words]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with both; the wheel is made of the source archive, as `build` does it."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT, folder=folder)
    yield folder


def test_the_archives_have_the_program_its_licence_and_no_tests(built: Path) -> None:
    (wheel,), (source,) = built.glob("*.whl"), built.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        metadata = archive.read(next(name for name in names if name.endswith("/METADATA")))
    assert {"realtime_tts/py.typed", "tts_scheduler/__init__.py"} <= set(names)
    assert "realtime_tts/server/client/index.js" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert not any(name.startswith("tests/") for name in names)
    assert b"Author: realtime-tts contributors\n" in metadata
    with tarfile.open(source) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    assert {"LICENSE", "README.md", "pyproject.toml", "client_js/src/index.js"} <= inside


def test_the_client_installs_without_torch_and_says_its_version(
    built: Path, tmp_path: Path
) -> None:
    (wheel,) = built.glob("*.whl")
    run(sys.executable, "-m", "venv", tmp_path / "clean", folder=tmp_path)
    binaries = tmp_path / "clean" / "bin"
    constraints = ROOT / "constraints.txt"
    run(binaries / "pip", "install", "-c", constraints, wheel, folder=tmp_path)
    assert run(binaries / "realtime-tts", "--version", folder=tmp_path).strip() == __version__
    program = "import sys, realtime_tts.client.blocking; assert realtime_tts.RealtimeTTS"
    run(binaries / "python", "-W", "error", "-c", program, folder=tmp_path)
    packages = run(binaries / "pip", "list", "--format=freeze", folder=tmp_path).lower()
    heavy = ("torch", "numpy", "starlette", "uvicorn", "tokenizers")
    assert "msgspec==" in packages and not any(f"{name}==" in packages for name in heavy)
