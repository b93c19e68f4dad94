"""The options of a session are defined once, in SessionSettings. What has to write them out again,
for editors, type checkers and people, has all of them, with the same types."""

from __future__ import annotations

import argparse
import ast
import re
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints, is_typeddict

import msgspec
import pytest

from realtime_tts.audio.formats import ENGINE_RATE, PACKET_BYTES
from realtime_tts.audio.pcm import BYTES_PER_SAMPLE
from realtime_tts.cli.session_arguments import add_voice_arguments
from realtime_tts.client import SessionOptions
from realtime_tts.config import LimitsConfig, ServerConfig
from realtime_tts.errors import ConfigError
from realtime_tts.protocol.settings import SessionSettings
from tts_scheduler import SchedulerConfig, playback

ROOT = Path(__file__).parents[1]
JAVASCRIPT = ROOT / "client_js"
BY_FRAMEWORK = {"model", "voice", "language"}
"""What Pipecat's own TTSSettings have."""


def shape(hint: Any) -> Any:
    """A type without its ranges, its None and a boolean in place of "on" and "off": nested fields,
    the choices, or the type itself."""
    if get_origin(hint) is Literal:
        return get_args(hint)
    if is_typeddict(hint) or (isinstance(hint, type) and issubclass(hint, msgspec.Struct)):
        return {name: shape(inner) for name, inner in get_type_hints(hint).items()}
    inner = [each for each in get_args(hint) if each is not NoneType]
    if bool in inner and "on" in shape(inner[0]):
        inner.remove(bool)
    return shape(inner[0]) if NoneType in get_args(hint) and len(inner) == 1 else hint


OPTIONS: dict[str, Any] = shape(SessionSettings)


def test_the_python_client_has_every_option_with_its_type() -> None:
    assert shape(SessionOptions) == OPTIONS


def test_a_boolean_stands_for_on_and_off_where_those_are_choices() -> None:
    switches = {name for name, kind in OPTIONS.items() if isinstance(kind, tuple) and "on" in kind}
    hints = get_type_hints(SessionOptions)
    assert {name for name, hint in hints.items() if bool in get_args(hint)} == switches


def test_every_option_of_the_python_client_can_be_reset() -> None:
    hints = get_type_hints(SessionOptions)
    sampling = get_type_hints(get_args(hints["sampling"])[0])
    predictor = get_type_hints(get_args(sampling["predictor"])[0])
    for name, hint in (hints | sampling | predictor).items():
        assert NoneType in get_args(hint), name


def pipecat_settings() -> dict[str, str]:
    """The annotations of RealtimeTTSSettings, read without the framework."""
    tree = ast.parse((ROOT / "realtime_tts/adapters/pipecat_connection.py").read_text())
    (found,) = (
        node
        for node in tree.body
        if isinstance(node, ast.ClassDef) and node.name == "RealtimeTTSSettings"
    )
    return {
        node.target.id: ast.unparse(node.annotation)
        for node in found.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }


def test_pipecats_settings_have_every_option_that_is_not_the_pipelines() -> None:
    settings = pipecat_settings()
    assert settings.keys() | BY_FRAMEWORK == OPTIONS.keys() - {
        "audio",
        "word_times",
        "resume",
        "traceparent",
    }
    for name, annotation in settings.items():
        choices = re.findall(r"Literal\[(.*?)\]", annotation)
        wanted = [", ".join(map(repr, OPTIONS[name]))] if isinstance(OPTIONS[name], tuple) else []
        assert choices == wanted, name


def interface(file: str, name: str) -> dict[str, str]:
    """The fields of an interface in a .d.ts file, with those that it inherits, and their types."""
    text = (JAVASCRIPT / "types" / file).read_text()
    found = re.search(rf"interface {name}(?: extends (\w+))? \{{\n(.*?)\n\}}", text, re.S)
    assert found is not None, name
    fields = dict(re.findall(r"^  (\w+)\?: (.*);$", found[2], re.M))
    return interface(file, found[1]) | fields if found[1] else fields


def snake(name: str) -> str:
    return re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name)


def in_javascript(kind: Any) -> str:
    if isinstance(kind, tuple):
        return " | ".join(f'"{choice}"' for choice in kind)
    known: dict[Any, str] = {str: "string", int: "number", float: "number", list[str]: "string[]"}
    return known.get(kind, "Record<string, string>")


