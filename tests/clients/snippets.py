"""The programs of the documents that need a client: blocks that begin with ```LANGUAGE client=NAME.

`make test-clients` runs each in the environment of tests/clients/NAME, against the open server.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENTS = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
ADDRESS = "127.0.0.1:8000"
"""What the documents have in place of the server's host and port."""

_BLOCK = re.compile(r"^```(\w+) client=(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Snippet:
    """`place` is where it is, as file:line."""

    place: str
    language: str
    client: str
    program: str

    def against(self, url: str) -> str:
        """The program with the host and port of `url`."""
        return self.program.replace(ADDRESS, url.split("://", 1)[1])


def snippets() -> list[Snippet]:
    """Every such block, in the order of the documents."""
    found = []
    for path in DOCUMENTS:
        text = path.read_text(encoding="utf-8")
        for match in _BLOCK.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            place = f"{path.relative_to(ROOT)}:{line}"
            found.append(Snippet(place, match[1], match[2], match[3]))
    return found
