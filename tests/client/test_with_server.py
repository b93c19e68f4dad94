"""The client against the real server with the fake engine, through real sockets."""

import asyncio
import wave
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from realtime_tts import Backoff, RealtimeTTS, demo_voice, speak_to_wav
from realtime_tts.adapters import session_pool
from realtime_tts.adapters.session_pool import SessionPool
from realtime_tts.client import AudioOptions, SamplingOptions
from realtime_tts.config import ServerConfig
from realtime_tts.engine.fake import FakeEngine, FakeEngineConfig
from realtime_tts.engine.in_process import InProcessEngine
from realtime_tts.errors import (
    ClientError,
    ConnectionLost,
    HandshakeRefused,
    OverloadedError,
    RequestError,
    TurnError,
)
from realtime_tts.server.run import RunningServer, running
from realtime_tts.text.tokenizer import Qwen2Tokenizer
from tests.waiting import SECONDS, until
from tts_scheduler import SchedulerConfig

pytestmark = pytest.mark.slow  # real servers

TEXT = "The tide is coming in, and the boats are going home."
QUICK = Backoff(first=0.02, longest=0.1, give_up_after=10.0)


@asynccontextmanager
async def server(
    port: int = 0, *, slots: int = 32, step_seconds: float = 0.001, keys: tuple[str, ...] = ()
) -> AsyncIterator[RunningServer]:
    # Short speech, within the lead: no test waits for a listener.
    engine = FakeEngineConfig(slots=slots, step_seconds=step_seconds, frames_per_token=1)
    link = InProcessEngine(lambda progress: FakeEngine(engine), SchedulerConfig(slots=slots))
    config = ServerConfig(port=port, api_keys=keys, access_log=False)
    tokenizer = Qwen2Tokenizer.from_folder(demo_voice.FOLDER)
    async with running(config, link, lambda: tokenizer) as started:
        yield started


def pieces(text: str, random: Random) -> list[str]:
    cuts = sorted(random.sample(range(1, len(text)), 8))
    return [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]


async def trickle(text: str, random: Random) -> AsyncIterator[str]:
    for piece in pieces(text, random):
        yield piece
        await asyncio.sleep(random.uniform(0, 0.01))


@pytest.mark.parametrize("whole", [True, False])
async def test_a_turn_comes_back_in_packets_of_the_promised_sizes(whole: bool) -> None:
    async with server() as started, RealtimeTTS(started.url, voice="bass") as tts:
        speech = tts.speak(TEXT if whole else trickle(TEXT, Random(1)))
        sizes = [len(packet) async for packet in speech]
        assert tts.ready.settings.voice == "bass"
    assert 0 < min(sizes) and max(sizes) == 4096
    assert not whole or set(sizes[1:-1]) == {4096}, "shorter ones are where text is waited for"
    assert speech.turn is not None and speech.turn.text == TEXT
    assert speech.result is not None
    assert speech.result.reason == "complete"
    assert speech.result.samples == sum(sizes) // 2
    assert speech.result.text_chars == len(TEXT)


async def test_audio_begins_before_the_text_ends() -> None:
    heard = asyncio.Event()

    async def deltas() -> AsyncIterator[str]:
        yield "The tide is coming in, "
        await heard.wait()
        yield "and the boats are going home."

    async with server() as started, RealtimeTTS(started.url) as tts:
        async for _ in tts.speak(deltas()):
            heard.set()