@pytest.mark.parametrize(
    ("file", "names", "ending"),
    [
        ("api.d.ts", ("SessionOptions", "SamplingOptions", "PredictorOptions"), "null | undefined"),
        ("messages.d.ts", ("SessionStart", "Sampling", "Predictor"), "null"),
    ],
)
def test_the_javascript_types_have_every_option_but_the_audio_format(
    file: str, names: tuple[str, str, str], ending: str
) -> None:
    """The player plays what the engine makes, so a page has no format to choose."""
    session, sampling, predictor = names
    wanted = {name: kind for name, kind in OPTIONS.items() if name != "audio"}
    for struct, fields in [
        (session, wanted),
        (sampling, wanted["sampling"]),
        (predictor, wanted["sampling"]["predictor"]),
    ]:
        found = {snake(name): kind for name, kind in interface(file, struct).items()}
        structs = {"sampling": sampling, "predictor": predictor}
        assert found == {
            name: f"{structs.get(name) or in_javascript(kind)} | {ending}"
            for name, kind in fields.items()
        }


def test_the_javascript_client_sends_every_option_that_its_types_have() -> None:
    source = (JAVASCRIPT / "src" / "client.js").read_text()
    found = re.search(r"const NAMES = \((.*?)\)\.split", source, re.S)
    assert found is not None
    names = "".join(re.findall(r'"(.*?)"', found[1])).split(" ")
    sampling = interface("api.d.ts", "SamplingOptions").keys()
    assert sorted(names) == sorted(interface("api.d.ts", "SessionOptions").keys() | sampling)


def test_the_javascript_readme_has_every_option_in_its_table() -> None:
    (table,) = re.findall(
        r"^\| option \| \|\n(.*?)\n\n", (JAVASCRIPT / "README.md").read_text(), re.S | re.M
    )
    named = {
        name for row in table.splitlines() for name in re.findall(r"`(\w+)`", row.split("|")[1])
    }
    options = interface("api.d.ts", "SessionOptions") | interface("api.d.ts", "ConnectOptions")
    assert named == options.keys()


def test_the_command_line_has_a_flag_for_every_option_but_four() -> None:
    """A format is `--format` of `say`, nothing shows the times of words, the client resumes by
    itself, and a shell has no span."""
    parser = argparse.ArgumentParser()
    add_voice_arguments(parser)
    flags = {action.dest for action in parser._actions} - {"help"}
    sampling = OPTIONS["sampling"]
    assert flags == {
        *OPTIONS.keys() - {"sampling", "audio", "word_times", "resume", "traceparent"},
        *sampling.keys() - {"predictor"},
        *(f"predictor_{name}" for name in sampling["predictor"]),
    }


@pytest.mark.parametrize("framework", ["LiveKit", "Pipecat"])
def test_the_adapters_document_names_every_option(framework: str) -> None:
    sections = re.split(r"^## ", (ROOT / "docs" / "adapters.md").read_text(), flags=re.M)
    (section,) = (text for text in sections if text.startswith(framework))
    for name in OPTIONS.keys() - {"audio", "resume", "traceparent"}:
        assert f"`{name}`" in section or f"{name}=" in section, name


def test_what_the_scheduler_repeats_is_what_the_server_has() -> None:
    """It can import nothing of the server's."""
    assert playback.PACKET_SAMPLES * BYTES_PER_SAMPLE == PACKET_BYTES
    assert playback.SAMPLE_RATE == ENGINE_RATE
    default = SchedulerConfig().lead_cap
    assert default == ServerConfig().lead_seconds == SessionSettings().lead_ms / 1000


def test_what_the_javascript_client_repeats_is_what_the_server_has() -> None:
    source = (JAVASCRIPT / "src" / "protocol.js").read_text()
    found = dict(re.findall(r"^export const (\w+) = ([\d_]+);$", source, re.M))
    assert int(found["SAMPLE_RATE"]) == ENGINE_RATE and int(found["PACKET_BYTES"]) == PACKET_BYTES


def test_a_limit_that_follows_from_other_settings_is_none_itself() -> None:
    for name in ("max_turn_audio_ms", "write_stall_ms"):
        with pytest.raises(ConfigError, match=name):
            LimitsConfig(**{name: 1_000})
