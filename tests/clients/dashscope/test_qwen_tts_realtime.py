"""DashScope's Python client, QwenTtsRealtime, against the demo voice."""

from __future__ import annotations

import base64
import contextlib
import io
import queue
import wave
from collections.abc import Iterator
from typing import Any

import dashscope
import pytest
from dashscope.audio.qwen_tts_realtime import QwenTtsRealtime, QwenTtsRealtimeCallback

from tests.clients.serving import Server
from tests.clients.speaking import LONG, RATE, TEXT, deltas, is_speech

DELTA, DONE = "response.audio.delta", "response.done"


class Talk(QwenTtsRealtimeCallback):
    """A connection, and the events that came over it, in order."""

    def __init__(self, server: Server, api_key: str | None = None) -> None:
        self.events: queue.Queue[dict[str, Any]] = queue.Queue()
        dashscope.api_key = api_key or server.api_key or "none"
        self.api = QwenTtsRealtime(
            model="qwen3-tts-flash-realtime",
            url=f"{server.websocket_url}/api-ws/v1/realtime",
            callback=self,
        )

    def on_event(self, message: Any) -> None:
        self.events.put(message)

    def on_close(self, close_status_code: Any, close_msg: Any) -> None:
        self.events.put({"type": "closed", "code": close_status_code})

    def until(self, type: str) -> list[dict[str, Any]]:
        """Everything up to the first event of this type."""
        seen: list[dict[str, Any]] = []
        while not seen or seen[-1]["type"] != type:
            seen.append(self.events.get(timeout=60))
        return seen

    def say(self, text: str) -> list[dict[str, Any]]:
        """All of one response, from a text in deltas."""
        for delta in deltas(text):
            self.api.append_text(delta)
        self.api.commit()
        return self.until(DONE)


@contextlib.contextmanager
def talking(server: Server, **session: Any) -> Iterator[Talk]:
    talk = Talk(server)
    talk.api.connect()
    try:
        talk.until("session.created")
        talk.api.update_session(**{"voice": "ava", **session})
        talk.until("session.updated")
        yield talk
    finally:
        talk.api.close()


def sound(events: list[dict[str, Any]]) -> bytes:
    return b"".join(base64.b64decode(each["delta"]) for each in events if each["type"] == DELTA)


@pytest.mark.parametrize("mode", ["server_commit", "commit"])
def test_deltas_are_spoken_turn_by_turn(server: Server, mode: str) -> None:
    with talking(server, mode=mode) as talk:
        assert talk.api.get_session_id().startswith("sess_")
        for _ in range(3):
            events = talk.say(TEXT)
            assert is_speech(sound(events))
            response = events[-1]["response"]
            assert (response["status"], response["voice"]) == ("completed", "ava")
            assert talk.api.get_last_response_id() == response["id"]
        assert talk.api.get_first_audio_delay() > 0


def test_sound_comes_before_the_text_is_complete(server: Server) -> None:
    with talking(server) as talk:
        talk.api.append_text(LONG)
        early = talk.until(DELTA)
        talk.api.finish()
        events = early + talk.until("session.finished")
        assert is_speech(sound(events), LONG)
        assert talk.until("closed")[-1]["code"] == 1000


def test_the_documented_example_without_a_commit(server: Server) -> None:
    """Text, `finish`, and everything up to `session.finished`."""
    with talking(server, voice="Cherry") as talk:
        for sentence in (TEXT, " And it ", "opens at ten."):
            talk.api.append_text(sentence)
        talk.api.finish()
        assert is_speech(sound(talk.until("session.finished")), TEXT + " And it opens at ten.")


def test_a_barge_in_and_the_next_turn(server: Server) -> None:
    cut = server.value('tts_turns_total{reason="interrupted"}')
    with talking(server) as talk:
        talk.api.append_text(LONG)
        talk.until(DELTA)
        talk.api.cancel_response()
        talk.api.clear_appended_text()
        response = talk.until(DONE)[-1]["response"]
        assert response["status"] == "incomplete"
        events = talk.say(TEXT)
        assert {each["response_id"] for each in events if each["type"] == DELTA} == {
            events[-1]["response"]["id"]
        }
        assert is_speech(sound(events))
    server.until('tts_turns_total{reason="interrupted"}', cut + 1)
    server.until("tts_open_turns", 0)


def test_what_was_cleared_is_not_spoken(server: Server) -> None:
    with talking(server, mode="commit") as talk:
        talk.api.append_text(LONG)
        talk.api.clear_appended_text()
        talk.until("input_text_buffer.cleared")
        assert is_speech(sound(talk.say(TEXT)))


def test_two_connections_at_once(server: Server) -> None:
    with talking(server) as one, talking(server, voice="ray") as two:
        one.api.append_text(LONG)
        one.until(DELTA)
        heard = sound(two.say(TEXT))
        assert is_speech(heard)
        one.api.cancel_response()
        assert is_speech(sound(two.say(TEXT)))


@pytest.mark.parametrize(
    ("wanted", "magic"), [("mp3", b"\xff"), ("opus", b"OggS"), ("wav", b"RIFF")]
)
def test_formats(server: Server, wanted: str, magic: bytes) -> None:
    with talking(server, audio_format=wanted, mode="commit") as talk:
        for _ in range(2):
            data = sound(talk.say(TEXT))
            assert data.startswith(magic) and len(data) > 4_000
        if wanted == "wav":
            with wave.open(io.BytesIO(data)) as opened:
                assert (opened.getframerate(), opened.getsampwidth()) == (RATE, 2)


@pytest.mark.parametrize("rate", [8_000, 16_000, 48_000])
def test_sample_rates(server: Server, rate: int) -> None:
    with talking(server, sample_rate=rate) as talk:
        assert is_speech(sound(talk.say(TEXT)), rate=rate)


def test_a_voice_that_is_not_there(server: Server) -> None:
    with talking(server) as talk:
        talk.api.update_session(voice="nobody")
        error = talk.until("error")[-1]["error"]
        assert "ava" in error["message"] and error["type"] == "invalid_request_error"
        assert is_speech(sound(talk.say(TEXT)))


def test_over_tls(tls_server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEBSOCKET_CLIENT_CA_BUNDLE", str(tls_server.ca_file))
    with talking(tls_server) as talk:
        assert is_speech(sound(talk.say(TEXT)))


def test_the_key_is_checked(keyed_server: Server) -> None:
    with talking(keyed_server) as talk:
        assert is_speech(sound(talk.say(TEXT)))
    with pytest.raises(TimeoutError):
        Talk(keyed_server, api_key="wrong").api.connect()


def test_a_busy_server_refuses(busy_server: Server) -> None:
    refused = busy_server.value('tts_refused_total{reason="too_many_sessions"}')
    with pytest.raises(TimeoutError):
        Talk(busy_server).api.connect()
    found = busy_server.value('tts_refused_total{reason="too_many_sessions"}')
    assert found == refused + 1
