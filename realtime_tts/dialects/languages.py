"""Languages by the codes that other APIs use."""

from __future__ import annotations

from realtime_tts.engine.interface import EngineInfo

_LANGUAGES = {
    "ar": "arabic", "de": "german", "en": "english", "es": "spanish", "fr": "french",
    "hi": "hindi", "it": "italian", "ja": "japanese", "ko": "korean", "nl": "dutch",
    "pl": "polish", "pt": "portuguese", "ru": "russian", "sv": "swedish", "tr": "turkish",
    "zh": "chinese",
}  # fmt: skip


def our_language(code: str | None, info: EngineInfo) -> str | None:
    """Our name for `en`, `en-GB` and so on; None, to find out, where the checkpoint has it not."""
    if code is None:
        return None
    name = _LANGUAGES.get(code.lower().partition("-")[0], code.lower())
    languages = {language for one in info.models or (info,) for language in one.languages}
    return name if name in languages else None
