"""Silence that every text begins with is not made, and everything is as if it had been."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from random import Random

import pytest
from msgspec import structs

from realtime_tts import demo_voice
from realtime_tts.engine.interface import StepOutput, UtteranceSpec
from realtime_tts.engine.link import Ended
from realtime_tts.engine.torch_engine import TorchEngine
from realtime_tts.model import SpeechModel, load_model
from realtime_tts.text.tokenizer import Qwen2Tokenizer
from tests.engine.moving import Script, inline, spoken
from tests.model.light import light_model
from tests.parity import PARITY
from tts_scheduler import StepPlan

pytestmark = pytest.mark.usefixtures("one_thread", "all_rows")
TEXTS = ("Yes.", "The kettle is on, and tea is at four.", "I", "Ray, is it you?")
TINY = PARITY / "tiny-custom_voice"


class Counting(TorchEngine):
    """Counts the rows of its steps, and those that begin behind silence."""

    def count(self) -> Counting:
        self.rows = self.silent = 0
        return self

    def step(self, plan: StepPlan) -> StepOutput:
        self.rows += plan.rows
        self.silent += sum(prefill.silent_start > 0 for prefill in plan.prefills)
        return super().step(plan)


@cache
def demo() -> SpeechModel:
    return load_model(demo_voice.FOLDER)


def engine(*, known: bool, max_frames: int = 24) -> Counting:
    model, tokenizer = demo(), Qwen2Tokenizer.from_folder(demo_voice.FOLDER)
    config = model.config
    if not known:
        model.config = replace(config, silent_start=())
    made = Counting(model, tokenizer, name="demo", slots=16, max_frames=max_frames)
    model.config = config
    return made.count()


def scripts() -> list[Script]:
    """Both layouts; texts whole, and in pieces of which the first may be too short."""
    random, made = Random(1), []
    tokenizer = Qwen2Tokenizer.from_folder(demo_voice.FOLDER)
    for layout in ("full_text", "streaming"):
        for number, text in enumerate(TEXTS):
            ids = tokenizer.encode(text)
            cut = random.randrange(len(ids)) if layout == "streaming" else 0
            pieces = [ids[:cut], ids[cut:]] if cut else [ids]
            voice = random.choice(["ava", "ray"])
            seed = random.randrange(2**63)
            spec = UtteranceSpec(voice=voice, seed=seed, layout=layout, trim_silence="on")
            made.append(Script(f"{layout} {number}", pieces, spec))
    return made


async def test_nothing_differs_from_frames_that_were_made() -> None:
    made, known = engine(known=False), engine(known=True)
    wanted, found = scripts(), scripts()
    await spoken(inline(lambda: made), wanted)
    await spoken(inline(lambda: known), found)
    for one, other in zip(wanted, found, strict=True):
        assert one.story == other.story, one.id
        assert len(one.tokens) * made.info.codes_per_frame == len(one.codes), one.id
    assert made.silent == 0 and 4 < known.silent < len(found)  # not with too little text
    assert known.rows == made.rows - 2 * known.silent


async def test_what_keeps_its_silence_makes_it() -> None:
    speaking = engine(known=True)
    spec = UtteranceSpec(voice="ava", trim_silence="off", layout="full_text")
    ids = Qwen2Tokenizer.from_folder(demo_voice.FOLDER).encode(TEXTS[0])
    script = Script("a", [ids], spec)
    await spoken(inline(lambda: speaking), [script])
    assert speaking.silent_start(spec) == 0 and speaking.silent == 0
    assert isinstance(script.end, Ended)
    assert speaking.rows == script.end.frames + 1  # with the one that was the end


def test_a_turn_that_may_not_be_longer_makes_its_frames() -> None:
    spec = UtteranceSpec(voice="ava", trim_silence="on")
    assert [engine(known=True, max_frames=most).silent_start(spec) for most in (2, 3)] == [0, 2]


async def test_a_turn_that_ends_behind_its_silence_has_no_sound() -> None:
    """All frames of this checkpoint are the end; only those that are known are none."""
    model = light_model(TINY)
    codes = ((1,) * model.config.talker.code_groups,) * 2
    generation = replace(model.config.generation, min_frames=0)
    model.config = replace(model.config, silent_start=codes, generation=generation)
    tokenizer = Qwen2Tokenizer.from_folder(TINY)
    load = partial(TorchEngine, model, tokenizer, name="tiny", slots=10, max_frames=8)
    ended: list[Script] = []
    for first in range(0, 200, 10):
        spec = UtteranceSpec(layout="full_text", trim_silence="on")
        made = [
            Script(f"{seed}", [[1, 2, 3]], structs.replace(spec, seed=seed))
            for seed in range(first, first + 10)
        ]
        await spoken(inline(load), made)
        ended = [each for each in made if isinstance(each.end, Ended) and each.end.frames == 0]
        if ended:
            break
    assert ended and all(each.pcm == b"" for each in ended)
