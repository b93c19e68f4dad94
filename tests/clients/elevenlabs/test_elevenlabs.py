"""ElevenLabs' Python client against the demo voice."""

from __future__ import annotations

import base64
import io
import json
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import av
import pytest
import websockets
from elevenlabs import (
    AsyncElevenLabs,
    ElevenLabs,
    PronunciationDictionaryVersionLocator,
    VoiceSettings,
)
from elevenlabs.core import ApiError
from elevenlabs.core.request_options import RequestOptions
from websockets.sync.client import connect

from tests.clients.serving import Server
from tests.clients.speaking import LONG, RATE, TEXT, deltas, is_speech, lasts

FOREIGN = "21m00Tcm4TlvDq8ikWAM"  # a voice of ElevenLabs' own
ONCE = RequestOptions(max_retries=0)


def client(server: Server, api_key: str | None = None) -> ElevenLabs:
    key = api_key or server.api_key or "none"
    api = ElevenLabs(base_url=server.url, api_key=key)
    # Its realtime helper insists on wss, which the server with a certificate has.
    api.text_to_speech._ws_base_url = server.websocket_url
    return api


@pytest.fixture
def api(server: Server) -> ElevenLabs:
    return client(server)


def realtime(api: ElevenLabs, text: Iterable[str], **more: Any) -> Iterator[bytes]:
    asked: dict[str, Any] = {
        "voice_id": "ava",
        "model_id": "eleven_flash_v2_5",
        "output_format": "pcm_24000",
    }
    return api.text_to_speech.convert_realtime(text=iter(text), **asked | more)


def decoded_seconds(data: bytes) -> float:
    with av.open(io.BytesIO(data), "r") as opened:
        return sum((frame.samples / frame.sample_rate for frame in opened.decode(audio=0)), 0.0)


# The realtime helper.


def test_deltas_over_tls_as_the_client_insists(
    tls_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tls_server.ca_file))
    api = ElevenLabs(base_url=tls_server.url, api_key="none")
    for _ in range(3):
        speech = api.text_to_speech.convert_realtime(
            voice_id=FOREIGN, text=deltas(TEXT), voice_settings=VoiceSettings(stability=0.3)
        )
        assert lasts(decoded_seconds(b"".join(speech)))  # mp3_44100_128, its default


def test_three_turns(api: ElevenLabs) -> None:
    for _ in range(3):
        assert is_speech(b"".join(realtime(api, deltas(TEXT))))


TAGGED = (
    "[cheerfully] The <emphasis>museum</emphasis> is *smiles* open "
    '<phoneme alphabet="ipa" ph="ənˈtɪl">until</phoneme> six.<break time="1.5s" /> [laughs]'
)


def test_tags_are_not_spoken_and_pauses_are_kept(api: ElevenLabs) -> None:
    spoken = [b"".join(realtime(api, deltas(text))) for text in (TAGGED, TEXT)]
    assert is_speech(spoken[1])
    assert is_speech(spoken[0]), "the tags alone would take far longer"


def test_sound_comes_before_the_text_is_complete(api: ElevenLabs) -> None:
    heard = threading.Event()

    def answer() -> Iterator[str]:
        for _ in range(1_000):
            if heard.is_set():
                return
            yield "and so on, "

    speech = realtime(api, answer())
    sound = next(speech)
    heard.set()
    assert len(sound + b"".join(speech)) % 2 == 0


def test_a_barge_in_is_a_closed_socket(server: Server, api: ElevenLabs) -> None:
    closed = server.value('tts_turns_total{reason="closed"}')
    speech = realtime(api, deltas(LONG))
    assert next(speech)
    speech.close()  # type: ignore[attr-defined]
    server.until('tts_turns_total{reason="closed"}', closed + 1)
    server.until("tts_open_turns", 0)


