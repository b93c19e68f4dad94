"""Names that documents give for flags, variables, log events, tests and methods are those of the
code."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

import realtime_tts
from realtime_tts import RealtimeTTS, Turn
from realtime_tts.cli import _COMMANDS, command_parser
from realtime_tts.config import AddressConfig
from realtime_tts.server.openapi_page import openapi
from tests.test_docs import CLIENTS, DOCUMENTS, ROOT

SOURCES = [*(ROOT / "realtime_tts").rglob("*.py"), *(ROOT / "scheduler").rglob("*.py")]
SOURCE = "\n".join(path.read_text("utf-8") for path in SOURCES)
OPERATIONS = (ROOT / "docs" / "operations.md").read_text("utf-8")
PAGES = [page for page in DOCUMENTS if "decisions" not in page.parts]  # those may be of their time
OF_OTHERS = {
    "--build-arg",
    "--cacert",
    "--cut",
    "--enable-feature",
    "--extra",
    "--health-cmd",
    "--stop-timeout",
}
"""Flags of Docker, curl, Prometheus, uv and a soak that documents name without their program."""
OF_TOOLS = ("docs/seams.md", "docs/text.md", "examples/", "scheduler/", "tools/")
"""Documents that name the flags of programs of their own."""
PLACES = {"address", "config", "engine", "front", "keys", "tracing", "voice", "voices"}
"""Events of the log begin with one of these words; names that begin so are nothing else."""


def text(page: Path) -> str:
    return re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)


def flags(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        yield from action.option_strings
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from flags(inner)


FLAGS = {flag for command in _COMMANDS for flag in flags(command_parser([command]))}


def test_flags_in_sentences_are_flags_of_a_command() -> None:
    for page in PAGES:
        name = page.relative_to(ROOT).as_posix()
        named = set(re.findall(r"`(--[a-z][a-z-]*)", text(page)))
        if not name.startswith(OF_TOOLS):
            assert named <= FLAGS | OF_OTHERS, f"{name} names {named - FLAGS - OF_OTHERS}"


def test_variables_that_the_code_reads_are_listed() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text("utf-8")
    read = set(re.findall(r'environ(?:\.get\(|\[)"(\w+)"', SOURCE))
    read |= set(re.findall(r'^\w+_VARIABLE = "(\w+)"', SOURCE, re.MULTILINE))
    ours = read - {"COMP_LINE", "TRITON_INTERPRET"}  # shells, tests
    assert {"HF_HOME", "REALTIME_TTS_URL", "REALTIME_TTS_COMMIT"} <= ours
    assert {name for name in ours if f"`{name}`" not in page} == set()


def test_tests_that_a_document_names_exist() -> None:
    files = [*(ROOT / "tests").rglob("test_*.py")]
    tests = {path.name for path in files}
    for path in files:
        tests |= set(re.findall(r"def (test_\w+)\(", path.read_text("utf-8")))
    for page in PAGES:
        named = set(re.findall(r"[`:](test_\w+(?:\.py)?)`", page.read_text("utf-8")))
        assert named <= tests, f"{page.name} names {named - tests}"


def test_events_of_the_log_that_a_document_names_are_in_the_code() -> None:
    found = 0
    for page in PAGES:
        for name, place in re.findall(r"`((\w+)\.[a-z_]+)`", text(page)):
            if place in PLACES:
                assert f'"{name}"' in SOURCE, f"{page.name} names {name}"
                found += 1
    assert found > 15


def test_the_table_of_endpoints_has_every_route_that_is_described() -> None:
    table = OPERATIONS.split("## Endpoints")[1].split("\n## ")[0]
    for path in openapi()["paths"]:
        assert f"`{path.partition('/{')[0]}`" in table, path


def test_the_limits_for_each_address_are_the_defaults() -> None:
    table = OPERATIONS.split("## Limits for each address")[1].split("\n## ")[0]
    limits = AddressConfig()
    assert f"| {limits.connections_per_second:g} a second, {limits.burst:,g} at once" in table
    assert f"| {limits.handshakes} (`--handshakes`)" in table
    assert f"| {limits.sockets_without_key} of an address (`--sockets-without-key`)" in table


def test_what_the_python_client_s_table_names_exists() -> None:
    section = CLIENTS.split("## The Python client")[1]
    owners = {"tts": RealtimeTTS, "turn": Turn}
    named = set(re.findall(r"`(tts|turn)\.(\w+)", section)) - {("turn", "done")}
    assert len(named) > 12
    for owner, name in named:
        assert hasattr(owners[owner], name), f"{owner}.{name}"


def test_the_python_client_s_errors_are_in_its_table() -> None:
    rows = re.findall(r"^\| `([A-Z]\w+)` \|", CLIENTS, re.MULTILINE)
    exported = {getattr(realtime_tts, name) for name in realtime_tts.__all__}
    errors = {each for each in exported if isinstance(each, type) and issubclass(each, Exception)}
    of_engines = {"CheckpointError", "EngineError", "NumericsError", "RealtimeTTSError"}
    assert {*rows} == {each.__name__ for each in errors} - of_engines
