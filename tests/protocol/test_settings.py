from __future__ import annotations

import msgspec
import pytest

from realtime_tts.errors import RequestError
from realtime_tts.protocol import messages as m
from realtime_tts.protocol.settings import Limits, PredictorSampling, Sampling, SessionSettings


def test_what_a_start_gives_changes_and_the_rest_stays() -> None:
    before = SessionSettings(
        voice="ava",
        seed=7,
        sampling=Sampling(temperature=0.5, top_k=3, predictor=PredictorSampling(top_p=0.5)),
    )
    start = m.SessionStart(
        language="german",
        sampling=m.SamplingStart(top_k=0, predictor=m.PredictorStart(temperature=0)),
    )
    assert start.applied_to(before) == SessionSettings(
        voice="ava",
        language="german",
        seed=7,
        sampling=Sampling(
            temperature=0.5, top_k=0, predictor=PredictorSampling(temperature=0, top_p=0.5)
        ),
    )
    assert m.SessionStart().applied_to(before) == before
    assert m.SessionStart(sampling=m.SamplingStart()).applied_to(before) == before


def test_every_setting_can_be_changed_by_a_start() -> None:
    pairs: list[tuple[type[msgspec.Struct], type[msgspec.Struct]]] = [
        (SessionSettings, m.SessionStart),
        (Sampling, m.SamplingStart),
        (PredictorSampling, m.PredictorStart),
    ]
    for settings, start in pairs:
        fields = {f.name: f.type for f in msgspec.structs.fields(settings)}
        given = {f.name for f in msgspec.structs.fields(start)}
        assert fields.keys() == given


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (SessionSettings(lead_ms=30_001), "`lead_ms` must be at most 30000, found 30001"),
        (SessionSettings(instructions="x" * 2_001), "at most 2000 characters, found 2001"),
    ],
)
def test_settings_beyond_the_limits_are_refused(settings: SessionSettings, says: str) -> None:
    with pytest.raises(RequestError, match=says):
        Limits().check(settings)


def test_settings_at_the_limits_are_taken() -> None:
    Limits().check(SessionSettings(lead_ms=30_000, instructions="x" * 2_000))
