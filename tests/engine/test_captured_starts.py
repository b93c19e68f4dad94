"""What comes with the program that begins utterances: pages, and prefixes of their prompts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import pytest

from realtime_tts.engine import captured_steps, prefix_cache
from realtime_tts.engine.captured_engine import CapturedEngine
from realtime_tts.engine.captured_steps import CapturedSteps
from realtime_tts.engine.interface import UtteranceSpec
from realtime_tts.kernels.first_codes import SETTINGS
from realtime_tts.model import frame_step
from realtime_tts.model.frame_step import Start
from realtime_tts.model.paged_cache import NewPages
from tests.engine.speaking import Utterance, lookups, same_speech, speak, speak_scheduled
from tests.engine.test_captured_engine import captured, crowd
from tts_scheduler import CodecRun, Decode, Layout, Prefill, Reservation, StepPlan, SwapIn, SwapOut

pytestmark = pytest.mark.usefixtures("one_thread")


def three_by_three(engine: CapturedEngine) -> list[Utterance]:
    """Two groups of utterances, each of which begins together."""
    rows = crowd(engine.info.voices)
    return [
        replace(row, begins=2 * (number // 3), waits=lambda step: False)
        for number, row in enumerate(rows)
    ]


@cache
def undisturbed() -> list[Utterance]:
    """These utterances, and what they said on an engine as it is."""
    engine = captured()
    told = three_by_three(engine)
    speak_scheduled(engine, told)
    return told


@pytest.mark.parametrize(("together", "pages"), [(64, 1), (2, 1), (2, 8)])
@pytest.mark.parametrize("positions", [600, 160])
def test_starts_and_pages_beyond_one_program_take_several(
    together: int, pages: int, positions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = undisturbed()
    monkeypatch.setattr(captured_steps, "MOST_STARTS", together)
    for module in (captured_steps, frame_step):
        monkeypatch.setattr(module, "START_ENTRIES", pages)
        monkeypatch.setattr(module, "START_NUMBERS", 4 + SETTINGS + 2 * pages)
    begun: list[tuple[int, int]] = []
    begin = CapturedSteps.begin

    def seen(self: CapturedSteps, starts: Sequence[Start], added: NewPages) -> None:
        begun.append((len(starts), len(added.where)))
        begin(self, starts, added)

    monkeypatch.setattr(CapturedSteps, "begin", seen)
    engine = captured(kv_positions=positions)
    for _ in range(2):  # the second time, prefixes are kept
        told = three_by_three(engine)
        speak_scheduled(engine, told)
        same_speech(alone, told)
    assert max(starts for starts, _ in begun) > 2
    assert any(added for _, added in begun) == (pages * together > 2)  # else they never fit
    for starts, added in begun:  # the first program's rows are a power of two
        assert added <= pages * 2 ** (min(starts, together) - 1).bit_length()
    assert not engine.store.tables.any()


def test_a_new_prefix_takes_no_place_that_its_own_step_reads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = []
    for most in (2048, 12):  # room for all prefixes, and for one
        monkeypatch.setattr(prefix_cache, "PREFIX_POSITIONS", (most, most))
        engine = captured()
        first, second, *_ = engine.info.voices
        usual = zip((first, first, second, first), (0, 3, 3, 3), strict=True)
        told.append(
            [
                Utterance(f"u{n}", n, [5, 6, n], UtteranceSpec(voice=voice, seed=n), begins=begins)
                for n, (voice, begins) in enumerate(usual)
            ]
        )
        found = lookups(engine.prefixes)
        speak(engine, told[-1], steps=20)
        assert found == [False, True, False, True]
    same_speech(*told)


def codes_of_three(swaps: bool) -> dict[str, list[int]]:
    """What three utterances say of which, with `swaps`, the first is swapped out while the second
    begins, and in again while the third does."""
    engine, slots = captured(), {"a": 0, "b": 1, "c": 2}
    made: dict[str, list[int]] = {id: [] for id in slots}
    for id, slot in slots.items():
        engine.open(id, UtteranceSpec(seed=slot))
        engine.append(id, [7, slot, 9])
        engine.finish(id)

    def start(id: str, *pages: int) -> StepPlan:
        prefill = Prefill(id, slots[id], 9, 3, Layout.STREAMING)
        return StepPlan((prefill,), reservations=(Reservation(id, slots[id], 0, pages),))

    def going_on(*ids: str) -> StepPlan:
        decodes = tuple(Decode(id, slots[id], len(made[id])) for id in ids)
        return StepPlan((), decodes, tuple(CodecRun(id, slots[id], 1) for id in ids))

    def step(plan: StepPlan) -> None:
        output = engine.step(plan)
        assert not output.failed
        for id, code in output.frames.items():
            made[id].append(code)

    step(start("a", 1, 2, 3))
    for _ in range(5):
        step(going_on("a"))
    second = start("b", *((3, 2, 1) if swaps else (4, 5, 6)))
    step(replace(second, swap_outs=(SwapOut("a", 0),)) if swaps else second)
    for _ in range(3):
        step(going_on("b"))
    third, others = start("c", 9, 10, 11), going_on("a", "b")
    if swaps:
        back = Reservation("a", 0, 0, (20, 21, 22))
        third = replace(third, reservations=(*third.reservations, back), swap_ins=(SwapIn("a", 0),))
    step(replace(third, decodes=others.decodes, codec=others.codec))
    for _ in range(6):
        step(going_on("a", "b", "c"))
    return made


def test_a_row_comes_back_in_the_step_in_which_another_begins() -> None:
    assert codes_of_three(True) == codes_of_three(False)
