"""Sessions in other formats, over real sockets: packets, positions, interrupts, refusals."""

from __future__ import annotations

import io
import json
from functools import partial
from typing import Any

import numpy as np
import pytest
import websockets

from realtime_tts.audio import codecs
from realtime_tts.audio.encoders import Encoder
from realtime_tts.audio.formats import parse_format
from realtime_tts.audio.packets import packets_in
from realtime_tts.engine.fake import FakeEngineConfig
from realtime_tts.server import connection as connection_module
from realtime_tts.server.track import Delivery
from tests.server.speaking import speaking
from tests.server.talking import packets_of, sound_of
from tests.waiting import until

TEXT = "The tide is coming in."  # less than the lead: no test waits for a listener
MULAW = {"encoding": "pcm_mulaw"}
CUT = "One two three four five six seven eight nine ten."


async def spoken(server: Any, query: str = "", **text: Any) -> list[Any]:
    async with server.talk(query) as talker:
        await talker.send("text", text=TEXT, end=True, **text)
        return await talker.until("turn.done")


async def test_mulaw_comes_in_packets_of_20_ms_and_is_the_same_speech() -> None:
    async with speaking() as server:
        plain = await spoken(server, "?seed=3")
        messages = await spoken(server, "?seed=3&encoding=pcm_mulaw")
    sizes = [len(packet) for packet in packets_of(messages)]
    assert set(sizes[:-1]) == {160} and 0 < sizes[-1] <= 160
    started = messages[0]
    assert started["audio"] == {
        "encoding": "pcm_mulaw",
        "sample_rate": 8_000,
        "container": "raw",
        "bit_rate": None,
        "packet_ms": 20,
    }
    assert messages[-1]["samples"] == plain[-1]["samples"], "both count the engine's samples"
    encoder = Encoder(parse_format("ulaw_8000"))
    expected = encoder.encode(sound_of(plain)) + encoder.finish()
    assert sound_of(messages) == expected


async def test_without_a_format_turn_started_says_nothing_of_it() -> None:
    async with speaking() as server:
        assert "audio" not in (await spoken(server))[0]


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("?encoding=pcm_f32le&sample_rate=44100", "pcm_f32le_44100"),
        ("?encoding=pcm_s16le&sample_rate=16000", "pcm_16000"),
        ("?encoding=pcm_alaw&packet_ms=100", "alaw_8000"),
        ("?container=wav&sample_rate=22050", "wav_22050"),
        ("?encoding=mp3&bit_rate=64000&sample_rate=44100", "mp3_44100_64"),
        ("?encoding=flac", "flac"),
    ],
)
async def test_every_format_is_the_same_speech(query: str, name: str) -> None:
    asked = parse_format(name)
    if asked.needs_codec:
        pytest.importorskip("av")
    async with speaking() as server:
        plain = await spoken(server, "?seed=3")
        messages = await spoken(server, query + "&seed=3")
    encoder = Encoder(asked)
    expected = encoder.encode(sound_of(plain)) + encoder.finish()
    assert sound_of(messages) == expected
    assert messages[-1]["samples"] == plain[-1]["samples"]


@pytest.mark.parametrize("container", ["ogg", "webm"])
async def test_opus_decodes_to_the_whole_speech(container: str) -> None:
    av = pytest.importorskip("av")
    async with speaking() as server:
        messages = await spoken(server, f"?encoding=opus&container={container}")
    with av.open(io.BytesIO(sound_of(messages))) as file:
        samples = sum(frame.samples for frame in file.decode(audio=0))
        seconds = samples / file.streams.audio[0].rate
    assert seconds == pytest.approx(messages[-1]["samples"] / 24_000, abs=0.03)
    assert all(packets_of(messages)), "no packet is empty"


