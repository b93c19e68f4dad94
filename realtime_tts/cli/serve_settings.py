"""The settings of `serve` from flags, the environment and a file, and what a running server reloads
when they change."""

from __future__ import annotations

import argparse
import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from realtime_tts.cli.serve_arguments import KEYS_VARIABLE, RELOADED, add_arguments
from realtime_tts.cli.session_arguments import URL_VARIABLE
from realtime_tts.configuration.file import STANDARD_INPUT, FileContents, read_file
from realtime_tts.configuration.following import Fresh
from realtime_tts.configuration.options import PREFIX, Option, options_of
from realtime_tts.configuration.settings import (
    Faults,
    Settings,
    command_line_layer,
    environment_layer,
    resolved,
    unread_variables,
)
from realtime_tts.configuration.stamps import Stamp, stamp
from realtime_tts.errors import ConfigError
from realtime_tts.logs import event

if TYPE_CHECKING:
    from realtime_tts.config import ServerConfig

log = logging.getLogger(__name__)

_FILE_VARIABLE = f"{PREFIX}CONFIG"
_READ_ELSEWHERE = {URL_VARIABLE, f"{PREFIX}COMMIT"} | {
    PREFIX + name for name in ("CLIENT", "LENDER", "PYTHON", "TEST_BROWSER", "TEST_SERVER")
}
"""Variables of commands that connect, of the load generator, and of the project's tests."""


@cache
def serve_options() -> tuple[Option, ...]:
    """Return all options of `serve`."""
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return options_of(parser, {"api_key": KEYS_VARIABLE})


class Sources:
    """All sources of the settings of `serve`. `words`: the command line behind the command."""

    def __init__(
        self,
        words: Sequence[str],
        environment: Mapping[str, str] | None = None,
        add: Callable[[argparse.ArgumentParser], None] = add_arguments,
    ) -> None:
        self._environment = os.environ if environment is None else environment
        parser = argparse.ArgumentParser()
        add(parser)
        dests = [option.dest for option in serve_options()]
        # For argparse an attribute that exists needs no default, so only what was given is not
        # None.
        given = parser.parse_args(words, argparse.Namespace(**dict.fromkeys([*dests, "config"])))
        self._flags = {dest: getattr(given, dest) for dest in dests}
        self.file: str | None = given.config or self._environment.get(_FILE_VARIABLE)
        self.files: Mapping[Path, Stamp] = {}
        """The files that were read for the settings the last time, whether they could be or not, as
        they were just before."""

    def read(self) -> Settings:
        """Return the settings as they are now. Raises Faults, with all that is wrong."""
        options = serve_options()
        contents = FileContents()
        if self.file is not None:
            contents = read_file(self.file, options, self._environment)
        environment, faults = environment_layer(options, self._environment)
        flags = command_line_layer(options, self._flags)
        given = resolved(options, flags, environment, contents.layer)
        named = (given[dest].value for dest in ("tls_cert", "tls_key"))
        paths = (Path(name) for name in named if name)
        self.files = {**contents.files, **{path: stamp(path) for path in paths}}
        if contents.faults or faults:
            raise Faults([*contents.faults, *faults])
        read = {_FILE_VARIABLE, *_READ_ELSEWHERE, *contents.variables}
        unread = unread_variables(options, self._environment, read)
        return Settings(options, given, self.file, (*contents.warnings, *unread))


class RunningSettings:
    """The settings of a running server, and those that it must reload: a `Source`. `build` makes
    the server's config of a namespace, and raises ConfigError. Raises ConfigError for standard
    input, which cannot be read again."""

    def __init__(
        self,
        sources: Sources,
        started_with: Settings,
        build: Callable[[argparse.Namespace], ServerConfig],
    ) -> None:
        if sources.file == STANDARD_INPUT:
            raise ConfigError("a server reads its file again: give --config the name of one, not -")
        self._sources = sources
        self._now = started_with.namespace()
        self._build = build

    @property
    def files(self) -> Mapping[Path, Stamp]:
        """The files whose change may change the settings."""
        return self._sources.files

    def read(self) -> Fresh:
        """Return what the server must reload now. Raises ConfigError."""
        settings = self._sources.read()
        current = vars(settings.namespace())
        taken = vars(self._now) | {dest: current[dest] for dest in self._reloaded(current)}
        if self._now.api_key and not taken["api_key"]:
            raise ConfigError(
                "access.api-key: no key is left, which would let everybody in; a server that has "
                "keys takes that over only by a restart"
            )
        config = self._build(argparse.Namespace(**taken))
        places = {option.dest: option.place for option in settings.options}
        before = vars(self._now)

        def accept() -> None:
            self._now = argparse.Namespace(**taken)

        return Fresh(
            config,
            changed=[places[dest] for dest in before if taken[dest] != before[dest]],
            needs_restart=[places[dest] for dest in before if current[dest] != taken[dest]],
            accept=accept,
        )

    def _reloaded(self, current: Mapping[str, object]) -> frozenset[str]:
        """Return the options that may be reloaded. TLS is never turned on or off by that."""
        turned = bool(current["tls_cert"]) != bool(self._now.tls_cert)
        return RELOADED - {"tls_cert", "tls_key"} if turned else RELOADED


def faults_in(settings: Settings, build: Callable[[argparse.Namespace], object]) -> list[str]:
    """Return what is wrong with values that are each of the right type, with their locations.

    `build` makes use of a namespace and raises ConfigError. Where it does, the settings are given
    to it one after another, and those that it does not take are left out.
    """

    def problem(dests: Iterable[str]) -> str | None:
        given = {dest: settings.given[dest].value for dest in dests}
        try:
            build(argparse.Namespace(**defaults | given))
        except ConfigError as error:
            return str(error)
        return None

    defaults = {option.dest: option.default for option in settings.options}
    waiting = [option for option in settings.options if settings.is_given(option)]
    if problem(option.dest for option in waiting) is None:
        return []
    if (why := problem(())) is not None:
        return [why]
    taken: list[str] = []
    while True:
        left = []
        for option in waiting:
            why = problem([*taken, option.dest])
            if why is None:
                taken.append(option.dest)
            else:
                left.append((option, why))
        if len(left) == len(waiting):
            return [f"{settings.place(option)}: {why}" for option, why in left]
        waiting = [option for option, _ in left]


def log_warnings(settings: Settings) -> None:
    """Log what is possible and unwise."""
    for warning in settings.warnings:
        event(log, logging.WARNING, "config.unwise", why=warning)
