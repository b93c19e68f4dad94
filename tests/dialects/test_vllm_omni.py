"""vLLM-Omni's speech socket: what goes in, what comes out, in which order."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import re
import subprocess
import sys
import wave
from typing import Any

import pytest

from realtime_tts.config import LimitsConfig, ServerConfig
from realtime_tts.dialects.vllm_omni import MAX_FRAME_BYTES, VllmOmniSocket
from realtime_tts.engine.link import Append, Finish, Open
from realtime_tts.server.track import STALL_SECONDS
from tests.dialects.asking import SLOW, full, used_up
from tests.dialects.document import prose, section
from tests.dialects.omni import STREAM, omni
from tests.dialects.tones import FRAME, TENTH
from tests.engine.faulty import Faults
from tests.server.speaking import speaking
from tests.server.talking import denied, of_type, packets_of, sound_of


async def test_the_document_s_program_speaks() -> None:
    (program,) = re.findall(
        r"^```python\n(.*?)^```", section("vLLM-Omni"), re.DOTALL | re.MULTILINE
    )
    async with speaking() as server:
        program = program.replace("127.0.0.1:8000", f"127.0.0.1:{server.port}")
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            program.replace('"ava"', '"alto"'),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        output, errors = await asyncio.wait_for(process.communicate(), timeout=60)
        assert process.returncode == 0, errors.decode()
        sizes = [int(line.split()[0]) for line in output.decode().splitlines()]
        assert sum(sizes) == len("The tide is coming in, so mind your feet.") * FRAME


def test_the_figures_in_the_document_are_the_code_s() -> None:
    limits, server = LimitsConfig(), ServerConfig()
    for figure in (
        f"at most {limits.max_text_chars:,} characters a message",
        f"longer than {MAX_FRAME_BYTES >> 20} MiB",
        f"pauses for {VllmOmniSocket.hold_seconds:.0f} s",
        f"`lead_seconds` ({server.lead_seconds:.0f} s)",
        f"the other up to {limits.max_lead_ms / 1000:.0f} s",
        f"more than {STALL_SECONDS} s",
        f"nothing for {server.socket.write_stall:.0f} s",
        f"for {VllmOmniSocket.idle_seconds / 60:.0f} minutes",
    ):
        assert figure in prose("vLLM-Omni"), figure


async def test_what_the_project_s_own_client_sends() -> None:
    """Word by word, with the settings and the defaults of its example."""
    text = "Hello world. How are you? I am fine."
    words = [word + " " for word in text.split(" ")]
    words[-1] = words[-1].rstrip()
    async with speaking() as server, omni(server) as client:
        await client.config(
            speaker="Alto",
            task_type="CustomVoice",
            language="Auto",
            response_format="wav",
            speed=1.0,
        )
        await client.text(*words)
        await client.done()
        start, sound, done, end = await client.until("session.done")
        at = {"utterance_index": 0, "sentence_index": 0}
        assert start == {"type": "audio.start", **at, "sentence_text": text, "format": "wav"}
        with wave.open(io.BytesIO(sound)) as opened:
            assert opened.getnframes() * 2 == len(text) * FRAME
        assert done == {
            "type": "audio.done",
            **at,
            "total_bytes": len(sound),
            "error": False,
            "sentence_text": text,
        }
        assert end == {"type": "session.done", "utterance_index": 0, "total_sentences": 1}


async def test_streamed_sound_begins_before_the_text_is_complete() -> None:
    async with speaking() as server, omni(server) as client:
        await client.config(voice="alto", **STREAM)
        for utterance in range(3):
            await client.text("Sound co", "mes bef")
            seen = [await client.next(), await client.next()]
            await client.text("ore the end.")
            await client.done()
            seen += await client.until("session.done")
            start, done = seen[0], of_type(seen, "audio.done")[0]
            assert start["type"] == "audio.start" and start["sample_rate"] == 24_000
            assert "Sound comes before".startswith(start["sentence_text"])
            assert done["sentence_text"] == "Sound comes before the end."
            assert len(sound_of(seen)) == done["total_bytes"] == len(done["sentence_text"]) * FRAME
            assert {seen[n]["utterance_index"] for n in (0, -2, -1)} == {utterance}


async def test_without_streaming_nothing_is_spoken_before_input_done() -> None:
    async with speaking() as server, omni(server) as client:
        commands = server.spy_on_commands()
        await client.text("This one, which is without any ")
        await client.text("settings, waits.")
        await client.config(voice="alto")  # refused: so the text was taken
        assert "input.done" in await client.refused()
        assert not commands
        await client.done()
        assert len(sound_of(await client.until("session.done"))) > 44


async def test_long_sound_comes_in_frames_that_clients_take() -> None:
    text = "This is long." * 25
    async with speaking() as server, omni(server) as client:
        await client.text(text)
        await client.done()
        seen = await client.until("session.done")
        frames = packets_of(seen)
        assert len(frames) == 2 and len(frames[0]) == MAX_FRAME_BYTES
        with wave.open(io.BytesIO(sound_of(seen))) as opened:
            assert opened.getnframes() * 2 == len(text) * FRAME


async def test_a_long_text_is_whole_and_made_as_fast_as_the_machine_can() -> None:
    """50 s of speech in one file: nobody who hears it as it comes is to be kept pace with."""
    text = "This is long. " * 44
    config = ServerConfig(port=0, limits=LimitsConfig(max_lead_ms=3_000))
    async with speaking(config) as server, omni(server) as client, asyncio.timeout(30):
        await client.text(text)
        await client.done()
        seen = await client.until("session.done")
    with wave.open(io.BytesIO(sound_of(seen))) as opened:
        assert opened.getnframes() * 2 >= 610 * FRAME
    (done,) = of_type(seen, "audio.done")
    assert (done["error"], done["sentence_text"]) == (False, text)


async def test_times_of_words_come_at_the_end_of_a_sentence() -> None:
    text = "The quick brown fox jumps."
    async with speaking() as server, omni(server) as client:
        await client.config(word_timestamps=True, **STREAM)
        for utterance in range(2):
            await client.text(text)
            await client.done()
            seen = await client.until("session.done")
            assert seen[0]["word_timestamps"] is True
            *chunks, last = of_type(seen, "audio.chunk")
            assert all(chunk["timestamps"] is None for chunk in chunks)
            assert [chunk["chunk_id"] for chunk in (*chunks, last)] == list(range(len(chunks) + 1))
            ends = [0] + [chunk["chunk_end_ms"] for chunk in chunks]
            assert [chunk["chunk_start_ms"] for chunk in chunks] == ends[:-1]
            pcm = b"".join(base64.b64decode(chunk["audio_b64"]) for chunk in chunks)
            assert len(pcm) == len(text) * FRAME and last["audio_b64"] == ""
            assert last["chunk_end_ms"] == len(text) * 80 == ends[-1]
            times = last["timestamps"]
            assert [word["word"] for word in times] == text.split()
            assert 0 <= times[0]["start_ms"] and times[-1]["end_ms"] <= last["chunk_end_ms"]
            assert last["utterance_index"] == utterance


async def test_a_pause_makes_a_sentence_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(VllmOmniSocket, "hold_seconds", 0.1)
    async with speaking() as server, omni(server) as client:
        await client.config(**STREAM)
        await client.text("Let me look that up")
        first = await client.until("audio.done")
        await client.text("and here it is.")
        await client.done()
        second = await client.until("session.done")
        assert [first[0]["sentence_index"], second[0]["sentence_index"]] == [0, 1]
        assert second[-1] == {"type": "session.done", "utterance_index": 0, "total_sentences": 2}


async def test_an_empty_utterance_has_no_sentence() -> None:
    async with speaking() as server, omni(server) as client:
        for utterance in range(2):
            await client.text("", "")
            await client.done()
            assert await client.next() == {
                "type": "session.done",
                "utterance_index": utterance,
                "total_sentences": 0,
            }


@pytest.mark.parametrize("config", [STREAM, {"response_format": "pcm"}])
async def test_white_space_is_a_sentence_that_ends(config: dict[str, Any]) -> None:
    async with speaking() as server, omni(server) as client:
        await client.config(**config)
        await client.text("  ")
        await client.done()
        seen = await client.until("session.done")
        assert sound_of(seen) == TENTH
        assert [m["type"] for m in seen if not isinstance(m, bytes)] == [
            "audio.start",
            "audio.done",
            "session.done",
        ]
        assert seen[-1]["total_sentences"] == 1


async def test_the_configuration_after_input_done_is_for_what_follows() -> None:
    async with speaking(engine=SLOW) as server, omni(server) as client:
        await client.config(voice="alto", **STREAM)
        await client.text("The first utterance.")
        await client.done()
        await client.config(voice="bass", response_format="wav")
        await client.text("The second.")
        await client.done()
        seen = await client.until("session.done") + await client.until("session.done")
        assert [start["format"] for start in of_type(seen, "audio.start")] == ["pcm", "wav"]
        assert [end["utterance_index"] for end in of_type(seen, "session.done")] == [0, 1]
        assert [end["total_sentences"] for end in of_type(seen, "session.done")] == [1, 1]


async def test_session_close_lets_complete_utterances_finish() -> None:
    async with speaking() as server, omni(server) as client:
        await client.text("Complete.")
        await client.done()
        await client.text("Never ended.")
        await client.send("session.close")
        seen = await client.rest()
        assert len(of_type(seen, "session.done")) == len(of_type(seen, "audio.done")) == 1
        assert client.socket.close_code == 1000
        await server.settled()


async def test_nothing_comes_after_session_close() -> None:
    async with speaking(engine=SLOW) as server, omni(server) as client:
        await client.config(**STREAM)
        await client.text("A text that takes its time.")
        await client.done()
        await client.send("session.close")
        await client.text("More.")
        assert "session.close" in await client.refused()
        assert len(of_type(await client.rest(), "session.done")) == 1
        assert client.socket.close_code == 1000


@pytest.mark.parametrize(
    ("format", "magic"), [("mp3", b"\xff"), ("opus", b"OggS"), ("flac", b"fLaC"), ("aac", b"\xff")]
)
async def test_formats(format: str, magic: bytes) -> None:
    async with speaking() as server, omni(server) as client:
        await client.config(response_format=format)
        for _ in range(2):
            await client.text("Hello there, all of you.")
            await client.done()
            assert sound_of(await client.until("session.done")).startswith(magic)


async def test_a_commit_is_spoken_to_its_end_and_the_utterance_goes_on() -> None:
    async with speaking() as server, omni(server) as client:
        commands = server.spy_on_commands()
        await client.config(streaming_mode="sentence_commit", **STREAM)
        await client.send("input.commit")
        await client.text("Let me see")
        await client.send("input.commit")
        await server.settled_engine()
        await client.text(" now. There.")
        await client.done()
        seen = await client.until("session.done")
        assert seen[-1]["total_sentences"] == 1
        assert len(sound_of(seen)) == len("Let me see" + "now. There.") * FRAME
        assert [type(one) for one in commands][:3] == [Open, Append, Finish]


async def test_what_other_servers_have_is_accepted() -> None:
    async with speaking() as server, omni(server) as client:
        await client.config(
            model="Qwen/Qwen3-TTS-12Hz-1.7B-CustomVoice",
            voice=None,
            task_type="Base",
            language="Klingon",
            instructions="Calmly.",
            max_new_tokens=512,
            seed=7,
            initial_codec_chunk_frames=1,
            non_streaming_mode=True,
            x_vector_only_mode=False,
            split_granularity="sentence",
            ref_audio=None,
            unheard_of={"a": None},
            **STREAM,
        )
        await client.text("Hello. There.")
        await client.done()
        seen = await client.until("session.done")
        assert seen[-1]["total_sentences"] == 1
        assert len(sound_of(seen)) == len("Hello. There.") * FRAME


@pytest.mark.parametrize(
    ("config", "names"),
    [
        ({"voice": "nobody"}, "alto"),
        ({"voice": 7}, "voice"),
        ({"response_format": "avi"}, "avi"),
        ({"response_format": ["\ud800"]}, "response_format"),
        ({"word_timestamps": True}, "stream_audio"),
        ({"stream_audio": "yes"}, "stream_audio"),
        ({"ref_audio": "data:"}, "POST /v1/voices"),
        ({"speaker_embedding": [0.1]}, "POST /v1/voices"),
        ({"instructions": "a" * 3_000}, "instructions"),
        ({"seed": -1}, "seed"),
        ({"task_type": "VoiceDesign"}, "`task_type` cannot be 'VoiceDesign'"),
        ({"task_type": "voice_design"}, "task_type"),
    ],
)
@pytest.mark.parametrize("before", [[], [STREAM]])
async def test_nothing_is_spoken_after_a_bad_configuration_until_a_good_one(
    before: list[dict[str, Any]], config: dict[str, Any], names: str
) -> None:
    """Neither in the defaults nor as before: that is not how the client wants its text spoken."""
    async with speaking() as server, omni(server) as client:
        commands = server.spy_on_commands()
        for good in before:
            await client.config(**good)
        await client.config(**config)
        assert names in await client.refused()
        for word in "In which voice should each one of these many words be spoken?".split():
            await client.text(f"{word} ")
        assert "the last `session.config` was refused" in await client.refused()
        await client.done()
        assert await client.next() == {
            "type": "session.done",
            "utterance_index": 0,
            "total_sentences": 0,
        }
        assert not commands
        await client.config(**STREAM)
        await client.text("Fine.")
        await client.done()
        assert len(sound_of(await client.until("session.done"))) == len("Fine.") * FRAME


@pytest.mark.parametrize(
    "raw",
    [
        "{}",
        '{"type": "input.cancel"}',
        '{"type": ["input.text"]}',
        '{"type": "input.text", "text": 5}',
        '{"type": "input.text", "text": "' + "a" * 20_000 + '"}',
    ],
)
async def test_a_message_that_is_none_is_an_error_and_the_socket_goes_on(raw: str) -> None:
    async with speaking() as server, omni(server) as client:
        await client.config(**STREAM)
        await client.text("Hello ")
        await client.socket.send(raw)
        assert await client.refused()
        await client.text("there.")
        await client.done()
        await client.until("session.done")


async def test_a_flood_of_text_is_bounded() -> None:
    limits = LimitsConfig(max_text_chars=500, max_turn_chars=1_000)
    async with speaking(ServerConfig(port=0, limits=limits)) as server:
        for config in ({}, STREAM):
            async with omni(server) as client:
                await client.config(**config)
                await client.text(*["a" * 200] * 6)
                assert "1000" in await client.refused()


async def test_an_utterance_whose_beginning_is_refused_is_not_spoken_in_part() -> None:
    async with speaking() as server, omni(server) as client:
        await client.config(**STREAM)
        with full(server):
            await client.text("The beginning ")
            await client.refused()
        await client.text("and the rest.")
        await client.done()
        last = {"type": "session.done", "utterance_index": 0, "total_sentences": 0}
        assert await client.until("session.done") == [last]
        await client.text("Next.")
        await client.done()
        assert len(sound_of(await client.until("session.done"))) == len("Next.") * FRAME


@pytest.mark.parametrize("middle", ["and the middle ", "a" * 20_000])
async def test_an_utterance_has_no_hole_where_a_text_was_refused(middle: str) -> None:
    async with speaking() as server, omni(server) as client:
        await client.config(**STREAM)
        await client.text("The beginning ")
        seen = await client.until("audio.start")
        with used_up():
            await client.text(middle)
            seen += await client.until("error")
        await client.text("and more ", "and the end.")
        await client.done()
        seen += await client.until("session.done")
        assert len(sound_of(seen)) == len("The beginning ") * FRAME
        await client.text("Next.")
        await client.done()
        assert len(sound_of(await client.until("session.done"))) == len("Next.") * FRAME


async def test_text_that_waits_has_no_hole_where_one_was_too_much() -> None:
    limits = LimitsConfig(max_text_chars=30, max_turn_chars=30)
    async with speaking(ServerConfig(port=0, limits=limits)) as server, omni(server) as client:
        await client.config(response_format="pcm")
        await client.text("The beginning ", "and the middle, too much, ")
        await client.refused()
        await client.text("and the end.")
        await client.done()
        seen = await client.until("session.done")
        assert len(sound_of(seen)) == len("The beginning ") * FRAME
        await client.text("Next.")
        await client.done()
        assert len(sound_of(await client.until("session.done"))) == len("Next.") * FRAME


async def test_the_rest_of_an_utterance_that_fails_is_not_spoken() -> None:
    faults = Faults()
    async with speaking(engine=SLOW, faults=faults) as server, omni(server) as client:
        await client.config(**STREAM)
        await client.text("A text that will fail in the middle. ")
        await client.until("audio.start")
        faults.numerics.update(server.engine._rows)
        await client.refused()
        await client.until("audio.done")
        await client.text("And the rest.")
        await client.done()
        last = {"type": "session.done", "utterance_index": 0, "total_sentences": 1}
        assert await client.until("session.done") == [last]


async def test_a_failure_of_the_engine_ends_what_was_promised() -> None:
    faults = Faults()
    async with speaking(engine=SLOW, faults=faults) as server, omni(server) as client:
        await client.config(**STREAM)
        await client.text("A text that will fail in the middle. ")
        await client.done()
        await client.text("Another.")
        await client.done()
        await client.until("audio.start")
        await client.next()
        faults.numerics.update(server.engine._rows)
        seen = await client.until("error")
        assert seen[-1]["partial_audio"] is True and seen[-1]["action"] == "discard"
        seen = [await client.next() for _ in range(3)]
        assert [message["type"] for message in seen] == [
            "audio.done",
            "session.done",
            "session.done",
        ]
        assert seen[0]["error"] is True
        await client.text("Well.")
        await client.done()
        seen = await client.until("session.done")
        assert seen[-1] == {"type": "session.done", "utterance_index": 2, "total_sentences": 1}


async def test_the_key_as_bearer() -> None:
    key = "sesame-open-12345"
    async with speaking(ServerConfig(port=0, api_keys=(key,))) as server:
        async with omni(server, additional_headers={"Authorization": f"Bearer {key}"}) as client:
            await client.text("Hello.")
            await client.done()
            await client.until("session.done")
        response = await denied(omni(server))
        assert response.status_code == 401
        assert json.loads(response.body)["error"]["code"] == "invalid_api_key"
