import pytest

from realtime_tts.bench.observation import Onset

QUIET, LOUD = 180, 190  # -45 dBFS is 184


def pcm(*samples: int) -> bytes:
    return b"".join(sample.to_bytes(2, "little", signed=True) for sample in samples)


@pytest.mark.parametrize("level", [LOUD, -LOUD, 32_767, -32_768])
def test_the_first_sample_above_the_threshold_is_found(level: int) -> None:
    onset = Onset()
    onset.feed(pcm(0, QUIET, -QUIET))
    onset.feed(pcm(0, level, 0, 32_767))
    onset.feed(pcm(32_767))
    assert onset.sample == 4


def test_silence_has_no_onset() -> None:
    onset = Onset()
    for _ in range(3):
        onset.feed(pcm(0, QUIET, -QUIET))
    onset.feed(b"")
    assert onset.sample is None
