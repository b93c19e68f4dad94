"""A number of things, as a person says it."""

from __future__ import annotations


def counted(number: int, one: str, many: str | None = None) -> str:
    """Return "1 turn" or "2 turns". `many`: a plural other than `one` with an s."""
    return f"{number} {one}" if number == 1 else f"{number} {many or one + 's'}"
