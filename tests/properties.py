"""How many examples a property is tried with, where the profile's usual number is not right."""

from __future__ import annotations

from hypothesis import settings

USUAL = 100
"""Examples of a property that says nothing of it, in the profile `explore`."""


def examples(count: int) -> settings:
    """`count` examples in the profile `explore`, and in other profiles in proportion."""
    share = settings().max_examples / USUAL
    return settings(max_examples=max(1, round(count * share)))
