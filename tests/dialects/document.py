"""docs/dialects.md, by its sections."""

from __future__ import annotations

import re
from pathlib import Path

DOCUMENT = (Path(__file__).parents[2] / "docs" / "dialects.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    """What it says under this title, up to the next one."""
    found = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", DOCUMENT, re.DOTALL | re.MULTILINE)
    assert found is not None, title
    return found[1]


def prose(title: str) -> str:
    """A section in one line."""
    return " ".join(section(title).split())
