"""Options are what a parser's flags are: names, types, groups and rivals."""

from __future__ import annotations

import argparse

import pytest

from realtime_tts.cli.serve_arguments import RELOADED, add_arguments
from realtime_tts.cli.serve_limits import ADDRESSES, SESSIONS, SOCKETS
from realtime_tts.cli.serve_settings import serve_options
from realtime_tts.config import AddressConfig, LimitsConfig, SocketConfig
from realtime_tts.configuration.options import Option, options_of, secret
from realtime_tts.errors import ConfigError

COMPUTED = {"max_turn_audio_ms", "write_stall_ms"}
"""Limits that follow from the model and from another setting."""


def option(*names: str, **more: object) -> Option:
    parser = argparse.ArgumentParser()
    parser.add_argument_group("things").add_argument(*names, **more)  # type: ignore[arg-type]
    (found,) = options_of(parser)
    return found


def test_every_flag_of_serve_but_the_file_s_name_is_an_option() -> None:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    flags = {action.option_strings[0] for action in parser._actions} - {"-h", "--config"}
    assert {f"--{one.name}" for one in serve_options()} == flags
    assert len(serve_options()) == len(flags)


def test_every_limit_is_a_flag() -> None:
    limits = set(LimitsConfig.__struct_fields__) - COMPUTED
    assert {*SESSIONS, "max_sessions"} == limits
    assert {*SOCKETS} == set(SocketConfig.__slots__)
    elsewhere = {"connections_per_second", "trusted_proxies"}
    assert {*ADDRESSES} | elsewhere == set(AddressConfig.__slots__)


def test_tables_stand_together_and_have_one_word_each() -> None:
    tables = [one.table for one in serve_options()]
    assert tables == sorted(tables, key=tables.index)
    assert all(table.isalpha() and table.islower() for table in tables)


def test_what_is_reloaded_are_options() -> None:
    assert {one.dest for one in serve_options()} >= RELOADED


def test_names_of_variables_are_made_of_the_flag_s() -> None:
    assert option("--big-number", type=int).variables == ("REALTIME_TTS_BIG_NUMBER",)


def test_flags_that_exclude_each_other_are_rivals() -> None:
    found = {one.dest: one.rivals for one in serve_options()}
    assert found["device"] == {"devices"} and found["devices"] == {"device"}
    assert not found["port"]


@pytest.mark.parametrize(
    ("found", "text", "value"),
    [
        (option("--n", type=int), " 3 ", 3),
        (option("--n", type=float), "3", 3.0),
        (option("--n"), "3", "3"),
        (option("--n", choices=("a", "b")), "b", "b"),
        (option("--n", action="append"), "a, b,,c\n", ["a", "b", "c"]),
        (option("--n", action=argparse.BooleanOptionalAction), "Yes", True),
        (option("--n", action="store_true"), "0", False),
    ],
    ids=str,
)
def test_a_variable_s_text_becomes_the_flag_s_type(found: Option, text: str, value: object) -> None:
    assert found.from_text(text) == value and type(found.from_text(text)) is type(value)


@pytest.mark.parametrize(
    ("found", "value", "wanted"),
    [
        (option("--n", type=int), "3", "an integer, got '3'"),
        (option("--n", type=int), True, "an integer, got True"),
        (option("--n", type=int), 3.5, "an integer"),
        (option("--n", type=int), 10**400, "an integer, got 1000"),
        (option("--n", type=float), 10**400, "a number, got 1000"),
        (option("--n", type=float), "x", "a number"),
        (option("--n"), "a\0b", "no character NUL"),
        (option("--n"), 3, "a text, got 3"),
        (option("--n", choices=("a", "b")), "c", "one of a, b, got 'c'"),
        (option("--n", action="append"), "a", "a list of texts, got 'a'"),
        (option("--n", action="append"), [1], "a list of texts"),
        (option("--n", action="store_true"), "true", "true or false"),
    ],
    ids=lambda given: str(given)[:40].replace("\0", "NUL"),
)
def test_another_type_in_a_file_is_refused_with_what_was_expected(
    found: Option, value: object, wanted: str
) -> None:
    with pytest.raises(ConfigError, match=wanted):
        found.from_toml(value)


def test_an_integer_in_a_file_is_a_number_too() -> None:
    assert type(option("--n", type=float).from_toml(3)) is float


def test_what_is_wrong_with_a_secret_is_told_without_it() -> None:
    found = option("--key", action="append", type=secret)
    with pytest.raises(ConfigError) as caught:
        found.from_toml("top secret")
    assert found.secret and "top" not in str(caught.value)
