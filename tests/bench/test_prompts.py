from itertools import islice
from random import Random

from realtime_tts.bench.prompts import PROMPTS
from realtime_tts.bench.workload import shuffled


def test_prompts_go_from_a_few_words_to_a_long_reply() -> None:
    lengths = [len(prompt) for prompt in PROMPTS]
    assert lengths == sorted(lengths)
    assert lengths[0] < 20
    assert lengths[-1] > 200
    assert len(set(PROMPTS)) == len(PROMPTS)


def test_every_prompt_comes_once_a_round_in_an_order_the_seed_repeats() -> None:
    picked, again = shuffled(PROMPTS, Random(3)), shuffled(PROMPTS, Random(3))
    first = list(islice(picked, len(PROMPTS)))
    assert sorted(first) == sorted(PROMPTS)
    assert list(islice(again, len(PROMPTS))) == first
    assert sorted(islice(picked, len(PROMPTS))) == sorted(PROMPTS)
    assert list(islice(shuffled(PROMPTS, Random(4)), 3)) != first[:3]
