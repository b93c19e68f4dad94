"""The languages that checkpoints speak, by their codes (ISO 639-1)."""

from __future__ import annotations

_NAMES = {
    "ar": "arabic",
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
    """Return `english` for `en`, `en-GB` and so on; None for an unknown code."""
    return _NAMES.get(code.lower().partition("-")[0])
