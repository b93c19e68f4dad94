"""The API key as it is sent."""

from __future__ import annotations

from realtime_tts.errors import ConfigError


def key_header(api_key: str | None) -> dict[str, str]:
    """The header that shows the key, if there is one. Raises ConfigError for what no key can be."""
    if not api_key:
        return {}
    if not api_key.isascii() or not api_key.isprintable() or " " in api_key:
        # The key itself stays out of the message: messages end up in logs.
        raise ConfigError(
            f"an API key has printable ASCII characters only, and no spaces; this one of "
            f"{len(api_key)} characters has others{_where(api_key)}"
        )
    return {"Authorization": f"Bearer {api_key}"}


def _where(api_key: str) -> str:
    """What it mostly is: a key that was read from a file, with the end of its line."""
    return ", at its beginning or end" if api_key != api_key.strip() else ""
