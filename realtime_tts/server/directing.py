"""Director: what the markup of a text asks of the voice, and how much of that is possible."""

from __future__ import annotations

import msgspec

from realtime_tts.access.account import Account
from realtime_tts.audio.gain import LOUDEST, SOFTEST
from realtime_tts.audio.speed import FASTEST, SLOWEST, nearest
from realtime_tts.engine.interface import UtteranceSpec
from realtime_tts.errors import RequestError
from realtime_tts.instructions import manner
from realtime_tts.languages import AUTO, known_as
from realtime_tts.protocol.settings import SessionSettings
from realtime_tts.server.engine_host import EngineHost
from realtime_tts.server.session_settings import number_language, spoken_language
from realtime_tts.text.directions import AS_THE_SESSION, Voicing
from realtime_tts.text.languages import Language


class Director:
    """Directs one speech. A request that cannot be fulfilled leaves the session's setting, and is
    noted in `warnings`: the text is spoken all the same."""

    def __init__(self, settings: SessionSettings, engine: EngineHost, account: Account) -> None:
        self._settings, self._engine, self._account = settings, engine, account
        self.warnings: dict[str, None] = {}
        """What could not be done, in words for the client."""

    def able(self, asked: Voicing) -> Voicing:
        """Return the part of a request that is possible; equal results are spoken alike."""
        if asked == AS_THE_SESSION:
            return asked
        emotion, voice = self._emotion(asked), self._voice(asked.voice)
        language = self._language(asked.language, voice)
        rate, volume = self._rate(asked.rate), self._volume(asked.volume)
        return Voicing(voice, language, emotion, rate=rate, volume=volume)

    def language_of(self, voicing: Voicing) -> Language | None:
        """Return the language in which numbers are said with this voicing."""
        language = voicing.language or self._settings.language
        settings = msgspec.structs.replace(self._settings, language=language)
        info = self._engine.info_for(settings.model, voicing.voice or settings.voice)
        return number_language(settings, info)

    def direct(self, spec: UtteranceSpec, voicing: Voicing) -> UtteranceSpec:
        """Return what the engine needs to speak an utterance with this voicing."""
        if voicing == AS_THE_SESSION:
            return spec
        instructions = spec.instructions
        if voicing.emotion is not None:
            how = manner(voicing.emotion)
            instructions = f"{instructions} {how}" if instructions else how
        return msgspec.structs.replace(
            spec,
            voice=voicing.voice or spec.voice,
            language=voicing.language or spec.language,
            instructions=instructions,
            speed=nearest(spec.speed * (voicing.rate or 1.0)),
        )

    def _rate(self, asked: float | None) -> float | None:
        """Return the rate relative to the session's speed; None leaves that as it is."""
        own = self._settings.speed
        if asked is None or asked == 1.0:
            return None
        given = nearest(own * asked)
        if given != own * asked:
            self._warn(f"rate {asked:g}: this server has speeds from {SLOWEST:g} to {FASTEST:g}")
        return None if given == own else given / own

    def _volume(self, asked: float | None) -> float | None:
        if asked is None or asked == 1.0:
            return None
        given = min(LOUDEST, max(SOFTEST, asked))
        if given != asked:
            self._warn(f"volume {asked:g}: this server has volumes from {SOFTEST:g} to {LOUDEST:g}")
        return given

    def _voice(self, name: str | None) -> str | None:
        own = self._settings.voice
        if name is None or name.lower() == (own or "").lower():
            return None
        model = self._engine.info_for(self._settings.model, own).model
        try:
            self._account.check_voice(name)
            self._engine.check(UtteranceSpec(model=self._settings.model, voice=name))
        except RequestError as error:
            self._warn(f"voice {name!r}: {error}")
            return None
        if self._engine.info_for(self._settings.model, name).model != model:
            self._warn(f"voice {name!r}: it is not a voice of {model}, which speaks this text")
            return None
        return name

    def _language(self, code: str | None, voice: str | None) -> str | None:
        if code is None:
            return None
        info = self._engine.info_for(self._settings.model, voice or self._settings.voice)
        name = known_as(code)
        if name not in info.languages:
            spoken = [language for language in info.languages if language != AUTO]
            self._warn(f"language {code!r}: this checkpoint speaks {', '.join(spoken)}")
            return None
        return None if name == spoken_language(self._settings, info) else name

    def _emotion(self, asked: Voicing) -> str | None:
        info = self._engine.info_for(self._settings.model, self._settings.voice)
        if info.instructions:
            return asked.emotion or asked.cue
        if asked.emotion is not None:
            self._warn(f"emotion {asked.emotion!r}: {info.model} takes no instructions")
        return None

    def _warn(self, why: str) -> None:
        if len(self.warnings) < _MOST_WARNINGS:
            self.warnings[why] = None


_MOST_WARNINGS = 8  # per turn