async def test_ready_tells_the_format_of_later_turns() -> None:
    async with speaking() as server, server.talk() as talker:
        await talker.send("session.start", audio=MULAW)
        ready = await talker.next()
        assert (ready["encoding"], ready["sample_rate"], ready["packet_bytes"]) == (
            "pcm_mulaw",
            8_000,
            160,
        )
        await talker.send("session.start", audio={"packet_ms": 40})
        ready = await talker.next()
        assert (ready["encoding"], ready["packet_bytes"]) == ("pcm_s16le", 1_920), "as a whole"
        await talker.send("session.start", **ready["settings"])
        again = await talker.next()
        assert again == ready, "what `ready` says can be asked for"
        await talker.send("session.start", audio={})
        ready = await talker.next()
        assert (ready["encoding"], ready["packet_bytes"]) == ("pcm_s16le", 4_096)


async def test_a_turn_keeps_the_format_it_was_begun_with() -> None:
    async with speaking() as server, server.talk() as talker:
        await talker.send("text", text=TEXT, turn_id="a", end=True)
        await talker.send("session.start", audio=MULAW)
        await talker.send("text", text=TEXT, turn_id="b", end=True)
        first = await talker.until("turn.done")
        second = await talker.until("turn.done")
    assert len(packets_of(first)[1]) == 4_096
    assert {len(packet) for packet in packets_of(second)[:-1]} == {160}
    assert second[0]["type"] == "turn.started" and second[0]["audio"]["encoding"] == "pcm_mulaw"


async def test_turns_of_one_session_have_encoders_of_their_own() -> None:
    pytest.importorskip("av")
    async with speaking() as server, server.talk("?encoding=mp3&seed=3") as talker:
        made = []
        for _ in range(2):
            await talker.send("text", text=TEXT, end=True)
            made.append(sound_of(await talker.until("turn.done")))
    assert made[0] == made[1], "the second stream begins like the first"


