import pytest

from realtime_tts.client.options import merged, session_start
from realtime_tts.errors import ConfigError
from realtime_tts.protocol.messages import PredictorStart, SamplingStart, SessionStart


def test_options_become_the_message_that_sets_them() -> None:
    options = {
        "voice": "ava",
        "seed": 7,
        "sampling": {"temperature": 0.5, "predictor": {"top_k": 3}},
        "lead_ms": 1000,
        "language": None,
    }
    sampling = SamplingStart(temperature=0.5, predictor=PredictorStart(top_k=3))
    assert session_start(options) == SessionStart(
        voice="ava", seed=7, sampling=sampling, lead_ms=1000
    )


def test_no_options_change_nothing() -> None:
    assert session_start({}) == SessionStart()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"voise": "ava"}, "unknown option 'voise'; a session has: model"),
        ({"seed": -1}, "seed"),
        ({"sampling": {"temperature": 9}}, "temperature"),
        ({"layout": "sideways"}, "layout"),
        ({"lead_ms": 1}, "lead_ms"),
        ({"audio": "ulaw_8000"}, "audio"),
        ({"audio": {"sample_rate": "8000"}}, "sample_rate"),
    ],
)
def test_an_option_that_cannot_work_is_refused_by_name(
    options: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        session_start(options)


def test_later_options_overlay_earlier_ones_field_by_field() -> None:
    first = {"voice": "a", "sampling": {"top_k": 1, "predictor": {"top_k": 2, "top_p": 0.5}}}
    second = {"seed": 3, "sampling": {"predictor": {"top_k": 9}}, "voice": None}
    assert merged(first, second) == {
        "voice": "a",
        "seed": 3,
        "sampling": {"top_k": 1, "predictor": {"top_k": 9, "top_p": 0.5}},
    }


def test_an_audio_format_is_replaced_as_a_whole() -> None:
    first = {"audio": {"encoding": "mp3", "bit_rate": 64_000}}
    second = {"audio": {"encoding": "pcm_mulaw"}}
    assert merged(first, second) == second
    assert merged(first, {"seed": 3}) == {**first, "seed": 3}
