"""What an index would deliver, installed where nothing else is: source archive, wheel, client."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import wave
import zipfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from realtime_tts.version import __version__
from tests.serving import serving

ROOT = Path(__file__).parents[2]
ARCHIVES = ("realtime_tts_server", "realtime_tts_demo_voice")
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
RELATIVE = re.compile(r"\]\((?!https?://|#)")


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
    for project in (ROOT, ROOT / "realtime_tts/demo_voice"):
        run(sys.executable, "-m", "build", "--outdir", folder, project, folder=folder)
    yield folder


def archives(built: Path, name: str) -> tuple[Path, Path]:
    """The wheel and the source archive of this distribution."""
    (wheel,), (source,) = built.glob(f"{name}-*.whl"), built.glob(f"{name}-*.tar.gz")
    return wheel, source


def files(wheel: Path) -> dict[str, int]:
    """The size of each file of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return {one.filename: one.file_size for one in archive.infolist()}


def test_the_archives_have_the_program_its_licence_and_no_tests(built: Path) -> None:
    wheel, source = archives(built, "realtime_tts_server")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        metadata = archive.read(next(name for name in names if name.endswith("/METADATA")))
    assert {"realtime_tts/py.typed", "tts_scheduler/__init__.py"} <= set(names)
    assert "realtime_tts/server/client/index.js" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert not any(name.startswith(("tests/", "tools/")) for name in names)
    assert max(wheel.stat().st_size, source.stat().st_size) < 5 << 20
    assert b"Author: realtime-tts contributors\n" in metadata
    with tarfile.open(source) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    assert {"LICENSE", "README.md", "pyproject.toml", "client_js/src/index.js"} <= inside


def test_the_voice_is_an_archive_of_its_own_and_goes_where_a_checkout_has_it(built: Path) -> None:
    server, voice = (files(archives(built, name)[0]) for name in ARCHIVES)
    place = "realtime_tts/demo_voice/checkpoint/"
    checkpoint = Path(ROOT, place)
    here = {
        place + str(path.relative_to(checkpoint)): path.stat().st_size
        for path in checkpoint.rglob("*")
        if path.is_file()
    }
    assert {name: size for name, size in voice.items() if name.startswith(place)} == here
    both = server.keys() & voice.keys()
    assert not both and not any(name.startswith(place) for name in server)


def test_a_page_on_an_index_has_no_link_that_leads_nowhere(built: Path, tmp_path: Path) -> None:
    """Built in the repository that the environment names, or anywhere else."""
    wheel, _ = archives(built, "realtime_tts_server")
    elsewhere = description(wheel)
    assert not RELATIVE.search(elsewhere) and "Project-URL" not in elsewhere
    assert "## Hear it" in elsewhere
    where = {"GITHUB_SERVER_URL": "https://code.example", "GITHUB_REPOSITORY": "people/speech"}
    build = [sys.executable, "-m", "build", "--wheel", "--outdir", str(tmp_path), str(ROOT)]
    subprocess.run(build, cwd=tmp_path, env=os.environ | where, check=True, capture_output=True)
    released = description(next(tmp_path.glob("*.whl")))
    assert not RELATIVE.search(released)
    assert "Project-URL: Source, https://code.example/people/speech\n" in released
    at = f"https://code.example/people/speech/blob/v{__version__}/"
    targets = re.findall(re.escape(at) + r"([^)#]+)", released)
    assert len(targets) > 20 and all((ROOT / target).exists() for target in targets)


def description(wheel: Path) -> str:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        return archive.read(name).decode()


def interpreters() -> dict[str, Path]:
    """The Pythons of this machine that the package is for, by version."""
    managed = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = {}
    for version in VERSIONS:
        paths = [*managed.glob(f"{version}.*/bin/python{version}")]
        if not paths and (plain := shutil.which(f"python{version}")):
            paths = [Path(plain)]
        if paths:
            found[version] = paths[0]
    return found


@pytest.fixture(scope="module")
def installed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The programs of an environment of this Python with nothing but the wheel and what it needs:
    made once, as no test changes it."""

    @cache
    def made(version: str) -> Path:
        python = interpreters().get(version)
        if python is None:
            pytest.skip(f"no Python {version} on this machine")
        wheel, _ = archives(built, "realtime_tts_server")
        folder = tmp_path_factory.mktemp("clean")
        run(python, "-m", "venv", folder, folder=folder)
        pip = folder / "bin" / "pip"
        run(pip, "install", "-c", ROOT / "constraints.txt", wheel, folder=folder)
        return folder / "bin"

    return made


@pytest.mark.parametrize("version", VERSIONS)
def test_the_client_speaks_without_extras_on(
    version: str, installed: Callable[[str], Path], tmp_path: Path
) -> None:
    binaries = installed(version)
    with serving("--engine", "fake") as server:
        python, program = binaries / "python", binaries / "realtime-tts"
        words = ("say", "Hello.", "--url", server.url, "--output", "hello.wav")
        run(python, "-W", "error", program, *words, folder=tmp_path)
    with wave.open(str(tmp_path / "hello.wav")) as spoken:
        assert spoken.getnframes() > 0


def test_the_client_installs_without_torch_and_says_its_version(
    installed: Callable[[str], Path], tmp_path: Path
) -> None:
    binaries = installed(min(interpreters()))
    assert run(binaries / "realtime-tts", "--version", folder=tmp_path).strip() == __version__
    program = "import sys, realtime_tts.client.blocking; assert realtime_tts.RealtimeTTS"
    run(binaries / "python", "-W", "error", "-c", program, folder=tmp_path)
    packages = run(binaries / "pip", "list", "--format=freeze", folder=tmp_path).lower()
    heavy = ("torch", "numpy", "starlette", "uvicorn", "tokenizers")
    assert "msgspec==" in packages and not any(f"{name}==" in packages for name in heavy)
