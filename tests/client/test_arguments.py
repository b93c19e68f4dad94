"""What callers pass by mistake is refused at once, in words that say what was expected."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from realtime_tts import Backoff, RealtimeTTS, SyncRealtimeTTS
from realtime_tts.client.lexicons import LexiconClient
from realtime_tts.client.voices import VoiceClient
from realtime_tts.errors import ClientError, ConfigError

Client = Callable[..., Any]

HERE = "ws://127.0.0.1:1"


@pytest.mark.parametrize("client", [RealtimeTTS, SyncRealtimeTTS, VoiceClient, LexiconClient])
@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"server": 5}, "cannot use 5 as the server's address; expected a ws://"),
        ({"server": b"ws://127.0.0.1"}, "cannot use b'ws://127.0.0.1' as the server's address"),
        ({"api_key": 5}, "an API key is a string, found int"),
        ({"api_key": 0}, "an API key is a string, found int"),
        ({"api_key": b"secret"}, "an API key is a string, found bytes"),
        ({"server": "wss://127.0.0.1:1", "tls_ca": 5}, "tls_ca is the path of a PEM file, found 5"),
    ],
)
def test_an_argument_of_another_type_is_named(
    client: Client, arguments: dict[str, Any], why: str
) -> None:
    with pytest.raises(ConfigError, match=why):
        client(**{"server": HERE, **arguments})


@pytest.mark.parametrize(
    ("client", "name"),
    [
        (RealtimeTTS, "connect_timeout"),
        (RealtimeTTS, "reply_timeout"),
        (SyncRealtimeTTS, "reply_timeout"),
        (VoiceClient, "timeout"),
    ],
)
@pytest.mark.parametrize("value", ["10", -1, 0, float("nan")])
def test_a_timeout_that_is_no_time_is_refused(client: Client, name: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=f"^{name} must be a number of seconds, above 0; found"):
        client(HERE, **{name: value})


@pytest.mark.parametrize("client", [RealtimeTTS, SyncRealtimeTTS])
def test_a_backoff_is_one(client: Client) -> None:
    with pytest.raises(ConfigError, match=r"backoff is a realtime_tts\.Backoff, found 5"):
        client(HERE, backoff=5)


@pytest.mark.parametrize(
    "bad", [{"first": "1"}, {"factor": None}, {"give_up_after": "30"}, {"first": float("nan")}]
)
def test_what_a_backoff_waits_are_numbers(bad: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="a backoff needs"):
        Backoff(**bad)


@pytest.mark.parametrize("retry_for", ["10", -1, None])
async def test_a_time_to_keep_trying_is_a_number(retry_for: Any) -> None:
    with pytest.raises(ConfigError, match="^retry_for must be a number of seconds, 0 or more"):
        await RealtimeTTS(HERE).connect(retry_for=retry_for)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"turn_id": 5}, "^`turn_id` must be 1 to 64 printable ASCII characters.*, found 5"),
        ({"turn_id": "a turn"}, "^`turn_id` must be 1 to 64 printable ASCII"),
        ({"traceparent": 5}, "^`traceparent` must be a W3C traceparent.*, found 5"),
        ({"traceparent": "x"}, "^`traceparent` must be a W3C traceparent"),
    ],
)
async def test_a_turn_that_no_server_takes_is_not_begun(
    arguments: dict[str, Any], why: str
) -> None:
    with pytest.raises(ClientError, match=why):
        await RealtimeTTS(HERE).turn(**arguments)


@pytest.mark.parametrize("text", [5, None])
@pytest.mark.parametrize("client", [RealtimeTTS, SyncRealtimeTTS])
def test_what_is_no_source_of_text_is_refused_at_once(client: Client, text: Any) -> None:
    found = type(text).__name__
    with pytest.raises(ClientError, match=f"a text must be a string, .* of strings; found {found}"):
        client(HERE).speak(text)


def test_a_blocking_client_cannot_wait_for_an_async_source() -> None:
    async def deltas() -> AsyncIterator[str]:
        yield "Hello."

    with pytest.raises(ClientError, match="an iterable of strings; found async_generator"):
        SyncRealtimeTTS(HERE).speak(deltas())  # type: ignore[arg-type]


def test_the_parent_of_a_speech_is_checked_before_it_begins() -> None:
    with pytest.raises(ClientError, match="`traceparent` must be"):
        RealtimeTTS(HERE).speak("Hello.", traceparent="x")
