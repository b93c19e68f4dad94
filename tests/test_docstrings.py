"""Docstrings are understood by a reader who sees nothing else, as on hover in an editor."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGES = ("realtime_tts", "scheduler")
FRAGMENT = re.compile(r"(The same|Of|As|That of|Those|So|It|Its|They|Who|Whose|Whoever)\b")
CLAUSE = re.compile(r"(What|Where|When|How|Why)\b")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def advice(owner: ast.AST, text: str) -> str | None:
    """What to write instead of a docstring of `owner`; None if it begins well."""
    if FRAGMENT.match(text):
        return "name the thing first ('Seconds until …'), or what is done ('Return …')"
    if not isinstance(owner, FUNCTIONS):
        return None
    if text.startswith("Whether ") and "bool" not in ast.unparse(owner.returns or ast.Pass()):
        return "'Whether' is for functions that return bool; begin with a verb ('Return …')"
    is_property = any("property" in ast.unparse(one) for one in owner.decorator_list)
    return None if is_property or not CLAUSE.match(text) else "begin with a verb ('Return …')"


def docstrings(tree: ast.AST) -> Iterator[tuple[ast.AST, int, str]]:
    """Each docstring and its line, with its module, class or function, or the statement before."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        owner = node
        for statement in body if isinstance(body, list) else ():
            match statement:
                case ast.Expr(value=ast.Constant(value=str() as text)):
                    yield owner, statement.lineno, text
            owner = statement


def test_docstrings_can_be_read_alone() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {text[:50]!r}: {better}"
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
        for owner, line, text in docstrings(ast.parse(path.read_text(encoding="utf-8")))
        if (better := advice(owner, text))
    ]
    assert not found, "\n".join(["docstrings that open with a fragment:", *found])
