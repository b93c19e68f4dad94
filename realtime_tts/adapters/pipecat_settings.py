"""What can be set in a running pipeline, in Pipecat's terms and in the server's."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, Literal

from pipecat.services.settings import NOT_GIVEN, TTSSettings, is_given
from pipecat.transcriptions.language import Language

from realtime_tts.client import SamplingOptions, SessionOptions
from realtime_tts.client.options import merged

OPTIONS = frozenset(SessionOptions.__annotations__)
"""The settings that the server has; Pipecat's classes may come to have more."""

_LANGUAGES = {
    "de": "german",
    "en": "english",
    "es": "spanish",
    "fr": "french",
    "it": "italian",
    "ja": "japanese",
    "ko": "korean",
    "pt": "portuguese",
    "ru": "russian",
    "zh": "chinese",
}


def _not_given() -> Any:
    return NOT_GIVEN


@dataclass
class RealtimeTTSSettings(TTSSettings):
    """Settings of the speech that begins from now on. What is None is left to the server.

    Besides `model`, `voice` and `language` (a Pipecat `Language`, or one of `ready.languages`),
    everything of `realtime_tts.client.SessionOptions` but `word_times`, which is the service's, and
    `audio`, which is the pipeline's. In an update `sampling` changes the fields it has and keeps
    the others.
    """

    instructions: str | None = field(default_factory=_not_given)
    seed: int | None = field(default_factory=_not_given)
    sampling: SamplingOptions | None = field(default_factory=_not_given)
    text_filter: Literal["on", "off"] | None = field(default_factory=_not_given)
    text_normalization: Literal["auto", "on", "off"] | None = field(default_factory=_not_given)
    lexicon: dict[str, str] | None = field(default_factory=_not_given)
    layout: Literal["auto", "streaming", "full_text"] | None = field(default_factory=_not_given)
    trim_silence: Literal["on", "off"] | None = field(default_factory=_not_given)
    pacing: Literal["auto", "token", "clause", "sentence"] | None = field(
        default_factory=_not_given
    )
    lead_ms: int | None = field(default_factory=_not_given)

    @classmethod
    def unset(cls) -> RealtimeTTSSettings:
        """Everything left to the server."""
        names = [each.name for each in dataclasses.fields(cls) if each.name != "extra"]
        return cls(**dict.fromkeys(names))


def session_options(settings: TTSSettings) -> dict[str, Any]:
    """The options of `RealtimeTTS` that are set."""
    given = {name: getattr(settings, name, None) for name in OPTIONS}
    options = {name: value for name, value in given.items() if value is not None}
    if isinstance(options.get("language"), str):
        options["language"] = server_language(options["language"]) or str(options["language"])
    return options


def server_language(language: Language | str) -> str | None:
    """`english` for en-GB; None if it is no language code that is known here."""
    return _LANGUAGES.get(str(language).split("-")[0].lower())


def with_all_sampling(settings: TTSSettings, delta: TTSSettings) -> TTSSettings:
    """`delta` with the sampling that results, where it changes some of it."""
    new = getattr(delta, "sampling", NOT_GIVEN)
    old = getattr(settings, "sampling", None)
    if not is_given(new) or not new or not old:
        return delta
    return dataclasses.replace(delta, sampling=merged(old, new))
