"""The languages that checkpoints speak, by name and by code (ISO 639)."""

from __future__ import annotations

AUTO = "auto"
"""Stands for the language of the text."""

_NAMES = {
    "ar": "arabic",
    "cmn": "chinese",
    "de": "german",
    "en": "english",
    "es": "spanish",
    "fr": "french",
    "hi": "hindi",
    "it": "italian",
    "ja": "japanese",
    "ko": "korean",
    "nl": "dutch",
    "pl": "polish",
    "pt": "portuguese",
    "ru": "russian",
    "sv": "swedish",
    "tr": "turkish",
    "zh": "chinese",
}


def language_name(code: str) -> str | None:
    """Return `english` for `en`, `en-GB`, `en_GB` and so on; None for an unknown code."""
    return _NAMES.get(code.lower().replace("_", "-").partition("-")[0])


def known_as(asked: str | None) -> str:
    """Return the name that checkpoints have for a language: `english` for `English` and all its
    codes, `auto` for None. What is unknown comes back in lower case."""
    return (language_name(asked) or asked.lower()) if asked else AUTO
