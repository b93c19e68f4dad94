"""A turn that loses its engine is heard as if it had not, on every engine and in every layout."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from random import Random

import pytest

from realtime_tts import demo_voice
from realtime_tts.engine.captured_engine import CapturedEngine
from realtime_tts.engine.failover import Failover
from realtime_tts.engine.fake import FakeEngine, FakeEngineConfig
from realtime_tts.engine.interface import Engine, UtteranceSpec
from realtime_tts.engine.link import Ended
from realtime_tts.engine.torch_engine import TorchEngine
from realtime_tts.model import SpeechModel, load_model
from realtime_tts.text.tokenizer import Qwen2Tokenizer
from tests.engine.faulty import Faults, FaultyEngine
from tests.engine.moving import LosingLink, Script, inline, spoken
from tests.engine.speaking import SAMPLINGS
from tests.model.light import light_model
from tests.parity import PARITY
from tts_scheduler import StepPlan

pytestmark = pytest.mark.usefixtures("one_thread", "all_rows")


@cache
def demo(number: int) -> tuple[SpeechModel, Qwen2Tokenizer]:
    """One for each engine: threads share no model."""
    folder = demo_voice.FOLDER
    return load_model(folder), Qwen2Tokenizer.from_folder(folder)


@cache
def tiny(number: int) -> tuple[SpeechModel, Qwen2Tokenizer]:
    """Random weights, which never end by themselves."""
    folder = PARITY / "tiny-custom_voice"
    model = light_model(folder)
    generation = replace(model.config.generation, min_frames=10**6)
    model.config = replace(model.config, generation=generation, alignment_heads=((0, 1), (1, 0)))
    return model, Qwen2Tokenizer.from_folder(folder)


def torch_engine(kind: str, number: int) -> Engine:
    model, tokenizer = (demo if kind == "demo" else tiny)(number)
    frames = 60 if kind == "demo" else 32
    if kind == "captured":
        return CapturedEngine(
            model, tokenizer, name=kind, slots=8, max_frames=frames, kv_positions=8 * 256
        )
    return TorchEngine(model, tokenizer, name=kind, slots=8, max_frames=frames)


def fake_engine(kind: str, number: int) -> Engine:
    config = FakeEngineConfig(slots=8, step_seconds=0.0005, silence=3_000, aligned=True)
    return FakeEngine(config)


def scripts(engine: Engine, random: Random, count: int, longest: int) -> list[Script]:
    """Utterances of all kinds: layouts, voices, penalties, trimmed or not, text in pieces."""
    made = []
    voices = engine.info.voices
    for number in range(count):
        ids = [random.randrange(200) for _ in range(random.randrange(3, longest))]
        streaming = random.random() < 0.6
        cuts = sorted(random.sample(range(1, len(ids)), random.randrange(3))) if streaming else []
        pieces = [ids[a:b] for a, b in zip([0, *cuts], [*cuts, len(ids)], strict=True)]
        spec = UtteranceSpec(
            voice=random.choice([*voices, None]),
            seed=random.randrange(2**63),
            sampling=random.choice(SAMPLINGS),
            layout="streaming" if streaming else "full_text",
            trim_silence=random.choice(["on", "off"]),
        )
        made.append(Script(f"u{number}", pieces, spec))
    return made


CASES = [
    (kind, seed)
    for kind, seeds in (("demo", 1), ("tiny", 1), ("captured", 2), ("fake", 6))
    for seed in range(seeds)
]
"""Those that take no time are many."""


@pytest.mark.parametrize(("kind", "seed"), CASES)
async def test_what_lost_its_engine_goes_on_bit_for_bit(kind: str, seed: int) -> None:
    random = Random(f"{kind} {seed}")
    load = fake_engine if kind == "fake" else torch_engine
    engine = load(kind, 0)
    count, longest = (4, 12) if kind == "demo" else (6, 24)
    wanted = scripts(engine, random, count, longest)
    found = [Script(each.id, each.pieces, each.spec) for each in wanted]
    await spoken(inline(partial(load, kind, 0)), wanted)
    soon = 2 if kind == "demo" else 6  # the sound of its short texts comes in few events
    cuts = {
        script.id: [random.randrange(soon) for _ in range(random.randrange(1, 4))]
        for script in found
    }
    engines = [inline(partial(load, kind, number)) for number in range(2)]
    await spoken(Failover(LosingLink(engines, cuts), 30.0), found)
    for one, other in zip(wanted, found, strict=True):
        assert one.story == other.story, one.id
        assert len(one.tokens) == len(one.codes) // engine.info.codes_per_frame, one.id
    assert sum(script.moves for script in found) >= 4


async def test_a_turn_that_lost_its_engine_goes_on_with_a_voice_that_was_deleted() -> None:
    voices, steps = {"anna"}, 0

    def lose(plan: StepPlan) -> None:
        nonlocal steps
        steps += 1
        if steps == 8:
            voices.clear()
            raise RuntimeError("device lost (injected)")

    faults = Faults(before_step=lose)
    engine = FaultyEngine(FakeEngineConfig(), faults, lambda name: name in voices)
    script = Script("a", [range(12)], UtteranceSpec(voice="Anna"))
    await spoken(Failover(inline(lambda: engine), 30.0), [script])
    assert isinstance(script.end, Ended) and script.end.frames == 36, script.end
    assert script.moves == 1 and not voices
