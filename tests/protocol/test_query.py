from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime_tts.audio.formats import AudioFormat
from realtime_tts.protocol import messages as m
from realtime_tts.protocol import query
from realtime_tts.protocol.parsing import BadSettings
from realtime_tts.protocol.query import QUERY_FIELDS, parse_query
from realtime_tts.protocol.settings import SessionSettings
from realtime_tts.sampling import PredictorSampling, Sampling


def test_every_parameter_reaches_the_setting_of_its_name() -> None:
    query = (
        "voice=ava&language=english&instructions=softly%20please&seed=7&temperature=0&top_k=5"
        "&top_p=0.9&repetition_penalty=1.1&predictor_temperature=0&predictor_top_k=6"
        "&predictor_top_p=0.8&text_filter=off&text_normalization=on&layout=streaming&lead_ms=1500"
        "&encoding=pcm_mulaw&sample_rate=8000&container=wav&bit_rate=64000&packet_ms=30"
    )
    start = {
        "type": "session.start",
        "voice": "ava",
        "language": "english",
        "instructions": "softly please",
        "seed": 7,
        "sampling": {
            "temperature": 0,
            "top_k": 5,
            "top_p": 0.9,
            "repetition_penalty": 1.1,
            "predictor": {"temperature": 0, "top_k": 6, "top_p": 0.8},
        },
        "text_filter": "off",
        "text_normalization": "on",
        "layout": "streaming",
        "lead_ms": 1500,
        "audio": {
            "encoding": "pcm_mulaw",
            "sample_rate": 8000,
            "container": "wav",
            "bit_rate": 64000,
            "packet_ms": 30,
        },
    }
    assert parse_query(query).start == msgspec.convert(start, m.SessionStart)


def test_every_setting_can_be_given_in_the_query() -> None:
    flat = {path[-1] for path in QUERY_FIELDS.values()}
    fields = (
        *SessionSettings.__struct_fields__,
        *Sampling.__struct_fields__,
        *PredictorSampling.__struct_fields__,
        *AudioFormat.__struct_fields__,
    )
    assert flat == {*fields} - {"sampling", "predictor", "audio", "lexicon"}


@pytest.mark.parametrize("query", ["", "&", "voice=&seed=&temperature=", "voice"])
def test_empty_values_are_absent(query: str) -> None:
    assert parse_query(query).start == m.SessionStart()


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("seed=x", '`seed` must be a whole number from 0 to 9223372036854775807, found "x"'),
        ("seed=1.5", "`seed` must be a whole number"),
        ("seed=true", "found true"),
        ("seed=1&seed=1", "`seed` is given twice"),
        ("temperature=NaN", 'must be a number from 0 to 2, found "NaN"'),
        ("temperature=1e999", "found Infinity"),
        ("predictor_top_k=%5B1%5D", "`sampling.predictor.top_k` must be"),
        ("text_filter=ON", '`text_filter` must be "on" or "off", found "ON"'),
        ("layout=%F0%9F%98%80", "`layout` must be"),
        ("voice=" + "x" * 129, "`voice` must be a string of 1 to 128 characters"),
    ],
)
def test_a_bad_value_is_named(query: str, says: str) -> None:
    with pytest.raises(BadSettings) as caught:
        parse_query(query)
    assert caught.value.code == "bad_settings"
    assert says in str(caught.value)


def test_unknown_parameters_are_ignored_by_name() -> None:
    asked = parse_query("voise=ava&utm_source=x&type=text&sampling=1&a=1&b=2")
    assert asked.start == m.SessionStart()
    assert asked.ignored[0] == 'query: unknown field "voise" is ignored; did you mean `voice`?'
    assert len(asked.ignored) == 4


def test_a_query_full_of_unknown_parameters_costs_no_more_than_a_few(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What each may have meant is looked for among all fields, while every other client waits."""
    described: list[str] = []

    def describe(name: str, *others: object) -> str:
        described.append(name)
        return name

    monkeypatch.setattr(query, "describe_unknown", describe)
    parse_query("&".join(f"voise{number}=1" for number in range(1_000)))
    assert len(described) == 4


@given(st.text() | st.builds("{}={}".format, st.sampled_from(list(QUERY_FIELDS)), st.text()))
def test_no_query_raises_anything_but_bad_settings(query: str) -> None:
    try:
        parse_query(query)
    except BadSettings:
        pass
