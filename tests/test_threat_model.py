"""The threat model names tests that exist: a defence without one is a hope."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/threat-model.md").read_text("utf-8")
THREATS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in PAGE.partition("## Threats")[2].partition("\n## ")[0].splitlines()
    if line.startswith("| ") and not line.startswith(("| who | tries", "| ---"))
]


@cache
def functions(file: Path) -> frozenset[str]:
    """The names of a file's functions; nothing of it is run."""
    tree = ast.parse(file.read_text("utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, kinds))


@pytest.mark.parametrize("threat", THREATS, ids=lambda threat: f"{threat[0]}: {threat[1]}"[:60])
def test_every_defence_has_a_test(threat: list[str]) -> None:
    who, tries, defence, tests = threat
    assert who and tries and defence
    named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", tests)
    assert named and tests.count("`") == 2 * len(named)
    for path, name in named:
        assert name in functions(ROOT / path), f"{path} has no {name}"


def test_the_page_is_linked_from_where_people_look() -> None:
    for page in ("SECURITY.md", "docs/operations.md", "README.md"):
        assert "threat-model.md" in (ROOT / page).read_text("utf-8"), page
    assert len(THREATS) > 30
