"""A file is one noun and a function is one step (CONTRIBUTING.md): these are the limits."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = sorted(
    path
    for folder in ("realtime_tts", "scheduler/tts_scheduler", "client_js/src")
    for path in (ROOT / folder).rglob("*.[pj][ys]")
)
MOST_LINES, MOST_LINES_OF_A_FUNCTION = 350, 55


def test_no_file_is_too_long() -> None:
    assert len(FILES) > 400, "the packages were found"
    lengths = {str(path): len(path.read_text("utf-8").splitlines()) for path in FILES}
    assert {path: lines for path, lines in lengths.items() if lines > MOST_LINES} == {}


@pytest.mark.parametrize("folder", ["realtime_tts", "scheduler"])
def test_no_function_is_too_long(folder: str) -> None:
    """Its statements, without its parameters and its docstring; device programs too."""
    found = {}
    for path in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                steps = node.body[ast.get_docstring(node) is not None :]
                lines = (node.end_lineno or 0) - steps[0].lineno + 1 if steps else 0
                if lines > MOST_LINES_OF_A_FUNCTION:
                    found[f"{path}: {node.name}"] = lines
    assert found == {}


def test_the_formatter_lays_everything_out() -> None:
    mark = re.compile(r"#\s*fmt" + ":")
    folders = ("realtime_tts", "scheduler", "tests", "tools", "examples")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    assert [path for path in files if mark.search(path.read_text("utf-8"))] == []