async def one_agent(url: str, number: int, turns: int) -> int:
    """Turn after turn, about half of them interrupted somewhere; gives how many were."""
    random = Random(number)
    interrupted = 0
    async with RealtimeTTS(url) as tts:
        for _ in range(turns):
            turn = await tts.turn()
            feeder = asyncio.create_task(feed(turn.send, turn.end, random))
            if random.random() < 0.5:
                await asyncio.sleep(random.uniform(0, 0.08))
                report = await turn.interrupt(played_ms=random.uniform(0, 500))
                interrupted += 1
                await feeder
                assert report.text_spoken + report.text_remaining == turn.text
                assert [packet async for packet in turn] == []
                assert turn.result is not None
                assert turn.result.reason in ("interrupted", "complete")
            else:
                samples = sum([len(packet) // 2 async for packet in turn])
                await feeder
                assert turn.result is not None
                assert turn.result.reason == "complete"
                assert turn.result.samples == samples == turn.samples_received > 0
    return interrupted


async def feed(send: Callable[[str], object], end: Callable[[], object], random: Random) -> None:
    for piece in pieces(TEXT, random):
        await send(piece)  # type: ignore[misc]
        await asyncio.sleep(random.uniform(0, 0.01))
    await end()  # type: ignore[misc]


async def test_eight_sessions_with_interrupts_at_random_points_stay_apart() -> None:
    async with server() as started, asyncio.timeout(120):
        agents = (one_agent(started.url, number, turns=8) for number in range(8))
        interrupted = await asyncio.gather(*agents)
        assert 10 < sum(interrupted) < 54
        assert started.front.engine.open_utterances == 0


async def test_after_a_restart_on_the_same_port_the_next_turn_just_works() -> None:
    async with server() as first:
        port = first.port
        tts = RealtimeTTS(first.url, backoff=QUICK)
        assert len([packet async for packet in tts.speak(TEXT)]) > 0
    turn_while_down = asyncio.create_task(tts.turn())
    await asyncio.sleep(0.1)
    async with server(port):
        turn = await turn_while_down
        await turn.send(TEXT, end=True)
        assert len([packet async for packet in turn]) > 0
        await tts.close()


async def test_a_server_that_stops_in_mid_turn_ends_the_turn_with_an_error() -> None:
    async with server() as started:
        tts = RealtimeTTS(started.url, backoff=Backoff(give_up_after=0.5))
        turn = await tts.turn()
        await turn.send("The tide is coming in, and the boats ")
        assert len(await anext(turn)) > 0
    with pytest.raises((ConnectionLost, TurnError)):
        async for _ in turn:
            pass
    await tts.close()


async def test_the_key_decides_who_gets_in() -> None:
    async with server(keys=("a-key-of-ours",)) as started:
        async with RealtimeTTS(started.url, api_key="a-key-of-ours") as tts:
            assert tts.ready.model == "fake"
        for key in (None, "another-key"):
            with pytest.raises(HandshakeRefused, match="api_key=") as refused:
                await RealtimeTTS(started.url, api_key=key).connect()
            assert refused.value.status == 401


async def test_a_voice_the_server_does_not_have_is_refused_with_those_it_has() -> None:
    async with server() as started:
        with pytest.raises(RequestError, match="alto"):
            await RealtimeTTS(started.url, voice="nobody").connect()


async def test_none_resets_a_setting_also_for_the_next_connection() -> None:
    sampling: SamplingOptions = {"top_k": 3, "temperature": 0.1}
    async with server() as started:
        async with RealtimeTTS(started.url) as fresh:
            default = fresh.ready.settings
        async with RealtimeTTS(started.url, voice="bass", sampling=sampling) as tts:
            await tts.configure(voice=None, seed=7, sampling={"top_k": None})
            settings = tts.ready.settings
            assert (settings.voice, settings.seed) == (default.voice, 7)
            assert settings.sampling == replace(default.sampling, temperature=0.1)
            assert tts._options == {"seed": 7, "sampling": {"temperature": 0.1}}


async def test_a_session_that_frameworks_share_is_kept_when_a_setting_is_taken_back() -> None:
    async with server() as started:
        pool = SessionPool(started.url, None)
        first = await pool.acquire({"voice": "bass", "sampling": {"top_k": 3, "top_p": 0.5}})
        pool.release(first)
        second = await pool.acquire({"sampling": {"top_p": 0.5}})
        assert second is first and second.reused
        settings = second.client.ready.settings
        assert settings.voice != "bass"
        assert (settings.sampling.top_k, settings.sampling.top_p) == (50, 0.5)
        await pool.close()


async def test_sessions_that_nobody_uses_are_closed_but_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(session_pool, "_IDLE_SECONDS", 0.05)
    async with server() as started:
        pool = SessionPool(started.url, None)
        sessions = [await pool.acquire({}) for _ in range(3)]
        for session in sessions:
            pool.release(session)
        await until(lambda: [one.client.connected for one in sessions] == [False, False, True])
        await asyncio.sleep(0.1)
        assert await pool.acquire({}) is sessions[2], "the next stream need not connect"
        await pool.close()


async def test_streams_that_end_share_one_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    timers, call_later = [], loop.call_later

    def noting(delay: float, callback: Any, *args: Any) -> asyncio.TimerHandle:
        handle = call_later(delay, callback, *args)
        if delay > session_pool._IDLE_SECONDS - 10:
            timers.append(handle)
        return handle

    async with server() as started:
        pool = SessionPool(started.url, None)
        sessions = [await pool.acquire({}) for _ in range(2)]
        monkeypatch.setattr(loop, "call_later", noting)
        for _ in range(5):
            for session in sessions:
                pool.release(session)
            sessions = [await pool.acquire({}) for _ in sessions]
        assert len(timers) == 1
        await pool.close()
        assert timers[0].cancelled(), "it would keep the pool alive"


async def test_a_turn_beyond_capacity_is_an_overload_and_the_next_one_works() -> None:
    async with server(slots=1, step_seconds=0.05) as started:
        async with RealtimeTTS(started.url) as tts, RealtimeTTS(started.url) as other:
            turn = await tts.turn()
            await turn.send(TEXT * 10, end=True)  # without an end, it would give its place away
            await anext(turn)
            extra = await other.turn()
            await extra.send(TEXT, end=True)
            with pytest.raises(OverloadedError) as refused:
                await anext(extra)
            assert refused.value.retry_after > 0
            await turn.interrupt()
            assert len(await anext(aiter(other.speak("Hello.")))) > 0


async def test_text_with_nothing_to_speak_is_a_turn_without_packets_and_a_warning() -> None:
    async with server() as started, RealtimeTTS(started.url) as tts:
        speech = tts.speak("🎉")
        assert [packet async for packet in speech] == []
        assert speech.turn is not None
        assert [warning.code for warning in speech.turn.warnings] == ["no_speakable_text"]


async def test_an_interrupt_of_what_is_still_heard_reports_what_was_heard() -> None:
    async with server() as started, RealtimeTTS(started.url) as tts:
        speech = tts.speak(TEXT)
        seconds = sum([len(packet) / 48_000 async for packet in speech])
        report = await speech.interrupt(played_ms=seconds / 2 * 1000)
        assert report.text_spoken + report.text_remaining == TEXT
        assert 0 < len(report.text_spoken) < len(TEXT)


async def test_a_listener_who_does_not_listen_can_still_be_interrupted() -> None:
    async with server() as started, RealtimeTTS(started.url) as tts:
        turn = await tts.turn()
        await turn.send(TEXT * 20, end=True)
        await until(lambda: turn.samples_received > 3 * 24_000)  # packets that nobody reads
        async with asyncio.timeout(SECONDS):
            report = await turn.interrupt(played_ms=0)
        assert report.text_remaining == TEXT * 20


async def test_a_telephone_s_packets_come_as_they_were_asked_for() -> None:
    audio: AudioOptions = {"encoding": "pcm_mulaw"}
    async with server() as started, RealtimeTTS(started.url, audio=audio) as tts:
        speech = tts.speak(TEXT)
        sizes = [len(packet) async for packet in speech]
        assert (tts.ready.encoding, tts.ready.sample_rate) == ("pcm_mulaw", 8_000)
        assert set(sizes[:-1]) == {160}
        assert speech.turn is not None and speech.turn.audio.packet_ms == 20
        assert speech.turn.samples_received == sum(sizes)
        assert speech.result is not None and speech.result.samples == 3 * sum(sizes)
        with pytest.raises(RequestError, match="there are pcm_s16le"):
            await tts.configure(audio={"encoding": "vorbis"})
        await tts.configure(audio={"encoding": "pcm_s16le"})
        assert tts.ready.packet_bytes == 4_096


async def test_a_script_gets_a_wav_file_at_its_own_rate(tmp_path: Path) -> None:
    path = tmp_path / "out.wav"
    async with server() as started:
        result = await asyncio.to_thread(
            speak_to_wav, TEXT, path, started.url, audio={"sample_rate": 16_000}
        )
    with wave.open(str(path)) as file:
        assert file.getframerate() == 16_000
        assert file.getnframes() / 16_000 == pytest.approx(result.seconds, abs=1e-3)


async def test_words_tell_what_was_heard_at_any_position() -> None:
    async with server() as started, RealtimeTTS(started.url, word_times="on") as tts:
        turn = await tts.turn()
        for piece in pieces(TEXT, Random(3)):
            await turn.send(piece)
        await turn.end()
        packets = [packet async for packet in turn]
        words = turn.words
        milliseconds = sum(map(len, packets)) / 2 / 24
        assert "".join(word.text for word in words) == TEXT
        assert words[-1].end_ms == pytest.approx(milliseconds, abs=0.1)
        assert turn.heard(0) == ""
        assert (
            turn.heard(words[3].end_ms) == turn.heard(words[4].end_ms - 1) == "The tide is coming"
        )
        assert turn.heard(milliseconds + 1) == TEXT
        report = await turn.interrupt(played_ms=milliseconds / 2)
        assert TEXT.startswith(turn.heard(milliseconds / 2)) and TEXT.startswith(report.text_spoken)


async def test_words_of_an_interrupted_turn_stay() -> None:
    async with server(step_seconds=0.01) as started:
        async with RealtimeTTS(started.url, word_times="on", layout="streaming") as tts:
            turn = await tts.turn()
            await turn.send(TEXT * 5)
            async for _ in turn:
                if len(turn.words) > 3:
                    break
            report = await turn.interrupt(played_ms=turn.words[2].end_ms + 1)
            assert turn.heard(report.played_ms) == report.text_spoken == "The tide is"


async def test_without_word_times_nobody_is_told_that_nothing_was_heard() -> None:
    async with server() as started, RealtimeTTS(started.url) as tts:
        turn = await tts.turn()
        await turn.send(TEXT, end=True)
        assert [packet async for packet in turn]
        assert turn.words == ()
        with pytest.raises(ClientError, match='word_times="on"'):
            turn.heard(1000)
