"""Settings: the value of each option, and where it comes from. The first of these that sets it
wins: the command line, the environment, the file, the default."""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from realtime_tts.configuration.options import PREFIX, Option, check_text, split
from realtime_tts.configuration.stamps import Stamp, stamp
from realtime_tts.errors import ConfigError

COMMAND_LINE, ENVIRONMENT, FILE, DEFAULT = "command line", "environment: ", "file", "default"
_OF_KUBERNETES = re.compile(r"(tcp|udp|sctp)://")
"""A Service named realtime-tts puts REALTIME_TTS_PORT=tcp://… into the environment of every pod."""
_NAMED_BY_KUBERNETES = re.compile(r"_SERVICE_(HOST|PORT)(_|$)|_PORT_\d+_[A-Z]+_(PROTO|PORT|ADDR)$")
"""The names of its other variables about a Service."""
_LIST = "`realtime-tts config --example` lists them all"


@dataclass(frozen=True)
class Given:
    """A value and its origin. `shown`: as a file has it, where secrets are references."""

    value: Any
    origin: str
    shown: Any


Layer = Mapping[str, Given]
"""The values from one source, by `Option.dest`."""


class Faults(ConfigError):
    """All that is wrong with the settings, a line each."""

    def __init__(self, faults: Iterable[str]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(self.faults))


@dataclass(frozen=True)
class Settings:
    """All settings: `given` has every option. `file`: where some come from, if there is a file.
    `warnings`: what is possible and unwise."""

    options: tuple[Option, ...]
    given: Layer
    file: str | None = None
    warnings: tuple[str, ...] = ()

    def namespace(self, **other: object) -> argparse.Namespace:
        """Return a namespace as if all had been flags, with some `other` values."""
        return argparse.Namespace(**{dest: one.value for dest, one in self.given.items()} | other)

    def is_given(self, option: Option) -> bool:
        """Return whether the option's value is not merely the default."""
        return self.given[option.dest].origin != DEFAULT

    def place(self, option: Option) -> str:
        """Return the option as its source names it."""
        origin = self.given[option.dest].origin
        if origin == FILE:
            return f"{self.file}: {option.place}"
        if origin.startswith(ENVIRONMENT):
            return origin.removeprefix(ENVIRONMENT)
        return f"--{option.name}"


def resolved(options: Sequence[Option], *layers: Layer) -> dict[str, Given]:
    """Return every option's value: of the first layer that has it, or else the default. An option
    in a layer also hides its rivals in later layers."""
    found: dict[str, Given] = {}
    for layer in layers:
        above = frozenset(found)
        for option in options:
            if option.dest in layer and not above & {option.dest, *option.rivals}:
                found[option.dest] = layer[option.dest]
    for option in options:
        found.setdefault(option.dest, Given(option.default, DEFAULT, option.default))
    return found


def command_line_layer(options: Sequence[Option], values: Mapping[str, object]) -> Layer:
    """Return the layer of `values`, those of the flags; None: the flag was not given."""
    return {
        option.dest: Given(value, COMMAND_LINE, _hidden(option) if option.secret else value)
        for option in options
        if (value := values.get(option.dest)) is not None
    }


def environment_layer(
    options: Sequence[Option], environment: Mapping[str, str]
) -> tuple[Layer, list[str]]:
    """Return the layer of the variables, and what is wrong with them. An empty one sets nothing."""
    layer: dict[str, Given] = {}
    faults = []
    for option in options:
        name = next((name for name in option.variables if environment.get(name)), None)
        if name is None:
            continue
        if option.kind is int and _OF_KUBERNETES.match(environment[name]):
            continue
        try:
            value = option.from_text(environment[name])
        except ConfigError as error:
            faults.append(f"{name}: {error}")
            continue
        shown = _reference(option, {"env": name}) if option.secret else value
        layer[option.dest] = Given(value, f"{ENVIRONMENT}{name}", shown)
    return layer, faults


def unread_variables(
    options: Sequence[Option], environment: Mapping[str, str], others: Collection[str]
) -> Iterator[str]:
    """Yield a warning for each variable that is named like one of ours and that nothing reads.
    `others`: variables that are read elsewhere."""
    known = [name for option in options for name in option.variables]
    for name, text in sorted(environment.items()):
        of_kubernetes = _OF_KUBERNETES.match(text) or _NAMED_BY_KUBERNETES.search(name)
        if not name.startswith(PREFIX) or not text or of_kubernetes:
            continue
        if name not in known and name not in others:
            own = {one.removeprefix(PREFIX): one for one in known}
            near = difflib.get_close_matches(name.removeprefix(PREFIX).upper(), own, 1)
            hint = f"did you mean {own[near[0]]}?" if near else _LIST
            yield f"{name}: there is no such variable; {hint}"


def _hidden(option: Option) -> object:
    """Return what a file has in place of a secret that is not shown: a reference, which is an error
    if the secret was not put there."""
    return _reference(option, {"env": option.variables[-1]})


def _reference(option: Option, reference: dict[str, str]) -> object:
    return [reference] if option.many else reference


class Reading:
    """Takes values from a file: looks up secrets that are elsewhere, and notes what was read."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self.files: dict[Path, Stamp] = {}
        self.variables: set[str] = set()
        self.literal_secrets = False

    def given(self, option: Option, value: object) -> Given:
        """Return what the file sets an option to. Raises ConfigError."""
        if not option.secret:
            checked = option.from_toml(value)
            return Given(checked, FILE, checked)
        items = value if option.many and isinstance(value, list) else [value]
        texts: list[object] = []
        shown: list[object] = []
        for item in items:
            found = self._texts(option, item) if isinstance(item, dict) else [item]
            texts.extend(found)
            reference = item if isinstance(item, dict) else {"env": option.variables[-1]}
            if reference not in shown:
                shown.append(reference)
            self.literal_secrets |= not isinstance(item, dict)
        if option.many:
            as_list = isinstance(value, (list, dict))
            return Given(option.from_toml(texts if as_list else value), FILE, shown)
        return Given(option.from_toml(texts[0]), FILE, shown[0])

    def _texts(self, option: Option, reference: Mapping[str, object]) -> list[str]:
        match reference:
            case {"file": str(name), **rest} if not rest:
                text = self._text_of(name)
            case {"env": str(name), **rest} if not rest:
                self.variables.add(name)
                text = self._environment.get(name, "").strip()
                if not text:
                    raise ConfigError(f"the environment's {name} is not set")
            case _:
                raise ConfigError('expected a text, { file = "path" } or { env = "NAME" }')
        return split(text) if option.many else [text]

    def _text_of(self, name: str) -> str:
        check_text(name)
        path = Path(name)
        self.files.setdefault(path, stamp(path))
        try:
            text = path.read_text(encoding="utf-8-sig").strip()
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise ConfigError(f"cannot read {path}: {why}") from None
        if not text:
            raise ConfigError(f"{path} is empty")
        return text
