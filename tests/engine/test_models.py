"""Several checkpoints behind one link: a session's model or its voice says which engine speaks."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from realtime_tts.engine import links, models
from realtime_tts.engine.fake import FakeEngine
from realtime_tts.engine.in_process import InProcessEngine
from realtime_tts.engine.interface import EngineInfo, UtteranceSpec
from realtime_tts.engine.link import (
    Append,
    Audio,
    Ended,
    Finish,
    Open,
)
from realtime_tts.engine.links import make_links
from realtime_tts.engine.load import voice_families
from realtime_tts.engine.models import Models
from realtime_tts.engine.settings import EngineConfig
from realtime_tts.errors import RequestError
from realtime_tts.metrics import Metrics
from realtime_tts.voices.file import write_voice
from realtime_tts.voices.registry import Registry
from tests.engine.test_data_parallel import Scripted
from tests.waiting import until
from tts_scheduler import SchedulerConfig


class Noted(Scripted):
    """A link to an engine with this checkpoint, which also notes what it is to check."""

    def __init__(self, model: str, voices: tuple[str, ...], variant: str, family: str = "") -> None:
        super().__init__(4)
        self._info = replace(
            FakeEngine().info,
            model=model,
            voices=voices,
            variant=variant,
            voice_family=family,
            default_voice=next(iter(voices), None),
            languages=("auto", model),
        )

    @property
    def info(self) -> EngineInfo:
        return self._info

    def check(self, spec: UtteranceSpec) -> None:
        self.given.append(spec)


def three() -> tuple[Models, dict[str, Noted]]:
    links = {
        "custom": Noted("custom", ("ava", "ben"), "custom_voice"),
        "small": Noted("small", (), "base", "0b6"),
        "large": Noted("large", (), "base", "1b7"),
    }
    families = {"anna": "1b7", "carl": "0b6", "eve": "another"}
    made = Models(links, families.get)
    made.start(lambda events: None)
    return made, links


@pytest.mark.parametrize(
    ("spec", "model"),
    [
        (UtteranceSpec(), "custom"),
        (UtteranceSpec(voice="Ben"), "custom"),
        (UtteranceSpec(voice="anna"), "large"),
        (UtteranceSpec(voice="carl"), "small"),
        (UtteranceSpec(voice="eve"), "small"),
        (UtteranceSpec(voice="nobody"), "custom"),
        (UtteranceSpec(model="large"), "large"),
        (UtteranceSpec(model="large", voice="ava"), "large"),
    ],
)
def test_a_turn_goes_where_its_model_or_its_voice_is(spec: UtteranceSpec, model: str) -> None:
    link, links = three()
    assert link.info_for(spec).model == model
    link.check(spec)
    link.submit(Open("a", spec), Append("a", [1]), Finish("a"))
    assert [len(one.given) for one in links.values()] == [
        4 if name == model else 0 for name in links
    ]


def test_a_turn_whose_voice_is_deleted_goes_on_where_it_was() -> None:
    families = {"anna": "1b7"}
    link = Models(
        {"custom": Noted("custom", ("ava",), "custom_voice"), "large": Noted("large", (), "base")},
        families.get,
    )
    link.check(UtteranceSpec(voice="Anna"))
    del families["anna"]
    assert link.info_for(UtteranceSpec(voice="Anna", begun=True)).model == "large"


def test_families_are_remembered_of_the_voices_named_last_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(models, "_VOICES", 2)
    families = {"anna": "1b7", "carl": "1b7", "eve": "1b7"}
    link = Models({"custom": Noted("custom", ("ava",), "custom_voice")}, families.get)
    for name in families:
        link.check(UtteranceSpec(voice=name))
    assert list(link._families) == ["carl", "eve"]


def test_a_model_that_is_not_loaded_is_refused_with_those_that_are() -> None:
    link, _ = three()
    with pytest.raises(RequestError, match="unknown model 'huge'.*custom, small, large"):
        link.check(UtteranceSpec(model="huge"))


def test_together_they_have_the_voices_and_languages_of_all() -> None:
    info = three()[0].info
    assert (info.model, info.voices, info.default_voice) == ("custom", ("ava", "ben"), None)
    assert info.languages == ("auto", "custom", "small", "large")
    assert [one.model for one in info.models] == ["custom", "small", "large"]
    assert info.clones and info.voice_family == "0b6"


async def test_the_family_of_a_registered_voice_is_read_from_the_folder(tmp_path: Path) -> None:
    registry = Registry(tmp_path)
    path = registry.unfinished()
    write_voice(path, np.ones(8, np.float32), name="anna", model="1b7")
    registry.add(path)
    family_of = voice_families(EngineConfig(voices_dir=str(tmp_path)))
    assert (family_of("anna"), family_of("ben")) == ("1b7", None)
    assert voice_families(EngineConfig())("anna") is None


def giving(engine: FakeEngine) -> Callable[[Any], FakeEngine]:
    """Loads it."""
    return lambda progress: engine


async def test_two_engines_speak_side_by_side() -> None:
    config = SchedulerConfig(slots=4)
    engines = {"one": FakeEngine(), "other": FakeEngine()}
    links = {name: InProcessEngine(giving(e), config) for name, e in engines.items()}
    link, events = Models(links), list[Any]()
    link.start(events.extend)
    try:
        await until(lambda: link.status().ready)
        for name in links:
            spec = UtteranceSpec(model=name, voice="bass" if name == "one" else "soprano")
            link.submit(Open(name, spec), Append(name, [1, 2, 3]), Finish(name))
        await until(lambda: sum(isinstance(event, Ended) for event in events) == 2)
    finally:
        await link.stop()
    pcm = {
        name: b"".join(e.pcm for e in events if isinstance(e, Audio) and e.id == name)
        for name in links
    }
    assert len(pcm["one"]) == len(pcm["other"]) > 0 and pcm["one"] != pcm["other"]


def test_each_checkpoint_gets_its_link() -> None:
    configs = [EngineConfig(), EngineConfig(model="elsewhere")]
    link = make_links(configs, Metrics(), lambda what, done, total: None)
    assert isinstance(link, Models)
    alone = make_links(configs[:1], Metrics(), lambda what, done, total: None)
    assert isinstance(alone, InProcessEngine)


@pytest.mark.parametrize(("cores", "threads"), [(64, 8), (5, 2), (2, 1)])
def test_checkpoints_on_one_cpu_share_its_cores(
    monkeypatch: pytest.MonkeyPatch, cores: int, threads: int
) -> None:
    """Of the cores that this process may use: a container may have few of a large machine's."""
    made: list[EngineConfig] = []
    monkeypatch.setattr(links, "engine_loader", made.append)
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(cores)), raising=False)
    configs = [EngineConfig(), EngineConfig(model="b"), EngineConfig(model="c", threads=3)]
    for alike in (configs[:2], [configs[0], configs[2]]):
        make_links(alike, Metrics(), lambda *progress: None)
    assert [one.threads for one in made] == [threads, threads, threads, 3]


def test_checkpoints_on_one_gpu_share_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each alone would take nearly all of it; a size that was asked for stays."""
    made: list[EngineConfig] = []
    monkeypatch.setattr(links, "engine_loader", made.append)
    for memory in (None, "20GiB"):
        configs = [
            EngineConfig(model=name, kind="process", device="cuda", gpu_memory=memory)
            for name in ("demo", "elsewhere")
        ]
        make_links(configs, Metrics(), lambda what, done, total: None)
    make_links([EngineConfig(), EngineConfig(model="b")], Metrics(), lambda *progress: None)
    assert [one.gpu_memory for one in made] == ["45%", "45%", "20GiB", "20GiB", None, None]
