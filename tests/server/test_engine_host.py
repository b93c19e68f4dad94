"""EngineHost: events find their handlers, whatever another handler does."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from realtime_tts.engine.fake import FakeEngine, FakeEngineConfig
from realtime_tts.engine.interface import EngineInfo, Execution, UtteranceSpec
from realtime_tts.engine.link import Append, Audio, Command, Ended, Event, Finish, Open
from realtime_tts.text import languages, normalizer, scripts
from tests.server.speaking import speaking
from tests.waiting import until

FRAME_BYTES = 3_840


async def test_a_handler_that_raises_loses_no_event_of_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def raises(event: Event) -> None:
        raise ZeroDivisionError("injected")

    heard: list[Event] = []
    async with speaking() as server:
        engine = server.running.front.engine
        for id, handler in (("bad", raises), ("good", heard.append)):
            engine.open(Open(id, UtteranceSpec()), handler)
            engine.submit(Append(id, [1, 2, 3]))
            engine.submit(Finish(id))
        await until(lambda: heard and isinstance(heard[-1], Ended))
        engine.forget("good")
        pcm = b"".join(event.pcm for event in heard if isinstance(event, Audio))
        assert len(pcm) == 3 * FRAME_BYTES
        await server.settled_engine()
    lost = [record for record in caplog.records if record.message == "engine.event_lost"]
    assert len(lost) == 1, "nothing more of it was delivered"


async def test_a_whole_text_leaves_in_one_piece_and_before_other_work_of_the_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent: list[tuple[Command, ...]] = []
    whole = Open("whole", UtteranceSpec()), Append("whole", [1, 2, 3]), Finish("whole")
    heard: list[Event] = []
    async with speaking() as server:
        engine = server.running.front.engine
        submit = engine._link.submit

        def noted(*commands: Command) -> None:
            sent.append(commands)
            submit(*commands)

        monkeypatch.setattr(engine._link, "submit", noted)
        engine.open(whole[0], heard.append)
        engine.submit(whole[1])
        assert not sent, "its end may come"
        engine.submit(whole[2])
        assert sent == [whole]
        await until(lambda: heard and isinstance(heard[-1], Ended))
        engine.forget("whole")
        assert sent == [whole], "once"


async def test_what_texts_in_a_language_need_is_loaded_before_the_engine_is_ready() -> None:
    caches = (languages._load, normalizer._candidate_for, scripts._foreign_to)
    for cache in caches:
        cache.cache_clear()
    spoken = ("auto", "english", "german")
    async with speaking(engine=FakeEngineConfig(languages=spoken)) as server:
        loaded = [cache.cache_info() for cache in caches]
        for language in spoken:
            async with server.talk(f"?text_normalization=on&language={language}") as talker:
                await talker.send("text", text="12", end=True)
                await talker.until("turn.done")
    assert [cache.cache_info().misses for cache in caches] == [one.misses for one in loaded]
    assert all(
        cache.cache_info().hits > one.hits for cache, one in zip(caches, loaded, strict=True)
    ), "the turns use them"


class OnTwoGpus(FakeEngine):
    @property
    def info(self) -> EngineInfo:
        gpus = (Execution("cuda:0", "bfloat16", "H200"), Execution("cuda:1", "bfloat16", "H200"))
        return replace(super().info, executions=gpus)


async def test_what_the_engine_computes_with_is_logged_and_shown_once_it_is_ready(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level("INFO"):
        async with speaking(load=lambda progress: OnTwoGpus()) as server:
            info = server.running.front.engine.info
            for device in ("cuda:0", "cuda:1"):
                labels = {"dtype": "bfloat16", "gpu": "H200", "predictor": "separate"}
                labels["talker"] = "separate"
                labels |= {"programs": "eager", "kernels": "torch", "model": info.model}
                assert server.value("tts_engine_info", device=device, **labels) == 1
    (ready,) = (record for record in caplog.records if record.message == "engine.ready")
    fields = ready.__dict__["fields"]
    assert fields["runs"] == [
        "cuda:0: H200, bfloat16, plain torch modules",
        "cuda:1: H200, bfloat16, plain torch modules",
    ]
    assert fields["slots"] == info.slots and fields["capacity"] > 0
