from realtime_tts.bench.prompts import PROMPTS, PromptPicker


def test_prompts_go_from_a_few_words_to_a_long_reply() -> None:
    lengths = [len(prompt) for prompt in PROMPTS]
    assert lengths == sorted(lengths)
    assert lengths[0] < 20
    assert lengths[-1] > 200
    assert len(set(PROMPTS)) == len(PROMPTS)


def test_every_prompt_comes_once_a_round_in_an_order_the_seed_repeats() -> None:
    picker, again = PromptPicker(3), PromptPicker(3)
    first = [picker.next() for _ in PROMPTS]
    assert sorted(first) == sorted(PROMPTS)
    assert [again.next() for _ in PROMPTS] == first
    assert sorted(picker.next() for _ in PROMPTS) == sorted(PROMPTS)
    assert [PromptPicker(4).next() for _ in range(3)] != first[:3]
