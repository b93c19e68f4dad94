"""Values of options, and how each source writes them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from realtime_tts.configuration.options import Option
from realtime_tts.configuration.toml import toml_value

# Without what separates values and what the ends of a text lose.
_TEXTS = st.text(st.characters(exclude_characters=",", exclude_categories=("C", "Z")), min_size=1)
_KINDS: Mapping[type, st.SearchStrategy[Any]] = {
    bool: st.booleans(),
    int: st.integers(-(2**31), 2**31),
    float: st.floats(allow_nan=False, allow_infinity=False),
    str: _TEXTS,
}


def values(option: Option) -> st.SearchStrategy[Any]:
    """Values of the option's type. Whether they make sense, nobody asks."""
    if option.choices:
        return st.sampled_from(option.choices)
    return st.lists(_TEXTS, min_size=1) if option.many else _KINDS[option.kind]


def as_text(value: Any) -> str:
    """As a variable of the environment has it."""
    return ",".join(value) if isinstance(value, list) else str(value)


def as_words(option: Option, value: Any) -> list[str]:
    """As the command line has it."""
    if isinstance(value, bool):
        return [f"--{option.name}" if value else f"--no-{option.name}"]
    return [f"--{option.name}={one}" for one in (value if option.many else [value])]


def file_of(said: Mapping[Option, Any], folder: Path) -> Path:
    """A file in the folder that says this."""
    tables: dict[str, list[str]] = {}
    for option, value in said.items():
        tables.setdefault(option.table, []).append(f"{option.name} = {toml_value(value)}")
    text = "\n".join(f"[{table}]\n" + "\n".join(lines) for table, lines in tables.items())
    path = folder / "config.toml"
    path.write_text(text, encoding="utf-8")
    return path
