"""The options of a command, as its flags define them, for a file and the environment to set."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from realtime_tts.errors import ConfigError

PREFIX = "REALTIME_TTS_"
_NO_TABLES = ("positional arguments", "options")
_WORDS = dict.fromkeys(("true", "yes", "on", "1"), True)
_WORDS |= dict.fromkeys(("false", "no", "off", "0"), False)
_LARGEST = 2**63 - 1
"""The largest integer that TOML promises."""
WANTED = {bool: "true or false", int: "an integer", float: "a number", str: "a text"}


def secret(text: str) -> str:
    """Return the text. This is the `type` of flags whose value must not be shown."""
    return text


@dataclass(frozen=True)
class Option:
    """One flag, as other sources may set it.

    `name` is the flag without its dashes, `table` its group, `dest` its attribute in a namespace.
    `many`: a list of values, from a flag that may be repeated. `rivals`: the `dest` of options that
    cannot be given together with it. `variables`: environment variables, the first that is set.
    """

    table: str
    name: str
    dest: str
    kind: type
    many: bool
    choices: tuple[object, ...]
    default: object = field(hash=False)
    help: str
    secret: bool
    rivals: frozenset[str]
    variables: tuple[str, ...]

    @property
    def place(self) -> str:
        """The option in a file, as messages name it."""
        return f"{self.table}.{self.name}"

    @property
    def wanted(self) -> str:
        """What a value must be, in words."""
        if self.choices:
            return "one of " + ", ".join(map(str, self.choices))
        return "a list of texts" if self.many else WANTED[self.kind]

    def from_text(self, text: str) -> object:
        """Return the value of a variable's text; several are separated by commas. Raises
        ConfigError."""
        if self.many:
            return [self._read(part) for part in split(text)]
        return self._read(text.strip())

    def from_toml(self, value: object) -> object:
        """Return the value that a file gives. Raises ConfigError."""
        if not self.many:
            return self._checked(value)
        if not isinstance(value, list):
            raise self._wrong(value)
        return [self._checked(each) for each in value]

    def _read(self, text: str) -> object:
        value: object = text
        if self.kind is bool:
            value = _WORDS.get(text.lower(), text)
        elif self.kind in (int, float):
            try:
                value = self.kind(text)
            except ValueError:
                raise self._wrong(text) from None
        return self._checked(value)

    def _checked(self, value: object) -> object:
        if type(value) is int and abs(value) > _LARGEST:  # Python's parser of TOML takes any
            raise self._wrong(value)
        if self.kind is float and type(value) is int:
            value = float(value)
        if type(value) is not self.kind or (self.choices and value not in self.choices):
            raise self._wrong(value)
        if isinstance(value, str):
            check_text(value)
        return value

    def _wrong(self, value: object) -> ConfigError:
        got = "something else" if self.secret else repr(value)
        return ConfigError(f"expected {self.wanted}, got {got}")


def check_text(text: str) -> None:
    """Raise ConfigError for what no flag or variable can have, and no name of a file."""
    if "\0" in text:
        raise ConfigError("a text may have no character NUL")


def split(text: str) -> list[str]:
    """Return the parts of a text that are separated by commas or are on lines of their own. Raises
    ConfigError if there is none: who sets keys does not want a server without any."""
    parts = [part.strip() for part in text.replace("\n", ",").split(",") if part.strip()]
    if not parts:
        raise ConfigError("expected texts that are separated by commas, got none")
    return parts


def options_of(
    parser: argparse.ArgumentParser, more_variables: Mapping[str, str] | None = None
) -> tuple[Option, ...]:
    """Return the options in the parser's groups, in their order. `more_variables`: for some
    options, by `dest`, a variable that is looked at before their own."""
    rivals = {
        action.dest: frozenset(other.dest for other in group._group_actions if other is not action)
        for group in parser._mutually_exclusive_groups
        for action in group._group_actions
    }
    found = [
        _option(group.title, action, rivals.get(action.dest), more_variables or {})
        for group, action in _actions(parser)
    ]
    tables = dict.fromkeys(option.table for option in found)
    return tuple(option for table in tables for option in found if option.table == table)


def _actions(
    parser: argparse.ArgumentParser,
) -> Iterator[tuple[argparse._ArgumentGroup, argparse.Action]]:
    for group in parser._action_groups:
        if group.title not in _NO_TABLES:
            for action in group._group_actions:
                yield group, action


def _option(
    table: str | None,
    action: argparse.Action,
    rivals: frozenset[str] | None,
    more_variables: Mapping[str, str],
) -> Option:
    many = isinstance(action, argparse._AppendAction)
    default = action.default if action.default is not None or not many else []
    own = PREFIX + action.dest.upper()
    variables = (more_variables[action.dest], own) if action.dest in more_variables else (own,)
    return Option(
        table=str(table),
        name=action.option_strings[0].removeprefix("--"),
        dest=action.dest,
        kind=_kind(action),
        many=many,
        choices=tuple(action.choices or ()),
        default=default,
        help=(action.help or "") % vars(action),
        secret=action.type is secret,
        rivals=rivals or frozenset(),
        variables=variables,
    )


def _kind(action: argparse.Action) -> type:
    if action.nargs == 0:
        return bool
    return action.type if action.type in (int, float) else str
