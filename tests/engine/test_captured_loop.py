"""The real loop and scheduler over a captured engine that has too little memory for all."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from realtime_tts.engine.captured_engine import CapturedEngine
from realtime_tts.engine.guards import GuardConfig
from realtime_tts.engine.interface import StepOutput, UtteranceSpec
from realtime_tts.engine.link import Append, Audio, Cancel, Ended, Event, Finish, Open
from realtime_tts.engine.loop import EngineLoop
from realtime_tts.text.tokenizer import Qwen2Tokenizer
from tests.model.light import light_model
from tests.parity import PARITY
from tests.waiting import SECONDS
from tts_scheduler import Scheduler, SchedulerConfig, StepPlan

FRAMES = 16
TURNS = 6

pytestmark = pytest.mark.usefixtures("one_thread")


def engine(kv_positions: int) -> CapturedEngine:
    folder = PARITY / "tiny-custom_voice"
    model = light_model(folder)
    generation = replace(model.config.generation, min_frames=FRAMES + 1)
    model.config = replace(model.config, generation=generation)
    return CapturedEngine(
        model,
        Qwen2Tokenizer.from_folder(folder),
        name="tiny",
        slots=TURNS,
        kv_positions=kv_positions,
        max_frames=FRAMES,
    )


def spoken(engine: CapturedEngine) -> tuple[dict[str, bytes], int]:
    """PCM of every turn, and the most rows of a step; one turn waits for text until the others are
    over, and is interrupted then."""
    events: list[Event] = []
    over = threading.Event()
    rows = [0]

    def publish(new: list[Event]) -> None:
        events.extend(new)
        if sum(isinstance(event, Ended) for event in events) == TURNS - 1:
            over.set()

    step = engine.step

    def watched(plan: StepPlan) -> StepOutput:
        rows.append(plan.rows)
        return step(plan)

    engine.step = watched  # type: ignore[method-assign]
    config = SchedulerConfig(
        slots=TURNS, lead_cap=100.0, utilisation=100.0, kv_utilisation=100.0, max_queue=0
    )
    guards = GuardConfig(enabled=False)
    loop = EngineLoop(engine, Scheduler(config, kv_cache=engine.kv_cache), publish, guards=guards)
    loop.submit(Open("held", UtteranceSpec(seed=99)), Append("held", [5] * 12))
    for number in range(TURNS - 1):
        id = f"u{number}"
        spec = UtteranceSpec(seed=number, layout="streaming")
        loop.submit(Open(id, spec), Append(id, [3, 4, number]), Finish(id))
    thread = threading.Thread(target=loop.run)
    thread.start()  # with all of them there: on a slow machine, one would be over before the next
    assert over.wait(SECONDS), [event for event in events if not isinstance(event, Audio)]
    loop.submit(Cancel("held"))
    loop.stop()
    thread.join(SECONDS)
    assert not thread.is_alive()
    ended = {event.id: event.reason for event in events if isinstance(event, Ended)}
    assert set(ended.values()) == {"max_length"}
    sound = dict.fromkeys(ended, b"")
    for event in events:
        if isinstance(event, Audio) and event.id in sound:
            sound[event.id] += event.pcm
    return sound, max(rows)


def test_turns_wait_for_memory_and_none_is_lost() -> None:
    plenty, many = spoken(engine(600))
    little, few = spoken(engine(80))
    assert few < many
    assert {id: len(pcm) for id, pcm in plenty.items()} == dict.fromkeys(plenty, FRAMES * 3840)
    assert little == plenty