@pytest.mark.parametrize("query", ["?encoding=pcm_mulaw", "?encoding=opus", "?encoding=mp3"])
async def test_an_interrupt_counts_in_the_engines_samples_and_leaves_no_byte(
    query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "mulaw" not in query:
        pytest.importorskip("av")
    dropped: list[Any] = []
    made = []

    def watched(audio_format: Any, chain: Any) -> Any:
        packets = packets_in(audio_format, chain)
        drop = packets.drop

        def dropping() -> None:
            dropped.append(packets)
            drop()

        packets.drop = dropping  # type: ignore[method-assign]
        made.append(packets)
        return packets

    monkeypatch.setattr(connection_module, "Delivery", partial(Delivery, watched))
    async with speaking(engine=FakeEngineConfig(step_seconds=0.02)) as server:
        async with server.talk(query) as talker:
            await talker.send("text", text=CUT, turn_id="a")
            assert (await talker.next())["type"] == "turn.started"
            heard = [await talker.next() for _ in range(8)]
            await talker.send("interrupt", turn_id="a", played_ms=80)
            messages = await talker.until("turn.interrupted")
            report = messages[-1]
            assert report["played_ms"] == 80
            assert report["text_spoken"] + report["text_remaining"] == CUT
            if "mulaw" in query:
                sent = sum(len(packet) for packet in heard + packets_of(messages)) * 3
                assert report["samples_sent"] == sent
            assert 0 < report["samples_sent"]
            done = await talker.next()
            assert (done["reason"], done["samples"]) == ("interrupted", report["samples_sent"])
            assert len(made) == 1 and made[0] in dropped, "what the encoder held is gone"
            await talker.send("text", text="Yes?", turn_id="b", end=True)
            rest = await talker.until("turn.done")
            assert rest[0]["type"] == "turn.started" and packets_of(rest)
            await server.settled_engine()


def closed_bodies(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The encoders that are closed from now on."""
    closed: list[Any] = []
    close = codecs.CodecBody.close

    def closing(body: Any) -> None:
        closed.append(body)
        close(body)

    monkeypatch.setattr(codecs.CodecBody, "close", closing)
    return closed


async def test_a_client_that_vanishes_takes_its_encoder_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("av")
    closed = closed_bodies(monkeypatch)
    async with speaking(engine=FakeEngineConfig(step_seconds=0.02)) as server:
        async with server.talk("?encoding=opus") as talker:
            await talker.send("text", text=CUT)
            await talker.until("turn.started")
        await until(lambda: closed)
        await server.settled_engine()


async def test_a_turn_with_nothing_to_speak_has_no_audio_and_closes_its_encoder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("av")
    closed = closed_bodies(monkeypatch)
    async with speaking() as server, server.talk("?encoding=opus") as talker:
        await talker.send("text", text="…", end=True)
        messages = await talker.until("turn.done")
    assert not packets_of(messages) and messages[-1]["samples"] == 0
    assert closed


async def test_played_positions_move_the_deadline_of_encoded_audio() -> None:
    """A listener who reports that it waits has a deadline now, in whatever format it listens."""
    async with speaking() as server, server.talk("?encoding=pcm_alaw") as talker:
        await talker.send("text", text=TEXT, turn_id="a", end=True)
        done = (await talker.until("turn.done"))[-1]
        await talker.send("interrupt", turn_id="a", played_samples=done["samples"] // 2)
        report = await talker.next()
    assert report["samples_sent"] == done["samples"]
    assert report["played_ms"] == pytest.approx(done["samples"] / 48, abs=0.1)
    assert report["text_spoken"] and report["text_remaining"]


async def test_more_bytes_than_pcm_has_are_no_sign_of_a_slow_reader() -> None:
    """f32le at 48 kHz has four times the bytes; what may wait is counted in sound."""
    query = "?encoding=pcm_f32le&sample_rate=48000&lead_ms=30000"
    async with speaking() as server, server.talk(query) as talker:
        await talker.send("text", text=TEXT * 6, end=True)
        messages = await talker.until("turn.done")
    samples = np.frombuffer(sound_of(messages), dtype="<f4")
    assert len(samples) == 2 * messages[-1]["samples"] and np.abs(samples).max() <= 1.0


# Refusals.


@pytest.mark.parametrize(
    ("audio", "told"),
    [
        ({"encoding": "vorbis"}, "no encoding 'vorbis'; there are pcm_s16le, pcm_f32le, pcm_mulaw"),
        ({"encoding": "pcm_mulaw", "sample_rate": 9_000}, "it has 8000, 11025, 12000"),
        ({"encoding": "opus", "container": "raw"}, "it goes into ogg, webm"),
        ({"packet_ms": 5}, "packet_ms must be 10 to 1000, found 5"),
        ({"bit_rate": 64_000}, "pcm_s16le has no bit rate to choose"),
    ],
)
async def test_a_format_there_is_not_is_refused_with_those_there_are(
    audio: dict[str, Any], told: str
) -> None:
    async with speaking() as server, server.talk("?encoding=pcm_alaw") as talker:
        await talker.send("session.start", audio=audio, seed=9)
        error = await talker.next()
        assert (error["code"], error["fatal"]) == ("bad_settings", False)
        assert told in error["message"]
        await talker.send("session.start")
        ready = await talker.next()
        assert ready["encoding"] == "pcm_alaw" and ready["settings"]["seed"] is None


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("?encoding=vorbis", "there are pcm_s16le"),
        ("?encoding=pcm_mulaw&sample_rate=loud", "`audio.sample_rate` must be a whole number"),
    ],
)
async def test_a_format_in_the_query_that_there_is_not_ends_the_session(
    query: str, told: str
) -> None:
    async with speaking() as server:
        async with websockets.connect(server.running.websocket_url + query) as socket:
            error = json.loads(await socket.recv())
            assert (error["code"], error["fatal"]) == ("bad_settings", True)
            assert told in error["message"]
            await socket.wait_closed()
            assert socket.close_code == 1008


async def test_without_the_extra_the_answer_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(codecs, "av", None)
    async with speaking() as server, server.talk() as talker:
        await talker.send("session.start", audio={"encoding": "opus"})
        error = await talker.next()
        assert "it has pcm_s16le, pcm_f32le, pcm_mulaw, pcm_alaw" in error["message"]
        assert "pip install -e '.[codecs]' in a checkout" in error["message"]
