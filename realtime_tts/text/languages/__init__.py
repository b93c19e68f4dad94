"""How numbers are read in the languages we know; `language_for` finds one by its name."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from realtime_tts.languages import known_as
from realtime_tts.text.languages.language import Language

__all__ = ["NAMES", "Language", "language_for"]

NAMES = ("english", "german", "french", "spanish", "chinese")


def language_for(name: str | None) -> Language | None:
    """Return the language called `name` ("English", "en", "en-GB"), or None for an unknown one."""
    known = known_as(name)
    return _load(known) if known in NAMES else None


@cache
def _load(name: str) -> Language:
    module = import_module(f"realtime_tts.text.languages.{name}")
    language = getattr(module, name.upper())
    assert isinstance(language, Language)
    return language
