"""Scripts of utterances, and an engine speaking them: who begins when, waits, leaves, is heard."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from realtime_tts.audio.pcm import FULL_SCALE
from realtime_tts.engine.interface import (
    Engine,
    Samples,
    StepOutput,
    UtteranceSpec,
)
from realtime_tts.engine.made_codes import unpacked
from realtime_tts.engine.sound import all_sound
from realtime_tts.engine.warm_up import ScriptedPages
from realtime_tts.sampling import PredictorSampling, Sampling
from tests.parity import GREEDY
from tts_scheduler import (
    Admitted,
    CodecRun,
    Decode,
    Layout,
    Prefill,
    Scheduler,
    SchedulerConfig,
    StepPlan,
    StepResult,
)

STEP_SECONDS = 0.075
"""Of a step of `speak_scheduled`."""

USUAL = Sampling()
HOT = Sampling(
    temperature=1.3,
    top_k=0,
    repetition_penalty=1.0,
    predictor=PredictorSampling(temperature=1.1, top_k=7),
)
NUCLEUS = Sampling(
    temperature=0.8,
    top_k=0,
    top_p=0.8,
    repetition_penalty=1.2,
    predictor=PredictorSampling(top_k=100, top_p=0.6),
)
HALF_GREEDY = Sampling(
    temperature=0.0,
    repetition_penalty=1.3,
    predictor=PredictorSampling(temperature=0.8, top_k=0),
)
SAMPLINGS = (USUAL, GREEDY, HOT, HALF_GREEDY, NUCLEUS)


@dataclass
class Utterance:
    """`begins`: step of its prefill; `waits`: steps it is left out of; `leaves`: step before which
    it is closed; `codec`: frames per codec run. What came of it: `codes` (first ones), `tokens`
    that its frames speak, `end`, `sound`."""

    id: str
    slot: int
    ids: Sequence[int]
    spec: UtteranceSpec = UtteranceSpec()
    layout: Layout = Layout.STREAMING
    begins: int = 0
    waits: Callable[[int], bool] = lambda step: False
    leaves: int | None = None
    codec: int = 1
    codes: list[int] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    end: str | None = None
    pieces: list[Samples] = field(default_factory=list)
    frames: int = 0
    sounded: int = 0

    @property
    def sound(self) -> Samples:
        return np.concatenate(self.pieces) if self.pieces else np.zeros(0, np.float32)


def speak(
    engine: Engine,
    utterances: Sequence[Utterance],
    steps: int,
    before: Callable[[int], None] = lambda step: None,
) -> None:
    """Run up to `steps` steps; every utterance keeps what came of it."""
    pages = ScriptedPages(engine.info.slots, engine.kv_cache)
    for utterance in utterances:
        engine.open(utterance.id, utterance.spec)
        engine.append(utterance.id, utterance.ids)
        engine.finish(utterance.id)
    for step in range(steps):
        before(step)
        for utterance in utterances:
            if utterance.leaves == step and utterance.end is None:
                engine.close(utterance.id)
                pages.release(utterance.slot)
                utterance.end = "left"
        live = [u for u in utterances if u.end is None and u.begins <= step and not u.waits(step)]
        if live:
            note(engine, engine.step(pages.added_to(plan(engine, live))), live)
            for utterance in live:
                if utterance.end is not None:
                    pages.release(utterance.slot)
    for utterance in utterances:
        engine.close(utterance.id)


def speak_scheduled(
    engine: Engine, utterances: Sequence[Utterance], most_steps: int = 3000
) -> list[StepPlan]:
    """Let the real scheduler decide, with the engine's memory and steps that take nearly a frame's
    time, so that nobody is far ahead of a listener; returns plans.

    `begins` and `leaves` count steps. `waits` tells for a step whether an utterance's text is still
    to come: it has its first three tokens then, and gets the others as soon as it does not wait.
    """
    config = SchedulerConfig(
        slots=engine.info.slots,
        kv_utilisation=1e6,
        utilisation=1e6,
        max_start_wait=0.0,
        start_seconds=60.0,
    )
    scheduler = Scheduler(config, kv_cache=engine.kv_cache)
    told: dict[str, int] = {}
    plans: list[StepPlan] = []
    for step in range(most_steps):
        now = step * STEP_SECONDS
        for utterance in utterances:
            _tell(engine, scheduler, utterance, told, step)
        wanted = scheduler.plan(now)
        if wanted is not None:
            plans.append(wanted)
            live = [u for u in utterances if u.id in wanted.ids]
            output = engine.step(wanted)
            sound = {id: len(samples) for id, samples in heard(output).items()}
            over = frozenset({*output.ended, *output.failed})
            result = StepResult(STEP_SECONDS, frozenset(output.frames), sound, over)
            scheduler.commit(wanted, result, now + STEP_SECONDS)
            note(engine, output, live)
        if all(u.end is not None for u in utterances):
            return plans
    raise AssertionError(f"not over: {[u.id for u in utterances if u.end is None]}")


def _tell(
    engine: Engine, scheduler: Scheduler, utterance: Utterance, told: dict[str, int], step: int
) -> None:
    """What comes in for one utterance before a step; `told`: tokens that it was given."""
    id, now = utterance.id, step * STEP_SECONDS
    if utterance.end is not None or step < utterance.begins:
        return
    if step == utterance.leaves:
        scheduler.cancel(id, now)
        engine.close(id)
        utterance.end = "left"
        return
    if id not in told:
        engine.open(id, utterance.spec)
        answer = scheduler.open(
            id,
            prompt_tokens=engine.prompt_tokens(utterance.spec),
            now=now,
            layout=utterance.layout,
            text_needed=engine.text_needed(utterance.spec),
        )
        assert isinstance(answer, Admitted), answer
        told[id] = 0
    known, count = told[id], len(utterance.ids)
    upto = min(3, count) if utterance.waits(step) else count
    if upto > known:
        engine.append(id, utterance.ids[known:upto])
        scheduler.append(id, upto - known, now)
        told[id] = upto
        if upto == count:
            engine.finish(id)
            scheduler.finish(id, now)


def plan(engine: Engine, live: Sequence[Utterance]) -> StepPlan:
    """A frame of everybody, and the codec for whoever then has enough frames."""
    prefills = tuple(
        Prefill(u.id, u.slot, engine.prompt_tokens(u.spec), len(u.ids), u.layout)
        for u in live
        if u.frames == 0
    )
    decodes = tuple(Decode(u.id, u.slot, u.frames) for u in live if u.frames)
    runs = tuple(
        CodecRun(u.id, u.slot, u.codec) for u in live if u.frames + 1 - u.sounded >= u.codec
    )
    return StepPlan(prefills, decodes, runs)


def note(engine: Engine, output: StepOutput, live: Sequence[Utterance]) -> None:
    sound = heard(output)
    for utterance in live:
        id = utterance.id
        if id in output.frames:
            utterance.codes.append(output.frames[id])
            utterance.tokens += unpacked(output.tokens.get(id, b""), 1)[:, 0].tolist()
            utterance.frames += 1
        if id in sound:
            utterance.pieces.append(sound[id])
            utterance.sounded += len(sound[id]) // engine.info.samples_per_frame
        if id in output.failed:
            utterance.end = output.failed[id].code
        elif id in output.ended:
            utterance.end = output.ended[id]
        if utterance.end is not None:
            engine.close(id)


def heard(output: StepOutput) -> dict[str, Samples]:
    """Samples by id, PCM as floats."""
    sound: dict[str, Samples] = {}
    for block in all_sound(output):
        assert sound.keys().isdisjoint(block.ids), "an id is in one block, once"
        samples = block.samples
        floats = samples / np.float32(FULL_SCALE) if samples.dtype == np.int16 else samples
        sound.update(zip(block.ids, floats.astype(np.float32), strict=True))
    return sound


def same_speech(one: Sequence[Utterance], other: Sequence[Utterance]) -> None:
    """Assert equal codes and ends, and the same sound but for rounding."""
    for a, b in zip(one, other, strict=True):
        assert (a.id, a.codes, a.end) == (b.id, b.codes, b.end)
        assert a.tokens == b.tokens, a.id
        assert a.sound.shape == b.sound.shape, a.id
        np.testing.assert_allclose(a.sound, b.sound, atol=2e-4, rtol=0, err_msg=a.id)


def lookups(prefixes: Any) -> list[bool]:
    """Whether each prefix that is asked for from now on was kept, in a list that grows."""
    found: list[bool] = []
    get = prefixes.get

    def told(key: Hashable) -> Any:
        span = get(key)
        found.append(span is not None)
        return span

    prefixes.get = told
    return found


def step_of(prefill: Prefill, frame: int) -> StepPlan:
    """The plan that makes this frame of a turn alone, and its sound; its prefill makes the first
    behind those that were spoken."""
    begins = frame == prefill.spoken
    return StepPlan(
        (prefill,) if begins else (),
        () if begins else (Decode(prefill.id, prefill.slot, frame),),
        (CodecRun(prefill.id, prefill.slot, 1),),
    )
