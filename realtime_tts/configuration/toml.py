"""Settings as TOML: the present ones, with their origins, and an example with all options."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import groupby
from operator import attrgetter

from realtime_tts.configuration.options import Option
from realtime_tts.configuration.settings import DEFAULT, FILE, Given, Settings

_WIDTH = 100


def toml_value(value: object) -> str:
    """Return a text, a number, a truth value, a list or a table as TOML (v1.0.0)."""
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case str():  # JSON's escapes are TOML's, which also has one for DEL
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case list() | tuple():
            return f"[{', '.join(map(toml_value, value))}]"
        case dict():
            return f"{{ {', '.join(f'{key} = {toml_value(one)}' for key, one in value.items())} }}"
    raise TypeError(f"no TOML for {type(value).__name__}")


def settings_as_toml(settings: Settings) -> str:
    """Return all settings, with where each came from. Secrets are references."""

    def lines(option: Option) -> Iterator[str]:
        given = settings.given[option.dest]
        if given.shown is None or (given.origin == DEFAULT and option.rivals & given_options):
            yield f"# {option.name} is not set"
        else:
            yield f"{option.name} = {toml_value(given.shown)}  # {_origin(option, given)}"

    given_options = {option.dest for option in settings.options if settings.is_given(option)}
    where = f", {FILE}: {settings.file}" if settings.file else ""
    return _tables([f"# The settings of `realtime-tts serve`{where}"], settings.options, lines)


def _origin(option: Option, given: Given) -> str:
    hidden = option.secret and given.value
    return f"{given.origin}; a secret is not shown" if hidden else given.origin


def example(options: Sequence[Option], reloaded: Collection[str]) -> str:
    """Return a file that sets nothing, with every option as a comment. `reloaded`: the options that
    a running server reloads, by `dest`."""

    def lines(option: Option) -> Iterator[str]:
        choices = f"; {option.wanted}" if option.choices else ""
        text = f"{option.help}{choices} [{option.variables[0]}{_reload(option, reloaded)}]"
        yield ""
        yield from textwrap.wrap(
            text, _WIDTH, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False
        )
        yield f"#{option.name} = {_sample(option)}"

    begin = [
        "# Settings of `realtime-tts serve --config FILE`: each option with its default, or …",
        "# where it has none. The environment's variable in brackets wins over the file, and the",
        "# flag over both. What is reloaded takes effect when the file is saved, or at SIGHUP.",
    ]
    return _tables(begin, options, lines)


def _reload(option: Option, reloaded: Collection[str]) -> str:
    return "; reloaded" if option.dest in reloaded else ""


def _sample(option: Option) -> str:
    if option.default is not None:
        return toml_value(option.default)
    return '"…"' if option.kind is str else "…"


def _tables(
    begin: Sequence[str], options: Sequence[Option], lines: Callable[[Option], Iterator[str]]
) -> str:
    written = list(begin)
    for table, members in groupby(options, attrgetter("table")):
        written += ["", f"[{table}]"]
        for option in members:
            written.extend(lines(option))
    return "\n".join(written) + "\n"