def test_texts_in_parallel_do_not_mix(api: ElevenLabs) -> None:
    def speak(text: str) -> int:
        return len(b"".join(realtime(api, deltas(text))))

    short, long = "Yes.", TEXT + " Do come in."
    with ThreadPoolExecutor(3) as pool:
        sizes = list(pool.map(speak, (short, long, short)))
    assert min(sizes) > 0 and sizes[1] > 2 * max(sizes[0], sizes[2])


def test_a_voice_that_is_not_there(api: ElevenLabs) -> None:
    with pytest.raises(ApiError) as caught:
        list(realtime(api, [TEXT], voice_id="nobody"))
    # The error, or, when it was sending meanwhile, the reason of the close.
    assert caught.value.status_code == 1008 and "ava" in str(caught.value.body)
    with pytest.raises(ApiError) as caught:
        list(api.text_to_speech.convert("nobody", text=TEXT, output_format="pcm_24000"))
    assert caught.value.status_code == 404 and "ava" in caught.value.body["detail"]["message"]


# Over HTTP.


@pytest.mark.parametrize(
    ("name", "bytes_per_second"),
    [("pcm_24000", 48_000), ("pcm_16000", 32_000), ("pcm_44100", 88_200), ("ulaw_8000", 8_000)],
)
def test_formats_of_samples(api: ElevenLabs, name: str, bytes_per_second: int) -> None:
    sound = b"".join(api.text_to_speech.stream("ava", text=TEXT, output_format=name))
    assert lasts(len(sound) / bytes_per_second)


@pytest.mark.parametrize("name", ["mp3_22050_32", "mp3_44100_128", "opus_48000_32"])
def test_formats_of_files(api: ElevenLabs, name: str) -> None:
    sound = b"".join(api.text_to_speech.convert("ava", text=TEXT, output_format=name))
    assert lasts(decoded_seconds(sound))


def test_characters_have_times(api: ElevenLabs) -> None:
    asked: dict[str, Any] = {"text": TEXT, "output_format": "pcm_24000"}
    whole = api.text_to_speech.convert_with_timestamps("ava", **asked)
    assert whole.alignment is not None and is_speech(base64.b64decode(whole.audio_base_64))
    assert "".join(whole.alignment.characters) == TEXT
    pieces = list(api.text_to_speech.stream_with_timestamps("ava", **asked))
    sound = b"".join(base64.b64decode(piece.audio_base_64) for piece in pieces)
    assert is_speech(sound)
    told = [piece.alignment for piece in pieces if piece.alignment is not None]
    assert "".join(char for each in told for char in each.characters) == TEXT
    ends = [end for each in told for end in each.character_end_times_seconds]
    assert ends == sorted(ends) and ends[-1] <= len(sound) / 2 / RATE + 0.01


async def test_the_asynchronous_client(server: Server) -> None:
    api = AsyncElevenLabs(base_url=server.url, api_key="none")
    stream = api.text_to_speech.stream("ava", text=TEXT, output_format="pcm_24000")
    assert is_speech(b"".join([piece async for piece in stream]))


def test_voices_and_models(api: ElevenLabs) -> None:
    names = {"ava", "ray"}
    assert names <= {voice.voice_id for voice in api.voices.get_all().voices}
    assert names <= {voice.voice_id for voice in api.voices.search(page_size=50).voices}
    assert api.voices.get("ray").name == "ray"
    assert all(model.can_do_text_to_speech for model in api.models.list())


def test_speech_at_another_speed(api: ElevenLabs) -> None:
    fast = VoiceSettings(speed=1.2)
    ask = api.text_to_speech.with_raw_response.stream
    with ask("ava", text=TEXT, output_format="pcm_24000", voice_settings=fast) as answer:
        assert is_speech(b"".join(answer.data))
        assert "warning" not in answer.headers


