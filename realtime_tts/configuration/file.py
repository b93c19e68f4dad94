"""The configuration file: TOML, with a table for each group of flags."""

from __future__ import annotations

import difflib
import re
import stat
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from realtime_tts.configuration.options import Option
from realtime_tts.configuration.settings import Given, Layer, Reading
from realtime_tts.configuration.stamps import Stamp, stamp
from realtime_tts.errors import ConfigError

STANDARD_INPUT = "-"
_DEEP_KEY = re.compile(r"""(?<![\w-])((?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){100}""")
"""A key of more than a hundred parts. Python's parser of TOML takes it, in quadratic time."""
_TOO_DEEP = "is nested too deep"


@dataclass(frozen=True)
class FileContents:
    """The options that a file sets, and all that is wrong with it."""

    layer: Layer = field(default_factory=dict)
    faults: tuple[str, ...] = ()
    files: Mapping[Path, Stamp] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    variables: frozenset[str] = frozenset()
    """The variables that it names in place of secrets."""


def read_file(name: str, options: Sequence[Option], environment: Mapping[str, str]) -> FileContents:
    """Read the file of that name; `-` is standard input."""
    files = {} if name == STANDARD_INPUT else {Path(name): stamp(Path(name))}
    try:
        tables = _tables(_text(name))
    except ConfigError as error:
        return FileContents(faults=(f"{name}: {error}",), files=files)
    reading = Reading(environment)
    layer: dict[str, Given] = {}
    faults = list(_unknown(tables, options))
    for option in options:
        table = tables.get(option.table)
        if isinstance(table, dict) and option.name in table:
            try:
                layer[option.dest] = reading.given(option, table[option.name])
            except ConfigError as error:
                faults.append(f"{option.place}: {error}")
    faults += _rivals(layer, options)
    return FileContents(
        layer,
        tuple(f"{name}: {fault}" for fault in faults),
        files | reading.files,
        tuple(_too_open(files if reading.literal_secrets else (), reading.files)),
        frozenset(reading.variables),
    )


def _text(name: str) -> str:
    """Read the file's text. Raises ConfigError."""
    try:
        if name == STANDARD_INPUT:
            return sys.stdin.read()
        return Path(name).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError("is not UTF-8, which TOML is written in") from error


def _tables(text: str) -> dict[str, object]:
    """Return what the TOML says. Raises ConfigError."""
    if _DEEP_KEY.search(text):
        raise ConfigError(_TOO_DEEP)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(str(error)) from error
    except RecursionError as error:
        raise ConfigError(_TOO_DEEP) from error


def _unknown(tables: Mapping[str, object], options: Sequence[Option]) -> Iterator[str]:
    """Yield what the file has that is no option."""
    known: dict[str, list[str]] = {}
    for option in options:
        known.setdefault(option.table, []).append(option.name)
    for title, table in tables.items():
        if not isinstance(table, dict):
            yield f"{title}: stands outside of a table; {_meant(title, options)}"
        elif title not in known:
            near = difflib.get_close_matches(title, known, 1) or known
            yield f"[{title}]: there is no such table; known: {', '.join(near)}"
        else:
            for name in (name for name in table if name not in known[title]):
                yield f"{title}.{name}: there is no such option; {_meant(name, options)}"


def _meant(name: str, options: Sequence[Option]) -> str:
    """Return a hint at the option that was perhaps meant by this name."""
    places = {option.name: option.place for option in options}
    near = difflib.get_close_matches(name.replace("_", "-"), places, 1, cutoff=0.5)
    if near:
        return f"did you mean {places[near[0]]}?"
    return "`realtime-tts config --example` lists them all"


def _rivals(layer: Layer, options: Sequence[Option]) -> Iterator[str]:
    """Yield options that the file sets although only one of them can be set."""
    given = [option for option in options if option.dest in layer]
    for index, option in enumerate(given):
        for other in given[index + 1 :]:
            if other.dest in option.rivals:
                yield f"{option.place}, {other.place}: only one of them can be given"


def _too_open(*groups: Iterable[Path]) -> Iterator[str]:
    """Yield a warning for each file with secrets that everybody on the machine can read."""
    for path in (path for group in groups for path in group):
        try:
            mode = path.stat().st_mode
        except OSError:
            continue  # reported elsewhere, or gone
        if stat.S_ISREG(mode) and mode & stat.S_IROTH:
            yield f"{path} holds secrets, and everybody on this machine can read it: chmod o-r"
