"""Fields of a JSON object as the struct of a request, and what is wrong with one."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Annotated, Any, NamedTuple, TypeVar, get_args

import msgspec
from msgspec import Meta, structs

from realtime_tts.audio.speed import FASTEST, SLOWEST
from realtime_tts.errors import RequestError
from realtime_tts.protocol.expected import words

S = TypeVar("S", bound=msgspec.Struct)

_AT = re.compile(r" - at `\$\.(?P<path>[\w.]+)")  # where msgspec complains

ContextId = Annotated[str, Meta(min_length=1, max_length=512)]
"""The name that a client gives one of several contexts."""

_MAX_DIGITS = 20  # beyond 4,300 Python refuses to count


class WrongField(RequestError):
    """A field cannot be what was given. `field` is its path, such as `voice.id`; "" if unknown.
    `reason`: the API's word for it, if it has one; `status`: over HTTP."""

    def __init__(
        self, message: str, field: str = "", reason: str | None = None, status: int = 400
    ) -> None:
        super().__init__(message)
        self.field = field
        self.reason = reason
        self.status = status


class AskedSpeed(NamedTuple):
    """The speed at which a client's text is spoken, and what it is told if it `asked` for another
    that this server cannot do, beside the speech."""

    given: float
    warning: str = ""

    @classmethod
    def nearest(cls, asked: float) -> AskedSpeed:
        """The one that comes nearest: other APIs have more speeds."""
        given = min(FASTEST, max(SLOWEST, asked))
        if given == asked:
            return cls(given)
        return cls(given, f"the speed is {given:g}: this server has {SLOWEST:g} to {FASTEST:g}")


def read_fields(
    fields: Mapping[str, Any], kind: type[S], forms: Mapping[str, str], *, within: str = ""
) -> S:
    """The struct that `fields` make. Raises WrongField.

    `forms`: what a field must be, by its path, where its type does not say it; `within`: the
    object's own name, if it has one.
    """
    try:
        return msgspec.convert(fields, kind)
    except msgspec.ValidationError as error:
        found = _AT.search(str(error))
        name = found["path"] if found else ""
        prefix = f"{within}." if within else ""
        form = forms.get(name) or _form(kind, name)
        raise WrongField(f"`{prefix}{name}` must be {form}" if name else str(error), name) from None
    except UnicodeEncodeError:  # msgspec cannot quote half a character when it complains of one
        where = f" of `{within}`" if within else ""
        raise WrongField(f"a field{where} has a wrong value") from None


def _form(kind: Any, path: str) -> str:
    """What the field must be, by its type."""
    for name in filter(None, path.split(".")):
        # Of a union that has a struct in it, such as `Voice | str`, the field is that one's.
        struct = next(
            each for each in (*get_args(kind), kind) if hasattr(each, "__struct_fields__")
        )
        kind = next(one.type for one in structs.fields(struct) if one.encode_name == name)
    return words(kind)


def type_of(message: Mapping[str, Any], known: Collection[str]) -> str:
    """The `type` of a message, one of those `known`. Raises RequestError."""
    kind = message.get("type")
    if isinstance(kind, str) and kind in known:
        return kind
    found = kind[:40] if isinstance(kind, str) else kind
    raise RequestError(f"`type` must be one of {', '.join(known)}; found {found!r:.60}")


def number_in(text: str, most: int) -> int | None:
    """The whole number, 0 to `most`, that a parameter of an address is; None if it is none."""
    if not (text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS):
        return None
    number = int(text)
    return number if number <= most else None


def check_length(name: str, text: str, most: int) -> None:
    """Raise RequestError if the field has more than `most` characters."""
    if len(text) > most:
        raise RequestError(f"`{name}` must have at most {most} characters, it has {len(text)}")


def text_of(value: Any, most: int) -> str:
    """The `text` of a message. Raises RequestError if it is none, or too long."""
    if not isinstance(value, str):
        raise RequestError("`text`, the text to speak, must be a string")
    check_length("text", value, most)
    return value


def without_nulls(value: Any) -> Any:
    """The same without what is null, at any depth of objects: there null counts as absent."""
    if isinstance(value, dict):
        return {name: without_nulls(item) for name, item in value.items() if item is not None}
    return value
