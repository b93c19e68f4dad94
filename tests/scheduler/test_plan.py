from tts_scheduler import CodecRun, Decode, Layout, Load, Prefill, StepPlan


def plan() -> StepPlan:
    return StepPlan(
        prefills=(
            Prefill("new", 3, 40, 12, Layout.FULL_TEXT),
            Prefill("too", 4, 40, 1, Layout.STREAMING),
        ),
        decodes=(Decode("old", 0, 7),),
        codec=(CodecRun("new", 3, 1), CodecRun("held", 1, 2)),
    )


def test_a_plan_knows_who_is_in_it() -> None:
    assert plan().ids == {"new", "too", "old", "held"}
    assert plan().slots == {"new": 3, "too": 4, "old": 0, "held": 1}


def test_a_plan_counts_its_rows_and_frames() -> None:
    assert plan().rows == 3
    assert plan().codec_frames == 3


def test_the_load_of_a_plan_counts_prompt_and_text() -> None:
    assert Load.of(plan()) == Load(prefill_rows=2, prefill_tokens=93, decode_rows=1, codec_frames=3)


def test_layouts_are_the_words_of_the_protocol() -> None:
    assert [str(layout) for layout in Layout] == ["auto", "streaming", "full_text"]
