"""The file: all that is wrong with it is told at once, and secrets may be elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from realtime_tts.cli.serve_settings import serve_options
from realtime_tts.configuration.file import FileContents, read_file
from realtime_tts.configuration.settings import Given

SECRETS = {"KEYS": "env-key-1, env-key-2"}


def contents(folder: Path, text: str, mode: int = 0o600) -> FileContents:
    path = folder / "config.toml"
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    return read_file(str(path), serve_options(), SECRETS)


def faults(folder: Path, text: str) -> list[str]:
    return [one.removeprefix(f"{folder}/config.toml: ") for one in contents(folder, text).faults]


def keys(folder: Path, text: str) -> Given:
    return contents(folder, f"[access]\napi-key = {text}\n").layer["api_key"]


def test_all_faults_are_told_at_once_with_the_name_that_was_meant(tmp_path: Path) -> None:
    text = """
    port = 1
    [server]
    prot = 2
    max_sessions = 3
    host = 4
    completely-different = 5
    [limit]
    [engine]
    slots = "many"
    device = "cpu"
    devices = "all"
    """
    assert faults(tmp_path, text) == [
        "port: stands outside of a table; did you mean server.port?",
        "server.prot: there is no such option; did you mean server.port?",
        "server.max_sessions: there is no such option; did you mean limits.max-sessions?",
        "server.completely-different: there is no such option; "
        "`realtime-tts config --example` lists them all",
        "[limit]: there is no such table; known: limits",
        "engine.slots: expected an integer, got 'many'",
        "server.host: expected a text, got 4",
        "engine.device, engine.devices: only one of them can be given",
    ]


def test_a_fault_of_toml_is_told_with_its_line(tmp_path: Path) -> None:
    (told,) = faults(tmp_path, "[server]\nport = = 3\n")
    assert "at line 2, column 8" in told


@pytest.mark.parametrize(
    "text",
    [
        "port = " + "[" * 100_000,
        "port" + ".a" * 100_000 + " = 1",
        'port = { "a b"' + " . 'a.b'" * 100_000 + " = 1 }",
        "[server" + ".a" * 100_000 + "]",
    ],
    ids=["arrays", "key", "quoted", "table"],
)
def test_a_file_that_is_nested_deep_is_a_fault(tmp_path: Path, text: str) -> None:
    assert faults(tmp_path, f"[server]\n{text}\n") == ["is nested too deep"]


def test_a_file_that_cannot_be_read_is_a_fault(tmp_path: Path) -> None:
    missing = read_file(str(tmp_path / "none"), serve_options(), {})
    assert "No such file" in missing.faults[0] and missing.files == {tmp_path / "none": None}
    (tmp_path / "config.toml").write_bytes(b"\xff")
    assert "UTF-8" in read_file(str(tmp_path / "config.toml"), serve_options(), {}).faults[0]


def test_the_mark_with_which_windows_begins_a_file_is_no_part_of_it(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("file-key\n", encoding="utf-8-sig")
    found = keys(tmp_path, f'{{ file = "{tmp_path}/key" }}')
    assert found.value == ["file-key"]
    assert contents(tmp_path, "\ufeff[server]\nport = 3\n").layer["port"].value == 3


def test_a_secret_may_be_in_a_file_or_in_the_environment(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("file-key-1\nfile-key-2\n")
    found = keys(tmp_path, f'["here-key", {{ file = "{tmp_path}/keys" }}, {{ env = "KEYS" }}]')
    assert found.value == ["here-key", "file-key-1", "file-key-2", "env-key-1", "env-key-2"]
    assert keys(tmp_path, '{ env = "KEYS" }').value == ["env-key-1", "env-key-2"]
    text = f'[access]\napi-key = {{ file = "{tmp_path}/keys" }}\n'
    assert tmp_path / "keys" in contents(tmp_path, text).files, "it is looked at"


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ('{ file = "/none/such" }', "cannot read /none/such: No such file"),
        ('{ env = "NONE_SUCH" }', "the environment's NONE_SUCH is not set"),
        ('{ path = "x" }', "expected a text, { file ="),
        ('{ file = "x", env = "y" }', "expected a text, { file ="),
        ('{ file = "/a/\\u0000" }', "no character NUL"),
        ('"top-secret"', "expected a list of texts, got something else"),
        ('["top-secret", 3]', "expected a list of texts, got something else"),
    ],
)
def test_a_secret_that_is_not_there_is_a_fault_that_does_not_show_others(
    tmp_path: Path, said: str, told: str
) -> None:
    (fault,) = faults(tmp_path, f"[access]\napi-key = {said}\n")
    assert fault.startswith("access.api-key: ") and told in fault and "top" not in fault


def test_only_secrets_may_be_elsewhere(tmp_path: Path) -> None:
    (fault,) = faults(tmp_path, '[server]\nhost = { env = "KEYS" }\n')
    assert "expected a text" in fault


@pytest.mark.parametrize(
    ("text", "mode", "warned"),
    [
        ('[access]\napi-key = ["some-key"]\n', 0o644, True),
        ('[access]\napi-key = ["some-key"]\n', 0o640, False),
        ('[access]\napi-key = [{ env = "KEYS" }]\n', 0o644, False),
        ("[server]\nport = 3\n", 0o644, False),
    ],
)
def test_a_file_with_secrets_that_everybody_can_read_gets_a_warning(
    tmp_path: Path, text: str, mode: int, warned: bool
) -> None:
    warnings = contents(tmp_path, text, mode).warnings
    assert [f"{tmp_path}/config.toml" in one for one in warnings] == [True] * warned


def test_a_file_of_keys_that_everybody_can_read_gets_a_warning(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("some-key\n")
    (tmp_path / "keys").chmod(0o604)
    (warning,) = contents(
        tmp_path, f'[access]\napi-key = [{{ file = "{tmp_path}/keys" }}]\n', 0o644
    ).warnings
    assert warning.startswith(f"{tmp_path}/keys")
