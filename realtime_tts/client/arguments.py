"""Checks of arguments that would otherwise fail far from the call that gave them, or hang it."""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable

from realtime_tts.errors import ClientError, ConfigError
from realtime_tts.protocol.messages import Text
from realtime_tts.protocol.parsing import BadMessage, convert


def check_seconds(name: str, value: float, *, zero: bool = False) -> None:
    """Raise ConfigError for what is no time to wait. `zero`: 0 is one as well."""
    if not (isinstance(value, int | float) and (value > 0 or (zero and value == 0))):
        least = "0 or more" if zero else "above 0"
        raise ConfigError(f"{name} must be a number of seconds, {least}; found {value!r}")


def check_source(text: object, *, blocking: bool = False) -> None:
    """Raise ClientError for what is no source of text. `blocking`: only for code that waits."""
    if not isinstance(text, Iterable if blocking else Iterable | AsyncIterable):
        which = "an iterable" if blocking else "an iterable or async iterable"
        raise ClientError(
            f"a text must be a string, or {which} of strings; found {type(text).__name__}"
        )


def check_turn(turn_id: str | None, traceparent: str | None) -> None:
    """Raise ClientError for what cannot name a turn or its parent: the server would refuse the
    turn's messages, and nothing would ever come for it."""
    fields = {"type": "text", "text": "", "turn_id": turn_id, "traceparent": traceparent}
    try:
        convert(fields, Text)
    except BadMessage as error:
        raise ClientError(str(error).removeprefix("text: ")) from None