def test_a_page_speaks_once_with_a_token_that_the_client_asked_for(keyed_server: Server) -> None:
    token = client(keyed_server).tokens.single_use.create("tts_websocket").token
    path = f"/v1/text-to-speech/ava/stream-input?output_format=pcm_24000&single_use_token={token}"
    with connect(keyed_server.websocket_url + path) as socket:
        for text in (" ", TEXT, ""):
            socket.send(json.dumps({"text": text}))
        events = [json.loads(message) for message in socket]
        sounds = [base64.b64decode(event["audio"]) for event in events if event.get("audio")]
        assert is_speech(b"".join(sounds))
    with pytest.raises(websockets.InvalidStatus) as again:
        connect(keyed_server.websocket_url + path)
    assert again.value.response.status_code == 401


def test_the_key_is_checked(keyed_server: Server) -> None:
    api = client(keyed_server)
    assert is_speech(b"".join(realtime(api, deltas(TEXT))))
    assert api.voices.get_all().voices and api.models.list()
    wrong = client(keyed_server, api_key="wrong")
    for ask in (wrong.voices.get_all, wrong.voices.search, wrong.models.list):
        with pytest.raises(ApiError) as caught:
            ask()
        assert caught.value.status_code == 401
        assert caught.value.body["detail"]["status"] == "invalid_api_key"
    with pytest.raises(websockets.InvalidStatus) as refused:
        list(realtime(wrong, [TEXT]))
    assert refused.value.response.status_code == 401


def test_a_busy_server_says_so(busy_server: Server) -> None:
    api = client(busy_server)
    with pytest.raises(ApiError) as caught:
        list(api.text_to_speech.stream("ava", text=TEXT, request_options=ONCE))
    assert caught.value.status_code == 503
    with pytest.raises(websockets.InvalidStatus) as refused:
        list(realtime(api, [TEXT]))
    assert refused.value.response.status_code == 503


# Pronunciation dictionaries.

PLS = b"""<?xml version="1.0" encoding="UTF-8"?>
<lexicon version="1.0" xmlns="http://www.w3.org/2005/01/pronunciation-lexicon" alphabet="ipa"
    xml:lang="en-US">
  <lexeme><grapheme>tide</grapheme>
    <alias>tide of the morning that was coming in over the sand</alias></lexeme>
</lexicon>"""


def test_dictionaries_of_rules_and_files_are_made_read_changed_and_spoken_with(
    api: ElevenLabs,
) -> None:
    dictionaries = api.pronunciation_dictionaries
    rule: Any = {
        "type": "alias",
        "string_to_replace": "tide",
        "alias": "sea",
        "case_sensitive": False,
    }
    made = dictionaries.create_from_rules(name="Sea words", rules=[rule])
    assert made.version_rules_num == 1 and made.name == "Sea words"
    shown = dictionaries.get(made.id)
    assert [(each.string_to_replace, each.alias) for each in shown.rules] == [("tide", "sea")]
    more = dictionaries.rules.add(made.id, rules=[rule | {"string_to_replace": "ebb"}])
    assert (more.id, more.version_rules_num) == (made.id, 2)
    assert dictionaries.rules.remove(made.id, rule_strings=["ebb"]).version_rules_num == 1
    file = b"".join(dictionaries.download(made.id, more.version_id))
    assert b"<grapheme>ebb</grapheme>" in file
    listed = dictionaries.list().pronunciation_dictionaries
    assert made.id in [each.id for each in listed]

    longer = dictionaries.create_from_file(name="Longer", file=("longer.pls", PLS))
    text, locator = "The tide.", {"pronunciation_dictionary_id": longer.id}
    for version in ({}, {"version_id": longer.version_id}):
        asked: Any = [PronunciationDictionaryVersionLocator(**locator, **version)]
        speak = partial(
            api.text_to_speech.convert, "ava", text=text, output_format="pcm_24000", seed=1
        )
        plain = b"".join(speak())
        said = b"".join(speak(pronunciation_dictionary_locators=asked))
        assert len(said) > 2 * len(plain), "what is said is four times as long"
    with pytest.raises(ApiError) as refused:
        b"".join(speak(pronunciation_dictionary_locators=[{"pronunciation_dictionary_id": "no"}]))
    assert refused.value.status_code == 404
