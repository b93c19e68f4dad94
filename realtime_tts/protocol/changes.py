"""Changes of settings: structs derived from those of the settings, and how they are applied.

A change has every field of the settings. A field that is left out stays as it is, and null resets
it to its default: a JSON merge patch (RFC 7396), but lexicons and audio formats are replaced whole.
"""

from __future__ import annotations

from functools import cache
from typing import Any, TypeVar, get_args, get_type_hints

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from realtime_tts.audio.formats import AudioFormat, audio_format

S = TypeVar("S", bound=msgspec.Struct)


def changes_of(
    settings: type[msgspec.Struct], base: type[msgspec.Struct] = msgspec.Struct
) -> type[msgspec.Struct]:
    """Return a struct type for changes of `settings`; it inherits from `base`."""
    fields = []
    for name, kind in get_type_hints(settings, include_extras=True).items():
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            kind = changes_of(kind)
        fields.append((name, kind | None | UnsetType, UNSET))
    name = f"{settings.__name__}Changes"
    return msgspec.defstruct(name, fields, bases=(base,), module=__name__, frozen=True)


def changed(settings: S, changes: msgspec.Struct, defaults: S) -> S:
    """Return `settings` with the changes. Raises RequestError for an unknown audio format."""
    values: dict[str, Any] = {}
    for name, value in given(changes).items():
        old, default = getattr(settings, name), getattr(defaults, name)
        if value is None:
            values[name] = default
        elif isinstance(old, AudioFormat):
            parts = given(value).items()
            values[name] = audio_format(**{part: each for part, each in parts if each is not None})
        elif isinstance(old, msgspec.Struct):
            values[name] = changed(old, value, default)
        else:
            values[name] = value
    return replace(settings, **values)


def given(changes: msgspec.Struct) -> dict[str, Any]:
    """Return the fields that are not left out, by name."""
    values = {name: getattr(changes, name) for name in changes.__struct_fields__}
    return {name: value for name, value in values.items() if value is not UNSET}


@cache
def nested(struct: type[msgspec.Struct]) -> dict[str, type[msgspec.Struct]]:
    """Return the types of the fields of a struct that are structs themselves, by name."""
    return {
        field.name: kind
        for field in msgspec.structs.fields(struct)
        for kind in get_args(field.type) or (field.type,)
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct)
    }
