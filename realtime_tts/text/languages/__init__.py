"""How numbers are read in the languages we know; `language_for` finds one by its name."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from realtime_tts.text.languages.language import Language

__all__ = ["NAMES", "Language", "language_for"]

NAMES = ("english", "german", "french", "spanish", "chinese")
_CODES = {"en": "english", "de": "german", "fr": "french", "es": "spanish"}
_CODES |= {"zh": "chinese", "cmn": "chinese"}
_MODULES = {name: name for name in NAMES} | _CODES


def language_for(name: str | None) -> Language | None:
    """Return the language called `name` ("English", "en", "en-GB"), or None for an unknown one."""
    key = (name or "").lower().replace("_", "-")
    key = key if key in _MODULES else key.partition("-")[0]
    return _load(_MODULES[key]) if key in _MODULES else None


@cache
def _load(name: str) -> Language:
    module = import_module(f"realtime_tts.text.languages.{name}")
    language = getattr(module, name.upper())
    assert isinstance(language, Language)
    return language
