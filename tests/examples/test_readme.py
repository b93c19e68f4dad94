"""The table of examples names them all, and what each needs."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
README = (EXAMPLES / "README.md").read_text("utf-8")
ROWS = re.findall(r"^\| \[`\S+`\]\((\S+)\) \| .* \|(.*)\|$", README, re.MULTILINE)
WITH_THE_CLIENT = {"realtime_tts", "tts_scheduler", "rich", "websockets"}
EXTRAS = {
    "chat": {"openai"},
    "livekit": {"livekit"},
    "pipecat": {"pipecat", "loguru"},
    "plot": {"matplotlib"},
}


def imported(program: Path) -> set[str]:
    """The packages that a program imports, wherever in it."""
    found = set()
    for node in ast.walk(ast.parse(program.read_text("utf-8"))):
        match node:
            case ast.Import(names):
                found |= {each.name.partition(".")[0] for each in names}
            case ast.ImportFrom(module=str(module)):
                found.add(module.partition(".")[0])
    return found - sys.stdlib_module_names - WITH_THE_CLIENT


def test_every_example_is_in_the_table() -> None:
    programs = {path.name for path in EXAMPLES.glob("*.py")}
    assert {name for name, _ in ROWS if name.endswith(".py")} == programs


@pytest.mark.parametrize(("name", "needs"), [row for row in ROWS if row[0].endswith(".py")])
def test_an_example_s_extras_bring_what_it_imports(name: str, needs: str) -> None:
    extras = [EXTRAS[extra] for extra in re.findall(r"`(\w+)`", needs)]
    assert imported(EXAMPLES / name) == set().union(*extras)
