"""Too little memory for all, shared out by the real scheduler: rows are swapped out to host memory
and in again, and say what they would have said undisturbed, code by code."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from unittest.mock import Mock

import pytest

from realtime_tts.engine import captured_engine
from realtime_tts.engine.captured_engine import CapturedEngine
from realtime_tts.engine.interface import UtteranceSpec
from realtime_tts.engine.opening import Opening
from realtime_tts.model import SpeechModel
from realtime_tts.model.paged_cache import PagedKVCache
from realtime_tts.text.tokenizer import Qwen2Tokenizer
from tests.engine.speaking import SAMPLINGS, Utterance, same_speech, speak_scheduled
from tests.model.light import light_model
from tests.parity import PARITY
from tts_scheduler import CodecRun, Decode, Layout, Prefill, Reservation, StepPlan, SwapIn, SwapOut

TINY = PARITY / "tiny-custom_voice"
SLOTS, FRAMES = 6, 40


paged = partial(PagedKVCache, positions=128)

pytestmark = pytest.mark.usefixtures("one_thread")


def loaded(device: str) -> SpeechModel:
    found = light_model(TINY, device=device)
    endless = replace(found.config.generation, min_frames=FRAMES + 1)
    found.config = replace(found.config, generation=endless)
    return found


@pytest.fixture(scope="module")
def model() -> Iterator[SpeechModel]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(captured_engine, "PagedKVCache", paged)
        yield loaded("cpu")


@pytest.fixture(scope="module")
def plenty(model: SpeechModel) -> list[Utterance]:
    """The crowd, and what it says where there is memory for all."""
    told = crowd()
    plans = speak_scheduled(engine(model, 800), told)
    assert not any(plan.swaps for plan in plans)
    return told


def engine(model: SpeechModel, positions: int) -> CapturedEngine:
    return CapturedEngine(
        model,
        Qwen2Tokenizer.from_folder(TINY),
        name="tiny",
        slots=SLOTS,
        kv_positions=positions,
        max_frames=FRAMES,
    )


def crowd() -> list[Utterance]:
    return [
        Utterance(
            f"u{n}",
            n,
            [(37 * n + 11 * index) % 200 for index in range(3 + 5 * n)],
            UtteranceSpec(seed=n, sampling=SAMPLINGS[n % len(SAMPLINGS)]),
            Layout.FULL_TEXT if n % 3 == 2 else Layout.STREAMING,
        )
        for n in range(SLOTS)
    ]


def test_with_too_little_memory_nobody_is_lost_and_all_say_the_same(
    model: SpeechModel, plenty: list[Utterance]
) -> None:
    """Room for not quite two turns of six."""
    little = crowd()
    tight = engine(model, 112)
    plans = speak_scheduled(tight, little)
    assert sum(len(plan.swap_outs) for plan in plans) >= 2
    assert not tight.swapped
    assert {u.end for u in little} == {"max_length"}
    same_speech(plenty, little)


def test_rows_that_wait_for_text_give_way_to_those_who_speak(model: SpeechModel) -> None:
    """Two rows hold memory that the third needs, and their text comes back much later."""

    def rows() -> list[Utterance]:
        late = lambda step: step < 70  # noqa: E731
        return [
            Utterance("a", 0, list(range(20)), waits=late),
            Utterance("b", 1, list(range(20, 50)), waits=late),
            *(Utterance(f"c{n}", n, [5, n], begins=20) for n in range(3)),
        ]

    plenty, little = rows(), rows()
    speak_scheduled(engine(model, 800), plenty)
    plans = speak_scheduled(engine(model, 112), little)
    out = [out.id for plan in plans for out in plan.swap_outs]
    assert {"a", "b"} & set(out)
    assert {back.id for plan in plans for back in plan.swap_ins} >= set(out)
    same_speech(plenty, little)


def test_who_leaves_while_swapped_out_leaves_nothing_behind(
    model: SpeechModel, plenty: list[Utterance]
) -> None:
    each = engine(model, 112)
    rows = crowd()
    leaving = [
        replace(u, id=f"l{u.id}", leaves=30 + 4 * n, codes=[], pieces=[])
        for n, u in enumerate(rows)
    ]
    for utterance in rows:
        utterance.begins = 70
    plans = speak_scheduled(each, [*leaving, *rows])
    assert any(plan.swap_outs for plan in plans)
    assert not each.swapped and each.store.positions == 112
    same_speech(plenty, rows)


def test_a_start_that_fails_takes_no_pages_with_it(
    model: SpeechModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first of two rows that begin together fails: as when a GPU has no memory for a moment."""
    each = engine(model, 128)

    def start(*ids: str) -> StepPlan:
        for id in ids:
            each.open(id, UtteranceSpec())
            each.append(id, [7, 8, 9])
        rows = [(id, slot) for slot, id in enumerate(ids)]
        return StepPlan(
            tuple(Prefill(id, slot, 9, 3, Layout.STREAMING) for id, slot in rows),
            reservations=tuple(
                Reservation(id, slot, 0, (2 * slot + 1, 2 * slot + 2)) for id, slot in rows
            ),
        )

    with monkeypatch.context() as patch, pytest.raises(MemoryError):
        patch.setattr(Opening, "begin", Mock(side_effect=MemoryError))
        each.step(start("a", "b"))
    for id in ("a", "b"):
        each.close(id)
    assert each.step(start("c", "d")).frames.keys() == {"c", "d"}


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_a_swap_keeps_every_code(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same steps twice. Once row a is swapped out in the middle, row b writes to its pages, and
    it comes back into other ones."""
    monkeypatch.setattr(captured_engine, "PagedKVCache", paged)
    model = loaded(device)
    calm, swapped = by_hand(engine(model, 128), swap=False), by_hand(engine(model, 128), swap=True)
    assert [len(codes) for codes in calm.values()] == [26, 26]
    assert calm == swapped


def by_hand(each: CapturedEngine, swap: bool) -> dict[str, list[int]]:
    """The first codes of rows a and b, which speak one after the other."""
    made: dict[str, list[int]] = {"a": [], "b": []}
    for n, id in enumerate(made):
        each.open(id, UtteranceSpec(seed=n))
        each.append(id, [7, n, 9])
        each.finish(id)

    def step(plan: StepPlan) -> None:
        for id, code in each.step(plan).frames.items():
            made[id].append(code)

    def start(id: str, *pages: int) -> StepPlan:
        slot = "ab".index(id)
        prefill = Prefill(id, slot, 9, 3, Layout.STREAMING)
        return StepPlan((prefill,), reservations=(Reservation(id, slot, 0, pages),))

    def decode(id: str) -> StepPlan:
        slot = "ab".index(id)
        return StepPlan((), (Decode(id, slot, len(made[id])),), (CodecRun(id, slot, 1),))

    def run(id: str, steps: int) -> None:
        for _ in range(steps):
            step(decode(id))

    step(start("a", 1, 2, 3))
    run("a", 9)
    if swap:
        step(replace(start("b", 3, 2, 1), swap_outs=(SwapOut("a", 0),)))
    else:
        step(start("b", 4, 5, 6))
    run("b", 20)
    if swap:
        back = (Reservation("a", 0, 0, (8, 4, 7)),)
        step(replace(decode("a"), reservations=back, swap_ins=(SwapIn("a", 0),)))
    else:
        run("a", 1)
    run("a", 15)
    run("b", 5)
    return made
