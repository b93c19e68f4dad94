from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from realtime_tts.audio.formats import AudioFormat
from realtime_tts.errors import RequestError
from realtime_tts.protocol import messages as m
from realtime_tts.protocol.changes import nested
from realtime_tts.protocol.settings import Limits, SessionSettings
from realtime_tts.sampling import PredictorSampling, Sampling


def start(**options: Any) -> m.SessionStart:
    return msgspec.convert({"type": "session.start", **options}, m.SessionStart)


DEFAULTS = SessionSettings(voice="ava", lead_ms=2_000, sampling=Sampling(temperature=0.7))


def test_what_a_start_gives_changes_and_the_rest_stays() -> None:
    before = SessionSettings(
        voice="ava",
        seed=7,
        sampling=Sampling(temperature=0.5, top_k=3, predictor=PredictorSampling(top_p=0.5)),
    )
    given = start(language="german", sampling={"top_k": 0, "predictor": {"temperature": 0}})
    assert given.applied_to(before, DEFAULTS) == SessionSettings(
        voice="ava",
        language="german",
        seed=7,
        sampling=Sampling(
            temperature=0.5, top_k=0, predictor=PredictorSampling(temperature=0, top_p=0.5)
        ),
    )
    assert start().applied_to(before, DEFAULTS) == before
    assert start(sampling={}).applied_to(before, DEFAULTS) == before


@pytest.mark.parametrize("name", SessionSettings.__struct_fields__)
def test_null_resets_a_setting_to_the_servers_default(name: str) -> None:
    before = SessionSettings(
        model="m",
        voice="ben",
        language="german",
        instructions="softly",
        seed=7,
        sampling=Sampling(top_k=3),
        text_filter="off",
        text_normalization="on",
        lexicon={"SQL": "sequel"},
        lexicons=["medical"],
        layout="full_text",
        trim_silence="off",
        loudness="on",
        pacing="token",
        word_times="on",
        resume="on",
        speed=1.2,
        lead_ms=500,
        traceparent="00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        audio=AudioFormat("mp3", 24_000, "mp3", 64_000),
    )
    after = start(**{name: None}).applied_to(before, DEFAULTS)
    assert getattr(before, name) != getattr(DEFAULTS, name), "the test shows nothing"
    assert after == replace(before, **{name: getattr(DEFAULTS, name)})


def test_null_resets_a_part_of_the_sampling_by_itself() -> None:
    before = SessionSettings(
        sampling=Sampling(temperature=0.1, top_k=3, predictor=PredictorSampling(top_k=5, top_p=0.5))
    )
    after = start(sampling={"temperature": None, "predictor": {"top_k": None}})
    assert after.applied_to(before, DEFAULTS).sampling == Sampling(
        temperature=0.7, top_k=3, predictor=PredictorSampling(top_p=0.5)
    )


def test_an_audio_format_is_replaced_whole_and_checked() -> None:
    before = SessionSettings(audio=AudioFormat("pcm_s16le", 8_000, packet_ms=40))
    after = start(audio={"encoding": "mp3", "sample_rate": None}).applied_to(before, DEFAULTS)
    assert after.audio == AudioFormat("mp3", 24_000, "mp3", 128_000)
    assert start(audio={}).applied_to(before, DEFAULTS).audio == AudioFormat()
    with pytest.raises(RequestError, match="there is no encoding 'ogg'"):
        start(audio={"encoding": "ogg"}).applied_to(before, DEFAULTS)


def test_every_setting_can_be_changed_by_a_start() -> None:
    def fields(struct: type[msgspec.Struct]) -> dict[str, Any]:
        return {
            name: fields(nested(struct)[name]) if name in nested(struct) else None
            for name in struct.__struct_fields__
        }

    assert fields(m.SessionStart) == fields(SessionSettings)
    assert fields(m.SessionStart)["sampling"]["predictor"].keys() == {
        "temperature",
        "top_k",
        "top_p",
    }


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
