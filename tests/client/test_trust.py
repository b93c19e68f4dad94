import pytest

from realtime_tts import RealtimeTTS
from realtime_tts.client.trust import key_header
from realtime_tts.errors import ConfigError


@pytest.mark.parametrize("key", [None, ""])
def test_no_key_is_no_header(key: str | None) -> None:
    assert key_header(key) == {}


def test_a_key_goes_into_a_header() -> None:
    assert key_header("a-key!") == {"Authorization": "Bearer a-key!"}


@pytest.mark.parametrize("key", ["secret\n", " secret", "sec\r\nret", "se\0cret", "s\u00e9cret"])
def test_a_key_that_cannot_be_sent_is_refused_and_not_shown(key: str) -> None:
    with pytest.raises(ConfigError, match=f"of {len(key)} characters") as refused:
        RealtimeTTS("ws://127.0.0.1:1", api_key=key)
    assert "ret" not in str(refused.value)
    assert ("beginning or end" in str(refused.value)) is (key != key.strip())
