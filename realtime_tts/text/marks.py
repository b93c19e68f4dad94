"""Looking at marks at the beginning of a text of which more may come.

All these functions follow one rule: what they answer for a text they also answer for every longer
one, and where they cannot know they answer None, unless the text is said to have `ended`.
"""

from __future__ import annotations

_DEEPEST_BRACKETS = 3  # an image with brackets in its text, in the label of a link

Step = int | None
"""Characters decided about: 0 = no mark here, after all; None = more text is needed."""


def run_length(text: str, char: str) -> int:
    """How many times `char` stands at the beginning."""
    return len(text) - len(text.lstrip(char))


def starts_with(text: str, ended: bool, words: tuple[str, ...]) -> str | None:
    """The first of `words` that the text starts with in any case, "" for none."""
    lower = text.lower()
    if not ended and any(len(lower) < len(word) and word.startswith(lower) for word in words):
        return None
    return next((word for word in words if lower.startswith(word)), "")


def closing_bracket(text: str) -> Step:
    """Find the index of the bracket, in the same line, that closes the one at the beginning."""
    depth = 0
    escaped = False
    for index, char in enumerate(text):
        if char == "\n" or depth > _DEEPEST_BRACKETS:
            return 0
        if escaped or char == "\\":
            escaped = not escaped
        elif char in "[]":
            depth += 1 if char == "[" else -1
            if depth == 0:
                return index
    return None
