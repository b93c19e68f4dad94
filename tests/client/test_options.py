import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime_tts.client.options import changes, merged, session_start
from realtime_tts.errors import ConfigError
from realtime_tts.protocol.messages import SessionStart
from realtime_tts.protocol.parsing import encode


def test_options_become_the_message_that_sets_them() -> None:
    options = {
        "voice": "ava",
        "seed": 7,
        "sampling": {"temperature": 0.5, "predictor": {"top_k": 3}},
        "lead_ms": 1000,
        "language": None,
    }
    message = json.loads(encode(session_start(options)))
    assert message == {"type": "session.start", **options}


def test_a_boolean_is_on_or_off() -> None:
    options = {"word_times": True, "resume": False, "text_normalization": True, "loudness": "on"}
    start = SessionStart(word_times="on", resume="off", text_normalization="on", loudness="on")
    assert session_start(options) == start


def test_no_options_change_nothing() -> None:
    assert session_start({}) == SessionStart()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"voise": "ava"}, "unknown option 'voise'; a session has: model"),
        ({"audio": {"codec": "mp3"}}, "unknown option 'codec'; `audio` has: encoding"),
        ({"sampling": {"predictor": {"topk": 1}}}, "'topk'; `predictor` has: temperature"),
        ({"seed": -1}, "seed"),
        ({"sampling": {"temperature": 9}}, "temperature"),
        ({"layout": "sideways"}, "layout"),
        ({"lead_ms": 1}, "lead_ms"),
        ({"audio": "ulaw_8000"}, "audio"),
        ({"audio": {"sample_rate": "8000"}}, "`audio.sample_rate` must be a whole number"),
        ({"word_times": 1}, r'used: `word_times` must be "on" or "off", found 1$'),
        ({"layout": True}, '`layout` must be .*"full_text", found true'),
        ({"voice": True}, "`voice` must be a string.*, found true"),
        ({"voice": Path("ava")}, "`voice` must be a string.*, found .*Path"),
    ],
)
def test_an_option_that_cannot_work_is_refused_by_name(
    options: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        session_start(options)


def test_later_options_overlay_earlier_ones_field_by_field_and_none_resets() -> None:
    first = {"voice": "a", "sampling": {"top_k": 1, "predictor": {"top_k": 2, "top_p": 0.5}}}
    second = {"seed": 3, "sampling": {"predictor": {"top_k": 9, "top_p": None}}, "voice": None}
    assert merged(first, second) == {
        "seed": 3,
        "sampling": {"top_k": 1, "predictor": {"top_k": 9}},
    }


PREDICTOR = st.fixed_dictionaries({}, optional={"top_k": st.integers(0, 2), "top_p": st.just(0.5)})
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "voice": st.sampled_from("ab"),
        "sampling": st.fixed_dictionaries(
            {}, optional={"top_k": st.integers(0, 2), "predictor": PREDICTOR}
        ),
        "lexicon": st.dictionaries(st.sampled_from("xy"), st.sampled_from("uv")),
        "audio": st.dictionaries(st.sampled_from(["sample_rate", "packet_ms"]), st.just(8_000)),
    },
)


@given(OPTIONS, OPTIONS)
def test_changes_make_one_set_of_options_of_another(
    old: dict[str, Any], new: dict[str, Any]
) -> None:
    assert merged(old, changes(old, new)) == new
    assert changes(new, new) == {}


def test_an_audio_format_is_replaced_as_a_whole() -> None:
    first = {"audio": {"encoding": "mp3", "bit_rate": 64_000}}
    second = {"audio": {"encoding": "pcm_mulaw"}}
    assert merged(first, second) == second
    assert merged(first, {"seed": 3}) == {**first, "seed": 3}
