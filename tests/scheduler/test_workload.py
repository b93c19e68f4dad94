from random import Random

import pytest

from tts_scheduler.workload import FEEDS, SLOW, STALLING, TextFeed, Workload, write_script


@pytest.mark.parametrize("feed", FEEDS, ids=lambda feed: feed.name)
def test_a_feed_writes_all_tokens_at_about_its_pace(feed: TextFeed) -> None:
    random = Random(3)
    workload = Workload(1, feeds=(feed,), tokens=(200, 200))
    scripts = [write_script(random, workload) for _ in range(40)]
    assert all(sum(tokens for _, tokens in script.deltas) == 200 for script in scripts)
    seconds = sum(wait for script in scripts for wait, _ in script.deltas)
    slowest = 40 * 200 / feed.tokens_per_second
    if feed is STALLING:
        assert seconds > 1.2 * slowest
    else:
        assert seconds == pytest.approx(slowest, rel=0.15, abs=0.1)


def test_the_first_delta_is_the_moment_of_asking() -> None:
    assert write_script(Random(1), Workload(1, feeds=(SLOW,))).deltas[0][0] == 0.0


def test_speech_outlasts_its_text() -> None:
    random = Random(1)
    for _ in range(50):
        script = write_script(random, Workload(1))
        assert script.frames > sum(tokens for _, tokens in script.deltas)


def test_the_same_seed_writes_the_same_script() -> None:
    assert write_script(Random(9), Workload(1)) == write_script(Random(9), Workload(1))
