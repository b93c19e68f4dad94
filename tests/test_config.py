"""A config that cannot work is refused when it is built, with a sentence that helps."""

import pytest

from realtime_tts.config import LimitsConfig, ServerConfig, SocketConfig
from realtime_tts.errors import ConfigError


def test_the_defaults_are_valid_and_local() -> None:
    config = ServerConfig()
    assert config.host == "127.0.0.1"
    assert config.socket.write_stall <= 10


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: ServerConfig(port=70_000), "port"),
        (lambda: ServerConfig(port=9000, agent_port=9000), "agent_port must be another port"),
        (lambda: ServerConfig(drain_seconds=-1), "drain_seconds"),
        (lambda: ServerConfig(drain_seconds=float("nan")), "drain_seconds"),
        (lambda: ServerConfig(log_format="xml"), "json or text"),  # type: ignore[arg-type]
        (lambda: ServerConfig(log_level="loud"), "debug, info"),
        (lambda: ServerConfig(allowed_origins=("example.com",)), "https://example.com"),
        (lambda: ServerConfig(allowed_origins=("https://example.com/page",)), "no path"),
        (lambda: ServerConfig(allowed_origins=("https://example.com?page",)), "no path"),
        (lambda: ServerConfig(allowed_origins=("https://[example.com",)), "no path"),
        (lambda: ServerConfig(api_keys=("short",)), "at least 8"),
        (lambda: ServerConfig(api_keys=("with a space in it",)), "without spaces"),
        (lambda: ServerConfig(api_keys=("schlüssel-mit-umlaut",)), "ASCII"),
        (lambda: SocketConfig(write_stall=11), "at most 10, got 11"),
        (lambda: SocketConfig(close_timeout=float("inf")), "close_timeout must be at most"),
        (lambda: SocketConfig(tcp_user_timeout=float("inf")), "tcp_user_timeout must be at most"),
        (lambda: SocketConfig(send_buffer=1 << 31), "send_buffer must be at most"),
        (lambda: SocketConfig(ping_interval=0), "ping_interval"),
        (lambda: LimitsConfig(max_sessions=0), "max_sessions"),
        (lambda: LimitsConfig(max_text_chars=10, max_turn_chars=5), "max_turn_chars"),
    ],
)
def test_what_cannot_work_is_refused_by_name(make: object, words: str) -> None:
    assert callable(make)
    with pytest.raises(ConfigError, match=words):
        make()


def test_keys_are_shown_neither_in_errors_nor_in_the_repr() -> None:
    with pytest.raises(ConfigError) as caught:
        ServerConfig(api_keys=("top secret key",))
    assert "secret" not in str(caught.value)
    assert "verysecret" not in repr(ServerConfig(api_keys=("verysecret",)))
