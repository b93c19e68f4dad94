"""examples/simulate.py runs as its own help says."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "simulate.py"
SMALL = ["--slots", "4", "--base-ms", "12", "--row-ms", "8", "--turns", "1"]


@pytest.fixture
def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("simulate_example", EXAMPLE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_it_says_how_many_sessions_fit(
    example: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    assert example.main([*SMALL, "--sessions", "1", "2", "--feeds", "fast"]) == 0
    out = capsys.readouterr().out
    assert "2 sessions fit" in out
    assert "deadline order" in out and "round robin" not in out


@pytest.mark.parametrize("more", [[], ["--kv-positions", "20000"]])
def test_its_headings_are_whole_in_80_columns(
    example: ModuleType,
    more: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert example.main([*SMALL, "--sessions", "1", *more]) == 0
    assert "…" not in capsys.readouterr().out


def test_it_compares_the_policies(example: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert example.main([*SMALL, "--sessions", "2", "--compare", "--no-admission"]) == 0
    out = capsys.readouterr().out
    assert "round robin" in out and "arrival order" in out


def test_it_tries_numbers_around_what_the_machine_can_speak(example: ModuleType) -> None:
    words = "--base-ms 12 --row-ms 8 --slots 8 --utilisation 0.7"
    args = example.parse(words.split())
    machine, config, _ = example.setting(args)
    assert example.steps_to_try(args, machine, config) == [1, 2, 4, 5, 6, 8, 10]


def test_it_draws_the_curve(example: ModuleType, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    png = tmp_path / "curve.png"
    assert example.main([*SMALL, "--sessions", "1", "2", "--png", str(png)]) == 0
    assert png.read_bytes().startswith(b"\x89PNG")


def test_without_matplotlib_it_says_what_to_install(
    example: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert example.main([*SMALL, "--sessions", "1", "--png", str(tmp_path / "x.png")]) == 1
    assert "pip install matplotlib" in " ".join(capsys.readouterr().out.split())
