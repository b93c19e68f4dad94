"""What comes first wins: the command line, the environment, the file, the default."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime_tts.cli.serve_settings import RunningSettings, Sources, faults_in, serve_options
from realtime_tts.config import ServerConfig
from realtime_tts.configuration.options import Option
from realtime_tts.configuration.settings import Faults, Settings
from realtime_tts.configuration.stamps import stamp
from realtime_tts.configuration.toml import settings_as_toml, toml_value
from realtime_tts.errors import ConfigError
from tests.configuration.values import as_text, as_words, file_of, values
from tests.serving import ROOT

OPTIONS = serve_options()
SOURCES = ("command line", "environment", "file")


def read(words: list[str], environment: dict[str, str], file: Path | None = None) -> Settings:
    words = [*words, "--config", str(file)] if file else words
    return Sources(words, environment).read()


@hypothesis.settings(max_examples=10)
@given(st.data())
@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_every_option_is_taken_from_the_first_source_that_has_it(
    option: Option, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    said: dict[str, Any] = {
        source: data.draw(values(option)) for source in SOURCES if data.draw(st.booleans())
    }
    words, environment, file = [], {}, None
    if "command line" in said:
        words = as_words(option, said["command line"])
    if "environment" in said:
        environment = {option.variables[-1]: as_text(said["environment"])}
    if "file" in said:
        file = file_of({option: said["file"]}, tmp_path_factory.getbasetemp())
    found = read(words, environment, file).given[option.dest]
    winner = next((source for source in SOURCES if source in said), "default")
    assert found.value == said.get(winner, option.default)
    assert found.origin.split(":")[0] == winner


@given(st.data())
def test_what_is_printed_can_be_read_back(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.getbasetemp()
    chosen = data.draw(st.lists(st.sampled_from(OPTIONS), unique=True, max_size=20))
    said = {
        option: data.draw(values(option))
        for option in chosen
        if not option.secret and not option.rivals & {other.dest for other in chosen}
    }
    before = read([], {}, file_of(said, folder))
    printed = folder / "printed.toml"
    printed.write_text(settings_as_toml(before), encoding="utf-8")
    after = read([], {}, printed)
    assert after.namespace() == before.namespace()


def test_a_flag_hides_what_excludes_it_in_the_environment_and_in_the_file(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('[engine]\ndevices = "all"\n')
    for words, environment in (
        (["--device", "cpu"], {}),
        ([], {"REALTIME_TTS_DEVICE": "cpu"}),
        (["--device", "cpu"], {"REALTIME_TTS_DEVICES": "all"}),
    ):
        found = read(words, environment, file).namespace()
        assert (found.device, found.devices) == ("cpu", None)


def test_keys_of_which_none_is_left_open_no_server_to_everybody(tmp_path: Path) -> None:
    for nothing in (",", " ", ", \n,"):  # as "$ONE,$OTHER" is where neither is set
        with pytest.raises(ConfigError, match="REALTIME_TTS_API_KEYS: .* got none"):
            Sources([], {"REALTIME_TTS_API_KEYS": nothing}).read()
    (tmp_path / "keys").write_text(",\n")
    file = tmp_path / "tts.toml"
    file.write_text(f'[access]\napi-key = [{{ file = "{tmp_path / "keys"}" }}]\n')
    with pytest.raises(ConfigError, match=r"access.api-key: .* got none"):
        Sources(["--config", str(file)], {}).read()


def test_an_empty_variable_says_nothing() -> None:
    assert read([], {"REALTIME_TTS_PORT": "", "REALTIME_TTS_API_KEYS": ""}).namespace().port == 8000


def test_what_kubernetes_says_of_a_service_is_no_port() -> None:
    assert read([], {"REALTIME_TTS_PORT": "tcp://10.0.0.1:8000"}).namespace().port == 8000


def test_keys_may_be_in_either_variable() -> None:
    keys = {"REALTIME_TTS_API_KEYS": "first-key, second-key", "REALTIME_TTS_API_KEY": "third-key"}
    assert read([], keys).namespace().api_key == ["first-key", "second-key"]
    del keys["REALTIME_TTS_API_KEYS"]
    assert read([], keys).namespace().api_key == ["third-key"]
    assert read(["--api-key", "a", "--api-key", "b"], keys).namespace().api_key == ["a", "b"]


def test_the_file_may_be_named_by_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("[server]\nport = 9000\n")
    assert read([], {"REALTIME_TTS_CONFIG": str(file)}).namespace().port == 9000


def test_wrong_variables_are_all_told_by_their_names() -> None:
    with pytest.raises(Faults) as caught:
        read([], {"REALTIME_TTS_PORT": "x", "REALTIME_TTS_EAGER": "perhaps"})
    assert caught.value.faults == (
        "REALTIME_TTS_EAGER: expected true or false, got 'perhaps'",
        "REALTIME_TTS_PORT: expected an integer, got 'x'",
    )


@pytest.mark.parametrize(
    ("variable", "meant"),
    [
        ("REALTIME_TTS_PROT", "did you mean REALTIME_TTS_PORT?"),
        ("REALTIME_TTS_log_level", "did you mean REALTIME_TTS_LOG_LEVEL?"),
        ("REALTIME_TTS_QQ", "`realtime-tts config --example` lists them all"),
    ],
)
def test_a_variable_that_nothing_reads_is_told_with_the_nearest_one(
    variable: str, meant: str
) -> None:
    warning = f"{variable}: there is no such variable; {meant}"
    assert read([], {variable: "9000", "REALTIME_TTS_UNSET": ""}).warnings == (warning,)


def test_no_variable_that_something_reads_is_told(tmp_path: Path) -> None:
    """Nor what Kubernetes says of Services whose names begin with realtime-tts."""
    file = tmp_path / "config.toml"
    file.write_text('[access]\napi-key = { env = "REALTIME_TTS_SECRET" }\n')
    kubernetes = {
        "REALTIME_TTS_SERVICE_HOST": "10.0.0.1",
        "REALTIME_TTS_SERVERS_SERVICE_PORT_HTTP": "8000",
        "REALTIME_TTS_PORT_8000_TCP": "tcp://10.0.0.1:8000",
        "REALTIME_TTS_PORT_8000_TCP_ADDR": "10.0.0.1",
    }
    words = re.compile(r"REALTIME_TTS_[A-Z]+(?:_[A-Z]+)*(?![A-Z_…])")
    files = [
        path
        for place in (
            "realtime_tts",
            "deploy",
            "docs",
            "examples",
            "client_js/test",
            "tests/clients",
        )
        for path in (ROOT / place).rglob("*")
        if path.suffix in {".py", ".js", ".md", ".yaml", ".tpl", ".service"}
    ]
    named = {name for path in files for name in words.findall(path.read_text(encoding="utf-8"))}
    assert {"REALTIME_TTS_URL", "REALTIME_TTS_COMMIT", "REALTIME_TTS_PYTHON"} <= named
    named -= {variable for option in OPTIONS for variable in option.variables}
    values = dict.fromkeys(named, "x") | {"REALTIME_TTS_SECRET": "a-key"} | kubernetes
    values["REALTIME_TTS_CONFIG"] = str(file)
    assert [one for one in read([], values, file).warnings if "variable" in one] == []


# What is possible alone, and not together.


def small(arguments: argparse.Namespace) -> None:
    if arguments.drain_seconds > 40 and arguments.slots is None:
        raise ConfigError("long drains need slots")
    if arguments.slots == 0:
        raise ConfigError("no slots")
    if arguments.threads == 0:
        raise ConfigError("no threads")


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("[server]\ndrain-seconds = 5\n", []),
        ("[engine]\nslots = 4\n[server]\ndrain-seconds = 50\n", []),
        ("[server]\ndrain-seconds = 50\n", ["server.drain-seconds: long drains need slots"]),
        (
            "[server]\nport = 5\n[engine]\nslots = 0\n[model]\nthreads = 0\n",
            ["model.threads: no threads", "engine.slots: no slots"],
        ),
    ],
)
def test_every_value_that_cannot_work_is_told_and_no_other(
    tmp_path: Path, text: str, faults: list[str]
) -> None:
    file = tmp_path / "config.toml"
    file.write_text(text)
    assert faults_in(read([], {}, file), small) == [f"{file}: {fault}" for fault in faults]


def test_a_value_that_needs_a_later_one_is_no_fault(tmp_path: Path) -> None:
    """Options are looked at in the order of the flags, threads before slots."""
    file = tmp_path / "config.toml"
    file.write_text("[model]\nthreads = 3\n[engine]\nslots = 4\n[server]\nport = 99999\n")

    def build(arguments: argparse.Namespace) -> None:
        if arguments.threads and not arguments.slots:
            raise ConfigError("threads need slots")
        if arguments.port > 65_535:
            raise ConfigError("too large")

    assert faults_in(read([], {}, file), build) == [f"{file}: server.port: too large"]


# What a running server takes over.


def running(file: Path, words: list[str]) -> tuple[Sources, RunningSettings]:
    sources = Sources([*words, "--config", str(file)], {})

    def build(arguments: argparse.Namespace) -> ServerConfig:
        return ServerConfig(
            port=arguments.port,
            api_keys=tuple(arguments.api_key or ()),
            log_level=arguments.log_level,
        )

    return sources, RunningSettings(sources, sources.read(), build)


def test_files_are_known_as_they_were_when_they_were_read(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("a-key")
    (tmp_path / "one.pem").write_text("a certificate")
    file = tmp_path / "config.toml"
    access = f'[access]\napi-key = {{ file = "{tmp_path}/keys" }}\n'
    file.write_text(f'{access}[tls]\ntls-cert = "{tmp_path}/one.pem"\n')
    _, source = running(file, [])
    before = {path: stamp(path) for path in tmp_path.iterdir()}
    for path in before:
        path.write_text("something else")
    assert source.files == before


def test_what_needs_a_restart_stays_as_it_was_and_is_named(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("[engine]\nslots = 4\n")
    _, source = running(file, ["--drain-seconds", "3"])
    server = "[server]\nport = 9000\ndrain-seconds = 5\n"
    file.write_text(f'[engine]\nslots = 8\n{server}[log]\nlog-level = "error"\n')
    for _ in range(2):
        fresh = source.read()
        assert fresh.changed == ["log.log-level"], "nobody has accepted it"
        assert fresh.needs_restart == ["engine.slots", "server.port"]
        assert (fresh.config.port, fresh.config.log_level) == (8000, "error")
    fresh.accept()
    assert source.read().changed == []
    assert source.read().needs_restart == ["engine.slots", "server.port"]


def test_a_server_with_keys_does_not_open_to_everybody_because_its_file_is_empty(
    tmp_path: Path,
) -> None:
    file = tmp_path / "config.toml"
    file.write_text('[access]\napi-key = ["first-key"]\n')
    _, source = running(file, [])
    file.write_text("")
    with pytest.raises(ConfigError, match="no key is left"):
        source.read()
    file.write_text('[access]\napi-key = ["second-key"]\n')
    assert source.read().config.api_keys == ("second-key",)


def test_tls_is_neither_begun_nor_ended_while_the_server_runs(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("")
    sources, source = running(file, [])
    file.write_text('[tls]\ntls-cert = "one.pem"\n')
    fresh = source.read()
    assert (fresh.changed, fresh.needs_restart) == ([], ["tls.tls-cert"])
    assert Path("one.pem") in sources.files, "it is looked at all the same"


def test_values_are_written_as_toml_writes_them() -> None:
    assert toml_value(['a\n"\x7f\\ü', 1, 2.5, True]) == '["a\\n\\"\\u007f\\\\ü", 1, 2.5, true]'
    assert toml_value({"file": "a"}) == '{ file = "a" }'
    with pytest.raises(TypeError):
        toml_value(object())
