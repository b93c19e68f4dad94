import pytest

from realtime_tts.client.address import http_url, is_local, websocket_url
from realtime_tts.errors import ConfigError


@pytest.mark.parametrize(
    ("server", "url"),
    [
        ("ws://127.0.0.1:8000", "ws://127.0.0.1:8000/v1/tts"),
        ("http://127.0.0.1:8000/", "ws://127.0.0.1:8000/v1/tts"),
        ("https://speech.example", "wss://speech.example/v1/tts"),
        ("localhost:9000", "ws://localhost:9000/v1/tts"),
        ("[::1]:9000", "ws://[::1]:9000/v1/tts"),
        (" wss://speech.example/behind/a/proxy ", "wss://speech.example/behind/a/proxy"),
        ("ws://h:1/v1/tts?token=x", "ws://h:1/v1/tts?token=x"),
    ],
)
def test_every_way_to_write_an_address_becomes_one_websocket_url(server: str, url: str) -> None:
    assert websocket_url(server) == url


@pytest.mark.parametrize(
    "server", ["", "ftp://host", "ws://", "http://host:notaport", "ws://[::1", "ws://a..b:1"]
)
def test_an_unusable_address_is_refused_with_an_example(server: str) -> None:
    with pytest.raises(ConfigError, match=r"such as ws://127\.0\.0\.1:8000"):
        websocket_url(server)


def test_http_routes_are_found_beside_the_socket() -> None:
    assert http_url("wss://speech.example/v1/tts", "/readyz") == "https://speech.example/readyz"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("ws://127.0.0.1:1/", True),
        ("ws://[::1]:1/", True),
        ("ws://localhost/", True),
        ("ws://10.0.0.1/", False),
        ("ws://speech.example/", False),
    ],
)
def test_loopback_addresses_are_recognised(url: str, expected: bool) -> None:
    assert is_local(url) is expected
