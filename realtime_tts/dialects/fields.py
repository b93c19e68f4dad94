"""Fields of a JSON object as the struct of a request, and errors about one of them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Annotated, Any, NamedTuple, TypeVar, get_args

import msgspec
from msgspec import Meta, structs

from realtime_tts.audio.speed import FASTEST, SLOWEST, nearest
from realtime_tts.errors import RequestError
from realtime_tts.protocol.expected import words
from realtime_tts.protocol.parsing import quotable

S = TypeVar("S", bound=msgspec.Struct)

_AT = re.compile(r" - at `\$\.(?P<path>[\w.]+)")  # the path in msgspec's messages

ContextId = Annotated[str, Meta(min_length=1, max_length=512)]
"""The name that a client gives one of several contexts."""

_MAX_DIGITS = 20  # Python refuses more than 4,300


class WrongField(RequestError):
    """A field has a wrong value. `field` is its path, such as `voice.id`. `reason`: the API's word
    for it, if it has one; `status`: the HTTP status."""

    def __init__(
        self, message: str, field: str = "", reason: str | None = None, status: int = 400
    ) -> None:
        super().__init__(message, field)
        self.reason = reason
        self.status = status


class AskedSpeed(NamedTuple):
    """The speed of speech, and a warning if the client asked for one that this server lacks."""

    given: float
    warning: str = ""

    @classmethod
    def nearest(cls, asked: float) -> AskedSpeed:
        """Return the nearest speed that this server has: other APIs have more."""
        given = nearest(asked)
        if given == asked:
            return cls(given)
        return cls(given, f"the speed is {given:g}: this server has {SLOWEST:g} to {FASTEST:g}")


def read_fields(
    fields: Mapping[str, Any], kind: type[S], forms: Mapping[str, str], *, within: str = ""
) -> S:
    """Return the struct that `fields` make. Raises WrongField.

    `forms`: what a field must be, by its path, where its type does not say it; `within`: the name
    of the object itself, if it has one.
    """
    try:
        return msgspec.convert(fields, kind)
    except msgspec.ValidationError as error:
        found = _AT.search(str(error))
        name = found["path"] if found else ""
        prefix = f"{within}." if within else ""
        form = forms.get(name) or _form(kind, name)
        raise WrongField(f"`{prefix}{name}` must be {form}" if name else str(error), name) from None
    except UnicodeEncodeError:
        return read_fields(quotable(fields), kind, forms, within=within)


def _form(kind: Any, path: str) -> str:
    """Describe in words what the field must be, by its type."""
    for name in filter(None, path.split(".")):
        # In a union with a struct, such as `Voice | str`, the field is the struct's.
        struct = next(
            each for each in (*get_args(kind), kind) if hasattr(each, "__struct_fields__")
        )
        kind = next(one.type for one in structs.fields(struct) if one.encode_name == name)
    return words(kind)


def type_of(message: Mapping[str, Any], known: Collection[str]) -> str:
    """Return the `type` of a message, which must be one of `known`. Raises RequestError."""
    kind = message.get("type")
    if isinstance(kind, str) and kind in known:
        return kind
    found = kind[:40] if isinstance(kind, str) else kind
    raise RequestError(f"`type` must be one of {', '.join(known)}; found {found!r:.60}")


def number_in(text: str, most: int) -> int | None:
    """Return the whole number, 0 to `most`, in a query parameter; None if it is not one."""
    if not (text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS):
        return None
    number = int(text)
    return number if number <= most else None


def check_length(name: str, text: str, most: int) -> None:
    """Raise RequestError if the field has more than `most` characters."""
    if len(text) > most:
        raise RequestError(f"`{name}` must have at most {most} characters, it has {len(text)}")


def text_of(value: Any) -> str:
    """Return the `text` of a message. Raises RequestError if it is no string."""
    if not isinstance(value, str):
        raise RequestError("`text`, the text to speak, must be a string")
    return value


def without_nulls(value: Any) -> Any:
    """Return the value without fields that are null, at any depth of objects."""
    if isinstance(value, dict):
        return {name: without_nulls(item) for name, item in value.items() if item is not None}
    return value
