"""RealtimeTTSService in Pipecat's own pipeline, against a real server with the fake engine.

The order of frames and the behaviour at interruptions are those that Pipecat's tests ask of its own
services.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sized
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest
from pipecat.frames.frames import (
    AggregatedTextFrame,
    BotStartedSpeakingFrame,
    CancelFrame,
    DataFrame,
    EndFrame,
    Frame,
    InterruptionFrame,
    LLMFullResponseEndFrame,
    LLMFullResponseStartFrame,
    LLMTextFrame,
    MetricsFrame,
    TTSAudioRawFrame,
    TTSSpeakFrame,
    TTSStartedFrame,
    TTSStoppedFrame,
    TTSTextFrame,
    TTSUpdateSettingsFrame,
)
from pipecat.metrics.metrics import TTFBMetricsData, TTSUsageMetricsData
from pipecat.services.settings import TTSSettings
from pipecat.services.tts_service import TextAggregationMode, TTSContext
from pipecat.tests.utils import run_test
from pipecat.transcriptions.language import Language
from pipecat.utils.errors import ErrorCategory

from realtime_tts import Backoff, RealtimeTTS
from realtime_tts.adapters.pipecat import RealtimeTTSService
from realtime_tts.client import Interrupted
from realtime_tts.errors import ConfigError
from tests.clients.pipecat.our_service import Settings, service
from tests.clients.pipecat_rig import PATIENCE, pipeline, response
from tests.clients.serving import Server, serving
from tests.clients.wire import wire_to

TEXT = "The tide is coming in."
LONG = " ".join([TEXT] * 40)  # minutes of fake speech: it is never over by itself
TOKENS = ("The ti", "de", " is", " ", "coming", " in", ".")
TONES = {"alto": 330, "bass": 110, "soprano": 660, "tenor": 220}


async def spoken(url: str, text: str, **options: Any) -> bytes:
    """What the client gets for the text as a whole."""
    async with RealtimeTTS(url, layout="streaming", lead_ms=30_000, **options) as tts:
        return b"".join([packet async for packet in tts.speak(text)])


def tone(pcm: bytes) -> str:
    """The fake voice of this audio."""
    samples = np.frombuffer(pcm, dtype="<i2").astype(float)
    peak = np.abs(np.fft.rfft(samples)).argmax() * 24_000 / len(samples)
    return min(TONES, key=lambda name: abs(TONES[name] - peak))


def kinds(frames: list[Frame]) -> list[str]:
    """The names of the frames, audio frames in a row counted as one."""
    names = [type(frame).__name__ for frame in frames]
    return [name for n, name in enumerate(names) if n == 0 or name != names[n - 1]]


# Frames


async def test_frames_come_in_the_order_that_pipecat_promises(fake: Server) -> None:
    """By the sentence; the order of words and sound is in test_words.py."""
    down, up = await run_test(
        service(fake.url, word_times=False),
        frames_to_send=response(*TOKENS),
        start_timeout=PATIENCE,
    )
    assert kinds(list(down)) == [
        "LLMFullResponseStartFrame",
        "TTSStartedFrame",
        "AggregatedTextFrame",
        "TTSTextFrame",
        "TTSAudioRawFrame",
        "TTSStoppedFrame",
        "LLMFullResponseEndFrame",
    ]
    assert not up
    contexts = {frame.context_id for frame in down if hasattr(frame, "context_id")}
    assert len(contexts) == 1


async def test_tokens_are_spoken_exactly_as_the_text_they_make(fake: Server) -> None:
    async with pipeline(service(fake.url)) as rig:
        await rig.send(*response(*TOKENS))
        await rig.until_stopped()
    assert rig.audio() == await spoken(fake.url, TEXT)
    assert {(each.sample_rate, each.num_channels) for each in rig.of(TTSAudioRawFrame)} == {
        (24_000, 1)
    }
    assert [each.text for each in rig.of(TTSTextFrame)] == TEXT.split()


async def test_speech_begins_before_the_text_ends(fake: Server) -> None:
    async with pipeline(service(fake.url)) as rig:
        await rig.send(LLMFullResponseStartFrame(), LLMTextFrame(TEXT))
        await rig.until(rig.audio)
        assert not rig.of(LLMFullResponseEndFrame)
        await rig.send(LLMTextFrame(" So it is."), LLMFullResponseEndFrame())
        await rig.until_stopped()
    assert rig.audio() == await spoken(fake.url, f"{TEXT} So it is.")


async def test_sentences_keep_the_space_between_them(fake: Server) -> None:
    mode = TextAggregationMode.SENTENCE
    tts = service(fake.url, text_aggregation_mode=mode, word_times=False)
    async with pipeline(tts) as rig:
        await rig.send(*response("One is ", "here. Two", " is there."))
        await rig.until_stopped()
    assert rig.audio() == await spoken(fake.url, "One is here. Two is there. ")
    assert [each.text for each in rig.of(TTSTextFrame)] == ["One is here.", "Two is there."]


async def test_a_context_for_every_sentence(fake: Server) -> None:
    mode = TextAggregationMode.SENTENCE
    tts = service(fake.url, text_aggregation_mode=mode, reuse_context_id_within_turn=False)
    async with pipeline(tts) as rig:
        await rig.send(*response("One is ", "here. Two", " is there."))
        await rig.until(lambda: rig.of(LLMFullResponseEndFrame))
    spoken_alone = [await spoken(fake.url, text) for text in ("One is here. ", "Two is there. ")]
    assert [rig.audio(context) for context in rig.contexts()] == spoken_alone


async def test_more_responses_than_the_server_queues_come_out_in_order(fake: Server) -> None:
    @dataclass
    class Marker(DataFrame):
        number: int = 0

    frames = [
        each
        for n in range(12)
        for each in (TTSSpeakFrame(f"Number {n} " + "more " * (n % 3)), Marker(number=n))
    ]
    tts = service(fake.url)
    async with pipeline(tts) as rig:
        await rig.send(*frames)
        await rig.until_stopped(12)
        await rig.until(lambda: len(rig.of(Marker)) == 12)
    assert not rig.errors
    shown = (TTSStartedFrame, TTSAudioRawFrame, TTSStoppedFrame, Marker)
    order = [each for each in rig.down if isinstance(each, shown)]
    assert kinds(order) == 12 * ["TTSStartedFrame", "TTSAudioRawFrame", "TTSStoppedFrame", "Marker"]
    assert [each.number for each in rig.of(Marker)] == list(range(12))
    assert [each.context_id for each in rig.of(TTSStoppedFrame)] == rig.contexts()


async def test_a_speak_frame_within_a_response_waits_for_its_end(fake: Server) -> None:
    async with pipeline(service(fake.url)) as rig:
        await rig.send(LLMFullResponseStartFrame(), LLMTextFrame(TEXT))
        await rig.until(rig.audio)
        rest = LLMTextFrame(" So it is.")
        await rig.send(TTSSpeakFrame("Aside."), rest, LLMFullResponseEndFrame())
        await rig.until_stopped(2)
    first, second = rig.contexts()
    assert rig.audio(first) == await spoken(fake.url, f"{TEXT} So it is.")
    assert rig.audio(second) == await spoken(fake.url, "Aside.")


async def test_the_pipeline_s_rate(fake: Server) -> None:
    async with pipeline(service(fake.url), audio_out_sample_rate=16_000) as rig:
        await rig.send(TTSSpeakFrame(TEXT))
        await rig.until_stopped()
    assert {each.sample_rate for each in rig.of(TTSAudioRawFrame)} == {16_000}
    expected = len(await spoken(fake.url, TEXT)) * 16_000 // 24_000
    assert abs(len(rig.audio()) - expected) <= 4


async def test_a_text_with_nothing_to_speak_is_no_failure(fake: Server) -> None:
    tts = service(fake.url)
    async with pipeline(tts) as rig:
        for number in range(1, 5):
            await rig.send(*response("👍"))
            await rig.until_stopped(number)
        await rig.send(TTSSpeakFrame(TEXT))
        await rig.until_stopped(5)
    assert not rig.errors
    assert tts.is_usable
    assert rig.audio(rig.contexts()[0]) == bytes(960)


async def test_metrics(fake: Server) -> None:
    params: dict[str, Any] = {"enable_metrics": True, "enable_usage_metrics": True}
    async with pipeline(service(fake.url), **params) as rig:
        await rig.send(*response(*TOKENS))
        await rig.until(lambda: rig.of(LLMFullResponseEndFrame))
    data = [each for frame in rig.of(MetricsFrame) for each in frame.data]
    waited = [each.value for each in data if isinstance(each, TTFBMetricsData) and each.value]
    assert len(waited) == 1
    assert 0 < waited[0] < PATIENCE
    assert [each.value for each in data if isinstance(each, TTSUsageMetricsData)] == [len(TEXT)]


# Interruptions


def _more_than(count: int, found: Callable[[], Sized]) -> bool:
    return len(found()) > count


async def test_not_one_byte_follows_an_interruption_and_the_socket_is_kept(fake: Server) -> None:
    interrupted = fake.value('tts_turns_total{reason="interrupted"}')
    reports: asyncio.Queue[Interrupted] = asyncio.Queue()
    async with wire_to(fake.url) as wire:
        tts = service(wire.url, settings=Settings(lead_ms=500))
        tts.add_event_handler("on_speech_interrupted", lambda _, report: reports.put_nowait(report))
        async with pipeline(tts) as rig:
            for number in range(3):
                await rig.send(LLMFullResponseStartFrame(), LLMTextFrame(LONG))
                await rig.until(partial(_more_than, number, rig.contexts))
                await rig.send(InterruptionFrame())
                await rig.until(partial(_more_than, number, lambda: rig.of(InterruptionFrame)))
                report = await asyncio.wait_for(reports.get(), PATIENCE)
                assert report.text_spoken + report.text_remaining == LONG
            await rig.send(*response(TEXT))
            await rig.until_stopped()
        assert wire.connections == 1
    cut, heard = set[str](), set[str]()
    for frame in rig.down:
        if isinstance(frame, InterruptionFrame):
            cut |= heard
        elif isinstance(frame, TTSAudioRawFrame):
            heard.add(frame.context_id)
            assert frame.context_id not in cut
    assert len(cut) == 3
    assert not rig.errors
    fake.until('tts_turns_total{reason="interrupted"}', interrupted + 3)


async def test_an_interruption_drops_what_waits_here_and_at_the_server(fake: Server) -> None:
    async with pipeline(service(fake.url)) as rig:
        await rig.send(*[TTSSpeakFrame(LONG) for _ in range(5)])
        await rig.until(lambda: rig.of(TTSStartedFrame))  # before or about its first audio
        await rig.send(InterruptionFrame())
        await rig.until(lambda: rig.of(InterruptionFrame))
        await rig.send(*response(TEXT))
        await rig.until_stopped()
    assert len(rig.contexts()) <= 2
    last = rig.contexts()[-1]
    assert rig.audio(last) == await spoken(fake.url, TEXT)
    assert not rig.errors


async def test_an_interruption_while_the_rest_of_the_audio_is_played(fake: Server) -> None:
    tts = service(fake.url)
    reports: asyncio.Queue[Interrupted] = asyncio.Queue()
    tts.add_event_handler("on_speech_interrupted", lambda _, report: reports.put_nowait(report))
    async with pipeline(tts) as rig:
        await rig.send(*response(TEXT + " " + TEXT))
        await rig.until_stopped()  # all 7 s of it went to the transport, much too early
        await rig.send(BotStartedSpeakingFrame())
        await asyncio.sleep(2.0)
        await rig.send(InterruptionFrame())
        report = await asyncio.wait_for(reports.get(), PATIENCE)
    assert report.text_spoken + report.text_remaining == TEXT + " " + TEXT
    assert report.text_spoken and report.text_remaining


async def test_speech_that_shall_be_heard_survives_an_interruption(fake: Server) -> None:
    notice = TTSSpeakFrame(TEXT)
    notice.interruptible = False
    if not hasattr(TTSContext(), "interruptible"):
        pytest.skip("pipecat-ai 1.12 has no uninterruptible speech")
    tts = service(fake.url)
    reports: list[Interrupted] = []
    tts.add_event_handler("on_speech_interrupted", lambda _, report: reports.append(report))
    async with pipeline(tts) as rig:
        await rig.send(notice)
        await rig.until(rig.audio)
        await rig.send(BotStartedSpeakingFrame(), InterruptionFrame())
        await rig.until_stopped()
        await rig.send(InterruptionFrame())
        await rig.until(lambda: len(rig.of(InterruptionFrame)) == 2)
    assert rig.audio() == await spoken(fake.url, TEXT)
    assert not reports


# Settings


async def test_a_voice_changed_in_the_middle_is_that_of_what_begins_later(fake: Server) -> None:
    tts = service(fake.url, settings=Settings(voice="alto", lead_ms=30_000))
    async with pipeline(tts) as rig:
        await rig.send(LLMFullResponseStartFrame(), LLMTextFrame(TEXT))
        await rig.send(*[TTSSpeakFrame(TEXT) for _ in range(4)])
        await rig.send(TTSUpdateSettingsFrame(delta=TTSSettings(voice="bass")))
        await rig.send(TTSSpeakFrame(TEXT), LLMTextFrame(" And so on."), LLMFullResponseEndFrame())
        await rig.send(TTSUpdateSettingsFrame(delta=Settings(voice="soprano", seed=5)))
        await rig.send(TTSSpeakFrame(TEXT))
        await rig.until_stopped(7)
        assert tts.settings.voice == "soprano"
    voices = [tone(rig.audio(context)) for context in rig.contexts()]
    assert voices == [*["alto"] * 5, "bass", "soprano"]
    assert not rig.errors


async def test_settings_that_are_unset_fall_back_to_the_server_s(fake: Server) -> None:
    async with pipeline(service(fake.url, settings=Settings(voice="alto"))) as rig:
        await rig.send(TTSSpeakFrame("One."), TTSUpdateSettingsFrame(delta=Settings(voice=None)))
        await rig.send(TTSSpeakFrame("Two."))
        await rig.until_stopped(2)
    assert [tone(rig.audio(context)) for context in rig.contexts()] == ["alto", "tenor"]


async def test_a_refused_update_says_why_and_changes_nothing(fake: Server) -> None:
    tts = service(fake.url, settings=Settings(voice="alto"))
    async with pipeline(tts) as rig:
        await rig.send(TTSSpeakFrame("One."))
        await rig.send(TTSUpdateSettingsFrame(delta=Settings(voice="nobody")))
        await rig.send(TTSSpeakFrame("Two."))
        await rig.until_stopped(2)
        assert tts.settings.voice == "alto"
        assert tts.is_usable
    (error,) = rig.errors
    assert "unknown voice 'nobody'; this checkpoint has: alto, bass, soprano, tenor" in error.error
    assert error.category is ErrorCategory.APPLICATION
    assert [tone(rig.audio(context)) for context in rig.contexts()] == ["alto", "alto"]


async def test_a_bad_voice_from_the_start_is_repaired_by_an_update(fake: Server) -> None:
    tts = service(fake.url, settings=Settings(voice="nobody"))
    async with pipeline(tts) as rig:
        await rig.until(lambda: rig.errors)
        assert "unknown voice 'nobody'" in rig.errors[0].error
        assert rig.errors[0].category is ErrorCategory.INVALID_REQUEST
        assert not tts.is_usable
        await rig.send(*response(TEXT))  # silent, and over at once
        await rig.until_stopped()
        assert not rig.audio()
        await rig.send(TTSUpdateSettingsFrame(delta=Settings(voice="bass")), TTSSpeakFrame(TEXT))
        await rig.until_stopped(2)
    assert tone(rig.audio()) == "bass"


def test_settings_in_pipecat_s_terms() -> None:
    tts = RealtimeTTSService(settings=Settings(language=Language.EN_GB, sampling={"top_k": 5}))
    assert tts.settings.language == "english"
    assert RealtimeTTSService(settings=Settings(language="zh-CN")).settings.language == "chinese"
    assert tts.can_generate_metrics()
    with pytest.raises(ConfigError, match="lead_ms"):
        RealtimeTTSService(settings=Settings(lead_ms="soon"))  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="server's address"):
        RealtimeTTSService(server="ftp://nowhere")


async def test_sampling_is_changed_field_by_field(fake: Server) -> None:
    tts = service(fake.url, settings=Settings(sampling={"top_k": 5, "temperature": 0.5}))
    async with pipeline(tts) as rig:
        await rig.send(TTSUpdateSettingsFrame(delta=Settings(sampling={"temperature": 0.7})))
        await rig.send(TTSSpeakFrame("One."))
        await rig.until_stopped()
        assert tts.settings.sampling == {"top_k": 5, "temperature": 0.7}
    assert not rig.errors


# Failures


async def test_a_key_that_the_server_does_not_know() -> None:
    with serving("--engine", "fake", api_key="the-right-key") as server:
        tts = service(server.url, api_key="the-wrong-key")
        async with pipeline(tts) as rig:
            await rig.until(lambda: rig.errors)
            assert not tts.is_usable
        assert rig.errors[0].category is ErrorCategory.AUTHENTICATION
        assert "the server wants an API key" in rig.errors[0].error
        async with pipeline(service(server.url, api_key="the-right-key")) as rig:
            await rig.send(TTSSpeakFrame(TEXT))
            await rig.until_stopped()
        assert rig.audio()


async def test_nobody_answers() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and never listens
        tts = service(
            f"127.0.0.1:{taken.getsockname()[1]}", backoff=Backoff(first=0.01, give_up_after=0.1)
        )
        problems: list[str] = []
        tts.add_event_handler("on_connection_error", lambda _, text: problems.append(text))
        async with pipeline(tts) as rig:
            await rig.send(*response(TEXT))
            await rig.until_stopped()
            assert tts.is_usable  # the server may come back
    assert rig.errors[0].category is ErrorCategory.CONNECTIVITY
    assert "no server answers at" in rig.errors[0].error
    assert problems


async def test_a_full_server_is_told_of_in_its_own_words() -> None:
    with serving("--engine", "fake", "--max-sessions", "1") as server:
        async with RealtimeTTS(server.url):
            tts = service(server.url, backoff=Backoff(first=0.01, give_up_after=0.1))
            async with pipeline(tts) as rig:
                await rig.until(lambda: rig.errors)
            assert rig.errors[0].category is ErrorCategory.RATE_LIMIT
            assert "session" in rig.errors[0].error


async def test_a_lost_socket_is_replaced_where_nothing_was_heard(fake: Server) -> None:
    async with wire_to(fake.url) as wire, pipeline(service(wire.url)) as rig:
        await rig.send(TTSSpeakFrame("One."))
        await rig.until_stopped()
        wire.cut()
        wire.refusing = 1
        await rig.send(*response("Two."))
        await rig.until_stopped(2)
        assert wire.connections == 3
        assert not rig.errors
    assert rig.audio(rig.contexts()[1]) == await spoken(fake.url, "Two.")


async def test_speech_goes_on_when_its_socket_is_lost(fake: Server) -> None:
    async with wire_to(fake.url) as wire:
        tts = service(wire.url, settings=Settings(layout="streaming", lead_ms=500))
        async with pipeline(tts) as rig:
            await rig.send(LLMFullResponseStartFrame(), LLMTextFrame(f"{TEXT} "))
            await rig.until(rig.audio)
            wire.cut()
            await rig.send(LLMTextFrame(TEXT), LLMFullResponseEndFrame())
            await rig.until_stopped()
            assert wire.connections == 2
            assert not rig.errors
    assert rig.audio() == await spoken(fake.url, f"{TEXT} {TEXT}")


async def test_without_patience_a_lost_socket_ends_the_speech_and_not_the_service(
    fake: Server,
) -> None:
    async with wire_to(fake.url) as wire:
        tts = service(wire.url, settings=Settings(lead_ms=500), backoff=Backoff(give_up_after=0))
        async with pipeline(tts) as rig:
            await rig.send(LLMFullResponseStartFrame(), LLMTextFrame(LONG))
            await rig.until(rig.audio)
            wire.cut()
            await rig.until(lambda: rig.errors)
            assert "s of speech of turn" in rig.errors[0].error
            assert rig.errors[0].category is ErrorCategory.CONNECTIVITY
            assert not rig.of(TTSStoppedFrame)  # its text still comes, and is not spoken
            before = len(rig.audio())
            await rig.send(LLMTextFrame(" The rest."), LLMFullResponseEndFrame())
            await rig.until_stopped()
            assert len(rig.audio()) == before
            await rig.send(TTSSpeakFrame("One."))
            await rig.until_stopped(2)
    assert rig.audio(rig.contexts()[1]) == await spoken(fake.url, "One.")
    assert len(rig.errors) == 1


# The end


async def test_the_end_waits_for_what_is_spoken_also_without_the_end_of_its_text(
    fake: Server,
) -> None:
    frames = [LLMFullResponseStartFrame(), LLMTextFrame(TEXT)]
    async with asyncio.timeout(PATIENCE):
        down, up = await run_test(service(fake.url), frames_to_send=frames, start_timeout=PATIENCE)
    audio = b"".join(each.audio for each in down if isinstance(each, TTSAudioRawFrame))
    assert audio == await spoken(fake.url, TEXT)
    assert any(isinstance(each, TTSStoppedFrame) for each in down)
    assert not up


async def test_a_cancelled_pipeline_leaves_nothing_behind(fake: Server) -> None:
    sessions = fake.value("tts_sessions")
    async with pipeline(service(fake.url, settings=Settings(lead_ms=500))) as rig:
        await rig.send(*[TTSSpeakFrame(LONG) for _ in range(4)])
        await rig.until(rig.audio)
        await rig.send(CancelFrame())
    await asyncio.to_thread(fake.until, "tts_sessions", sessions)
    await asyncio.to_thread(fake.until, "tts_active_turns", 0.0)


# A model's voice


async def test_the_demo_voice_speaks(server_url: str) -> None:
    async with pipeline(RealtimeTTSService(server=server_url)) as rig:
        await rig.send(*response("The museum", " is open", " until six."))
        await rig.until_stopped()
    samples = np.frombuffer(rig.audio(), dtype="<i2")
    assert len(samples) > 24_000 // 2
    assert np.abs(samples).max() > 1_000
    assert isinstance(rig.of(AggregatedTextFrame)[0].text, str)
    assert not rig.errors


async def test_ending_twice_is_fine(fake: Server) -> None:
    tts = service(fake.url)
    async with pipeline(tts) as rig:
        await rig.send(TTSSpeakFrame("One."), EndFrame())
        await rig.until_stopped()
    assert rig.audio()
