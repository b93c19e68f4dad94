"""Several checkpoints in one server: an engine (or several) for each, seen as one.

The session picks a checkpoint with `model`, or by its voice: a speaker belongs to the checkpoint
that has it, a registered voice to a Base checkpoint of its family. Otherwise the first one speaks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from msgspec.structs import replace

from realtime_tts.engine.data_parallel import DataParallelEngines
from realtime_tts.engine.interface import EngineInfo, UtteranceSpec
from realtime_tts.engine.link import EngineLink, Open, Stranded
from realtime_tts.errors import RequestError
from realtime_tts.recent import Recent

FamilyOf = Callable[[str], str | None]
"""Returns the `model` of a registered voice by its name; None: there is no such voice."""

_VOICES = 1_000


class Models(DataParallelEngines):
    """An `EngineLink` over links by the name of their model; the first one is the default.

    Ready once all have been ready, and then as long as one is. A link that is not ready refuses its
    turns.
    """

    def __init__(
        self,
        links: Mapping[str, EngineLink],
        family_of: FamilyOf = lambda name: None,
        *,
        loaded: bool = False,
    ) -> None:
        super().__init__(tuple(links.values()), loaded=loaded)
        self._names = tuple(links)
        self._family_of = family_of
        self._families: Recent[str, str] = Recent(_VOICES)
        """Families of the voices named last, for turns whose voice is deleted meanwhile."""

    @property
    def info(self) -> EngineInfo:
        """The default's info, with the voices and languages of all; `models` has each."""
        models = tuple(link.info for link in self._links)
        return replace(
            super().info,
            voices=_union(info.voices for info in models),
            languages=_union(info.languages for info in models),
            default_voice=None,  # a session that picks a model gets that model's own
            max_frames=max(info.max_frames for info in models),
            voice_family=next((info.voice_family for info in models if info.clones), ""),
            models=models,
        )

    def check(self, spec: UtteranceSpec) -> None:
        self._links[self._chosen(spec)].check(spec)

    def info_for(self, spec: UtteranceSpec) -> EngineInfo:
        return self._links[self._chosen(spec)].info

    def stranded(self) -> list[Stranded]:
        """Return each model's groups: the other models cannot speak them."""
        return [group for link in self._links for group in link.stranded()]

    def _pick(self, command: Open) -> int:
        try:
            return self._chosen(command.spec)
        except RequestError:  # the session was checked: its model does not go away
            return 0

    def _pick_again(self, command: Open, tried: Collection[int]) -> int | None:
        return None  # the others speak with other models

    def _chosen(self, spec: UtteranceSpec) -> int:
        if spec.model is not None:
            if spec.model not in self._names:
                loaded = ", ".join(self._names)
                raise RequestError(
                    f"unknown model {spec.model!r}; this server has loaded: {loaded}"
                )
            return self._names.index(spec.model)
        return 0 if spec.voice is None else self._with_voice(spec.voice.lower())

    def _with_voice(self, voice: str) -> int:
        infos = [link.info for link in self._links]
        for number, info in enumerate(infos):
            if voice in info.voices:
                return number
        family = self._family_of(voice)
        if family is None:
            family = self._families.get(voice)
        if family is None:
            return 0
        self._families[voice] = family
        bases = [number for number, info in enumerate(infos) if info.clones]
        same = [number for number in bases if infos[number].voice_family == family]
        return next(iter(same + bases), 0)


def _union(parts: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for part in parts for name in part))
