"""Who gives way, against every possible choice of victims, on small cases."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from tts_scheduler import (
    KVCacheManager,
    KVCacheSize,
    Layout,
    Playback,
    Prefill,
    Reservation,
    SchedulerConfig,
)
from tts_scheduler.page_planner import PagePlanner
from tts_scheduler.policy import PREEMPT_AHEAD
from tts_scheduler.utterance import Phase, Utterance

NOW, PAGE, FRAMES = 10.0, 4, 8


@dataclass(frozen=True)
class Case:
    """A row: pages it has, its lead in tenths of a second, whether it waits for text."""

    pages: int
    lead: int
    held: bool


cases = st.builds(
    Case,
    pages=st.integers(1, 4),
    lead=st.integers(0, 20),
    held=st.sampled_from([False, False, True]),
)


def row_of(number: int, case: Case) -> Utterance:
    playback = Playback()
    playback.sent(1, NOW)
    playback.runs_out_at = NOW + case.lead / 10
    row = Utterance(
        str(number),
        number,
        0,
        Layout.STREAMING,
        NOW,
        3.0,
        None,
        playback,
        phase=Phase.SPEAKING,
        text_tokens=0 if case.held else 99,
        slot=number,
        prompt_positions=case.pages * PAGE,
        frame_limit=1,
    )
    return row


def world(
    rows: list[Case], free: int, max_frames: int = 1
) -> tuple[KVCacheManager, list[Utterance]]:
    total = free + sum(case.pages for case in rows) or 3
    size = KVCacheSize(total, PAGE, total * PAGE, min(max_frames, total * PAGE - 1))
    kv = KVCacheManager(len(rows) + 1, size)
    for number, case in enumerate(rows):
        pages = tuple(kv.free[len(kv.free) - case.pages :])
        kv.reserve([Reservation(str(number), number, 0, pages)])
    return kv, [row_of(number, case) for number, case in enumerate(rows)]


def subsets(numbers: list[int]) -> list[tuple[int, ...]]:
    return list(chain.from_iterable(combinations(numbers, n) for n in range(len(numbers) + 1)))


@settings(max_examples=400)
@given(
    needy=cases.filter(lambda case: not case.held),
    others=st.lists(cases, min_size=1, max_size=4),
    free=st.integers(0, 2),
    lacks=st.integers(1, 6),
)
def test_a_row_in_need_takes_just_enough_from_those_who_can_wait_longest(
    needy: Case, others: list[Case], free: int, lacks: int
) -> None:
    rows = [needy, *others]
    kv, utterances = world(rows, free)
    if lacks + needy.pages > kv.size.pages:
        return
    utterances[0].prompt_positions = (needy.pages + lacks) * PAGE
    utterances[0].frame_limit = 0
    planner = PagePlanner(kv, SchedulerConfig(slots=len(rows)), utterances, NOW)
    awake = [row for row, case in zip(utterances, rows, strict=True) if not case.held]
    going, waiting = planner.fit(awake)
    victims = [int(out.id) for out in planner.swap_outs]
    assert {row.id for row in going} | {row.id for row in waiting} == {row.id for row in awake}
    assert not {row.id for row in going} & {out.id for out in planner.swap_outs}

    def gives(chosen: tuple[int, ...]) -> bool:
        return free + sum(rows[number].pages for number in chosen) >= lacks

    urgent = needy.lead / 10 <= PREEMPT_AHEAD
    alone = len(awake) == 1  # nobody else could go on: then it takes from anybody
    able = [
        number
        for number in range(1, len(rows))
        if alone
        or rows[number].held
        or (rows[number].lead - needy.lead) / 10 > PREEMPT_AHEAD + 1e-9
    ]
    possible = gives(()) or (urgent and any(gives(chosen) for chosen in subsets(able)))
    assert (utterances[0] in going) == possible
    if not possible or gives(()):
        assert not victims
        return
    assert set(victims) <= set(able) and gives(tuple(victims))
    assert not gives(tuple(victims[:-1])), "more than it took"

    def patience(number: int) -> tuple[bool, int]:
        return rows[number].held, rows[number].lead

    spared = set(able) - set(victims)
    assert all(patience(one) >= patience(other) for one in victims for other in spared)


@settings(max_examples=300)
@given(prompt=st.integers(1, 8), speaking=st.lists(cases, max_size=3), free=st.integers(0, 12))
def test_a_start_leaves_what_everyone_needs_for_the_time_ahead(
    prompt: int, speaking: list[Case], free: int
) -> None:
    kv, utterances = world(speaking, free, max_frames=FRAMES)
    prefill = Prefill("new", len(speaking), prompt - 1, 1, Layout.STREAMING)
    planner = PagePlanner(kv, SchedulerConfig(slots=len(speaking) + 1), utterances, NOW)
    ahead = min(FRAMES, kv.size.max_frames)
    lengths = [row.prompt_positions for row in utterances] + [prefill.positions]
    needed = sum(-(-(length + ahead) // PAGE) for length in lengths)
    assert planner.start(prefill) == (needed <= kv.size.pages)
    assert not planner.swap_outs
