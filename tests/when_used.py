"""Packages that take longer to import than most files of tests take to run."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class WhenUsed:
    """The module `name`, imported when something of it is first asked for: whoever only collects
    tests, or runs others, does without."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("_"):  # pytest looks for some of its own at everything
            raise AttributeError(attribute)
        return getattr(import_module(self._name), attribute)
